"""The problem of the spikes on the torus, and its verdict, by smaller cases."""

import numpy as np
import pytest

import wideflow as wf
from wideflow.experiments import noise_annealing as experiment


def test_the_risk_is_that_of_fourier_coefficients():
    """½Σp(k)|ρ̂(k) − ρ̂*(k)|², by complex exponentials over half of the frequencies, p summing to 1 twice."""
    problem, start, places = experiment.spikes(3)
    k = np.asarray(problem.x.x)[: len(problem.x.x) // 2, :2]
    p = np.asarray(problem.x.weights)[: len(k)]
    hat = lambda theta: np.exp(2j * np.pi * k @ np.asarray(theta).T).mean(axis=1)
    wanted = 0.5 * np.sum(p * np.abs(hat(start.theta) - hat(places)) ** 2)
    assert float(wf.Risk(problem).value(start)) == pytest.approx(wanted, rel=1e-12)
    # −k has the conjugate coefficient: none is missing, none is there twice
    assert len({tuple(v) for v in np.concatenate([k, -k])}) == (2 * experiment.HIGHEST + 1) ** 2 - 1


def test_the_spikes_themselves_have_risk_zero():
    problem, _, places = experiment.spikes(4)
    best = wf.Particles(places, neuron=problem.neuron)
    assert float(wf.Risk(problem).value(best)) < 1e-28  # rounding, squared


def test_two_starts_by_both_ways():
    ts = [0.0, 10.0, experiment.TIME]
    ends = np.array([[run["risk"][-1] for run in experiment.both(seed, ts)] for seed in (0, 1)])
    assert np.all(ends[:, 1] < ends[:, 0])  # all but a few do in the whole experiment


def test_checks_can_fail():
    same = np.full((20, 2), 1e-2)
    assert not any(check.passed for check in experiment.checks(same * [1.0, 1.1]))
    mixed = np.where(np.arange(20)[:, None] % 2, same * [1.0, 0.5], same * [1.0, 2.0])
    assert not any(check.passed for check in experiment.checks(mixed))
