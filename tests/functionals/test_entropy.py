"""Entropy and free energy: exact on grids, estimated with an error bar on particles."""

import jax
import numpy as np
import pytest
from scipy.special import gammaln

import wideflow as wf
from noisy_case import NoisyLinear

LINE = NoisyLinear()


def gaussian_entropy(sd, dim=1):
    return dim * (np.log(sd) + 0.5 * (1 + np.log(2 * np.pi)))


def test_entropy_of_a_grid_has_order_two():
    """That of the density which is constant on cells: above the Gaussian's by h²/24 ∫ρ'²/ρ."""
    errors = [float(wf.Entropy().value(LINE.start(n))) - gaussian_entropy(0.6) for n in (100, 200)]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[1] == pytest.approx((12 / 200) ** 2 / 24 / 0.36, rel=0.02)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_neighbours_within_their_error(dim):
    """20 clouds of N(0, s²I): the mean is off by 4 standard errors of the mean, or 2 stated errors, at most;
    the stated errors are those seen, within a factor (a spread of 20 has an error of 16 %)."""
    neuron = wf.CustomNeuron(lambda x, t: t @ x, dim)
    rng = np.random.default_rng(dim)
    found = [
        wf.Entropy(4).estimate(wf.Particles(0.6 * rng.normal(size=(1000, dim)), neuron=neuron))
        for _ in range(20)
    ]
    values, errors = np.array(found).T
    off = values.mean() - gaussian_entropy(0.6, dim)
    assert abs(off) < max(4 * values.std(ddof=1) / np.sqrt(20), 2 * errors.mean())
    assert 0.5 < errors.mean() / np.hypot(values.std(ddof=1), off) < 4


def test_uniform_on_a_ball():
    """Another law with a known entropy, log of the volume; its edge biases by less than 4 errors."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(4000, 3))
    points = u / np.linalg.norm(u, axis=1)[:, None] * rng.uniform(size=(4000, 1)) ** (1 / 3)
    estimate = wf.Entropy(3).estimate(wf.Particles(points, neuron=wf.CustomNeuron(lambda x, t: t @ x, 3)))
    exact = 1.5 * np.log(np.pi) - gammaln(2.5)
    assert abs(estimate.value - exact) < 4 * estimate.error


def test_the_exact_one_of_particles_is_refused():
    rho = wf.init(LINE.problem, w=1.0).sample(jax.random.key(0), 50)
    with pytest.raises(ValueError, match=r"no density.*neighbours=4"):
        wf.Entropy().value(rho)
    with pytest.raises(ValueError, match="Langevin"):
        wf.Entropy().drift(rho)
    with pytest.raises(ValueError, match="more than 8"):
        wf.Entropy(4).estimate(wf.init(LINE.problem, w=1.0).sample(jax.random.key(0), 6))
    same = wf.Particles(np.zeros((20, 1)), neuron=LINE.problem.neuron)
    with pytest.raises(ValueError, match="no density"):
        wf.Entropy(4).estimate(same)
    with pytest.raises(ValueError, match="equal weight"):
        weights = np.arange(1.0, 21.0)
        wf.Entropy(4).estimate(
            wf.Particles(np.linspace(0, 1, 20)[:, None], weights / weights.sum(), neuron=LINE.problem.neuron)
        )


def test_free_energy_of_a_gaussian():
    """On a grid to O(h²); of particles within 4 standard errors (of entropy and sample)."""
    free = wf.FreeEnergy(LINE.risk, beta=LINE.beta, decay=LINE.decay)
    assert float(free.energy(LINE.start(400))) == pytest.approx(LINE.energy(0.0), abs=2 * (12 / 400) ** 2)
    rng = np.random.default_rng(3)
    n = 4000
    rho = wf.Particles(LINE.m0[0] + LINE.s0 * rng.normal(size=(n, 1)), neuron=LINE.problem.neuron)
    estimated = wf.FreeEnergy(LINE.risk, beta=LINE.beta, decay=LINE.decay, neighbours=4)
    bar = wf.Entropy(4).estimate(rho).error / LINE.beta
    of_sample = (1.2 + LINE.decay) * LINE.s0 / np.sqrt(n)  # |∇Ψ_λ| ≤ 1.5 at the mean
    assert abs(float(estimated.energy(rho)) - LINE.energy(0.0)) < 4 * np.hypot(bar, of_sample)


def test_first_variation_on_a_grid():
    """F(ρ + ε(δ_c − ρ)) by differences: the potential is the first variation."""
    grid = LINE.start(60, 4.0)
    free = wf.FreeEnergy(LINE.risk, beta=LINE.beta, decay=LINE.decay)
    potential = np.asarray(free.potential(grid.theta, grid))
    eps = 1e-6
    for cell in (20, 25, 33):
        moved = [grid.with_mass((1 - e) * grid.mass + e * np.eye(60)[cell]) for e in (eps, -eps)]
        slope = (free.energy(moved[0]) - free.energy(moved[1])) / (2 * eps)
        expected = potential[cell] - np.sum(np.asarray(grid.mass) * potential)
        assert float(slope) == pytest.approx(expected, rel=1e-5, abs=1e-7)  # differences of order eps²


def test_reduced_entropy_is_that_in_r_d():
    """w ~ N(0, s²I) in R^d through (s, r): S(ρ̄) + E log(|S^{d−2}| r^{d−2}) is the entropy in R^d."""
    d, beta = 4, 2.0
    problem = wf.Problem(
        x=wf.Gaussian(d), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="unit")
    )
    gaps = []
    for cells in (30, 60):
        grid = wf.on_grid(wf.init(problem, w=1.0).reduced(), (-4.0, 0.0), (4.0, 4.0), cells)
        risk = wf.Risk(problem.reduced(), wf.Quadrature(4))  # of no matter: it cancels
        with_noise = wf.FreeEnergy(risk, beta=beta)
        gaps.append(float(with_noise.energy(grid) - risk.energy(grid)) + gaussian_entropy(0.5, d) / beta)
    assert abs(gaps[1]) < 2 * (8 / 60) ** 2
    assert abs(gaps[1]) < abs(gaps[0]) / 3  # order 2 is a factor of 4
