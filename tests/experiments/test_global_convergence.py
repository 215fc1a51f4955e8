"""Five starts with and without noise, by smaller cases: where the experiment's numbers come from."""

import jax
import numpy as np
import pytest

import wideflow as wf
from wideflow.experiments import global_convergence as experiment


@pytest.mark.slow
def test_the_saddle_ends_elsewhere_than_the_right_without_noise_and_not_with_it():
    star = experiment.resting()
    warm = [experiment.noisy(name, [0.0, 150.0]) for name in ("saddle", "right")]
    cold = [experiment.plain(name, [0.0, 60.0]) for name in ("saddle", "right")]
    excess = [run["free_energy"][-1] - star.free_energy for run in warm]
    # F − F* falls like e^{−0.05t} or faster from 0.1 on: below 1e-4 at 150; F* is the least F
    assert min(excess) >= 0 and max(excess) < 1e-4 < 0.05 < warm[1]["free_energy"][0] - star.free_energy
    assert (
        cold[1]["free_energy"][-1] - cold[0]["free_energy"][-1] > 0.05
    )  # far above the grid's error, and it stays


def test_without_noise_no_mass_crosses_the_middle():
    """What is on the right at the start is there at the end: 0.9 for the two bumps."""
    run = experiment.plain("two bumps", [0.0, 60.0])
    share = float(experiment.on_the_right(0.0, run.final))
    assert share == pytest.approx(0.9, abs=1e-6)  # tails of the bumps at 10 standard deviations, upwind steps


def test_particles_start_as_the_density_does():
    """Mean and share on the right of 20000 particles, in standard errors."""
    rho, n = experiment.density("two bumps"), 20_000
    cloud = experiment.cloud("two bumps", 0, n)
    share, mean = (float(fn(0.0, rho)) for fn in experiment.OBSERVED.values())
    assert abs(experiment.on_the_right(0.0, cloud) - share) < 4 * np.sqrt(0.9 * 0.1 / n)
    assert abs(experiment.mean(0.0, cloud) - mean) < 4 * np.sqrt((9 * 0.9 * 0.1 + 0.15**2) / n)


def test_checks_can_fail():
    low = np.full(5, 0.2)
    stuck = experiment.Ends(np.full(5, 1e-3), np.full(5, 0.1), 1e-6, low, low, {"left": 9.0})
    assert not any(check.passed for check in experiment.checks(stuck, 1e-12))


def test_replicas_are_the_single_runs_of_the_seeds():
    """One program for all seeds has the numbers of one run for each."""
    rows = experiment.particles("left", seeds=2, n=20)
    dynamics = wf.Langevin(
        wf.Risk(experiment.problem()), experiment.STEP, beta=experiment.BETA, decay=experiment.DECAY
    )
    for seed, row in enumerate(rows):
        key = jax.random.fold_in(jax.random.key(seed), 0)  # "left" is the first start
        cloud = experiment.cloud("left", seed, 20)
        run = wf.evolve(dynamics, cloud, experiment.ON_THE_WAY, key=key, observe=experiment.OBSERVED)
        alone = np.concatenate([run[what] for what in experiment.OBSERVED])
        # rounding of 2500 steps, of which those near the barrier are unstable at a rate of order 1
        np.testing.assert_allclose(row, alone, atol=1e-8)
