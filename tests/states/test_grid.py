"""Densities on a grid: what they answer, and how they are made."""

import warnings

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

import wideflow as wf

PROBLEM = wf.Problem(x=wf.Gaussian(1), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
LAWS = {
    "normal": (wf.laws.Normal(0.3, 0.7), stats.norm(0.3, 0.7)),
    "uniform": (wf.laws.Uniform(-1.0, 2.0), stats.uniform(-1.0, 3.0)),
}


def on(law, cells=(40, 50), low=(-5.0, -6.0), high=(6.0, 7.0)):
    return wf.on_grid(law, low, high, cells)


@pytest.mark.parametrize(("marginal", "reference"), LAWS.values(), ids=LAWS)
def test_masses_of_a_law_are_exact(marginal, reference):
    """Differences of SciPy's distribution functions, to rounding."""
    grid = on(wf.init(PROBLEM, a=marginal, w=0.8))
    a = np.diff(reference.cdf(np.linspace(-5, 6, 41)))
    w = np.diff(stats.norm(0, 0.8).cdf(np.linspace(-6, 7, 51)))
    np.testing.assert_allclose(grid.mass, np.multiply.outer(a, w), atol=1e-14)


def test_reduced_law():
    """r ~ (γ/√d)χ_{d−1}: the radius is the length of d − 1 normal coordinates."""
    problem = wf.Problem(
        x=wf.Gaussian(6), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="unit")
    )
    grid = wf.on_grid(wf.init(problem, w=1.0).reduced(), (-3.0, 0.0), (3.0, 3.0), (30, 30))
    radius = stats.chi(5, scale=1 / np.sqrt(6))
    np.testing.assert_allclose(
        np.asarray(grid.marginal(1)) * 0.1, np.diff(radius.cdf(np.linspace(0, 3, 31))), atol=1e-13
    )
    assert float(grid.boundary_mass()) < 1e-8  # r = 0 is no boundary


@pytest.mark.parametrize("name", ["signs", "constant", "zero spread"])
def test_atoms_fall_into_their_cells(name):
    law = {
        "signs": wf.laws.Rademacher(1.0),
        "constant": wf.laws.Constant(1.0),
        "zero spread": wf.laws.Normal(1.0, 0.0),
    }[name]
    grid = on(wf.init(PROBLEM, a=law, w=0.8))
    along = np.asarray(grid.mass.sum(1))
    at = np.searchsorted(np.linspace(-5, 6, 41), 1.0) - 1
    assert along[at] == pytest.approx(0.5 if name == "signs" else 1.0)


def test_a_function_and_a_cloud():
    """A density by Gauss nodes in each cell: exact for polynomials, eight digits for this Gaussian; a cloud's
    histogram within 5 standard errors of it."""
    law = wf.init(PROBLEM, a=0.7, w=0.8)
    density = lambda theta: jnp.exp(-0.5 * (theta[0] / 0.7) ** 2 - 0.5 * (theta[1] / 0.8) ** 2)
    grid = on(law)
    made = wf.on_grid(density, (-5.0, -6.0), (6.0, 7.0), (40, 50), neuron=PROBLEM.neuron)
    np.testing.assert_allclose(made.mass, grid.mass, atol=1e-8)
    n = 20_000
    cloud = on(law.sample(jax.random.key(0), n, alpha=2.0))
    assert float(cloud.alpha) == 2.0
    error = np.sqrt(np.asarray(grid.mass) / n)
    assert (np.abs(np.asarray(cloud.mass - grid.mass)) < 5 * error + 2 / n).all()


def test_it_predicts_as_its_particles_do():
    grid = on(wf.init(PROBLEM, a=wf.laws.Normal(1.0, 0.3), w=wf.laws.Normal(0.5, 0.8)))
    x = jnp.linspace(-2, 2, 7)[:, None]
    f = np.array(
        [
            np.sum(np.asarray(grid.mass).ravel() * PROBLEM.neuron.features(grid.parts, x)[:, i])
            for i in range(7)
        ]
    )
    np.testing.assert_allclose(grid(x), f, rtol=1e-12, atol=1e-15)
    risk = wf.Risk(PROBLEM)
    assert "quadrature" in risk.way(grid)  # never a table of all pairs of cells
    theta = grid.theta[:5]
    np.testing.assert_allclose(
        risk.potential(theta, grid),
        wf.Risk(PROBLEM, wf.Quadrature()).potential(theta, grid.particles),
        rtol=1e-10,
    )


def test_moments_and_draws():
    """E and Cov of draws within 5 standard errors; the cells' own spread is h²/12."""
    grid = on(wf.init(PROBLEM, a=wf.laws.Normal(0.5, 0.7), w=0.8))
    draws = np.asarray(grid.sample(jax.random.key(1), 40_000).theta)
    mean, cov = np.asarray(grid.mean()), np.asarray(grid.covariance())
    assert (np.abs(draws.mean(0) - mean) < 5 * np.sqrt(np.diag(cov) / 40_000)).all()
    assert (np.abs(np.cov(draws.T) - cov) < 5 * np.sqrt(2 / 40_000)).all()
    # exact masses at the centres spread by h²/12 more (Sheppard), and by h²/12 within the cell
    np.testing.assert_allclose(cov[0, 0], 0.49 + (11 / 40) ** 2 / 6, rtol=1e-6)


def test_mass_outside_is_told():
    with pytest.warns(UserWarning, match="outside the grid"):
        wf.on_grid(wf.init(PROBLEM), (-2.0, -2.0), (2.0, 2.0), 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wf.on_grid(wf.init(PROBLEM), (-7.0, -7.0), (7.0, 7.0), 10)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: wf.on_grid(wf.init(PROBLEM), (1.0, 0.0), (0.0, 1.0), 5), "low < high"),
        (lambda: wf.on_grid(wf.init(PROBLEM), 0.0, 1.0, 1), "cells"),
        (lambda: wf.on_grid(wf.init(PROBLEM), (0.0,) * 3, 1.0, 5), "2 axes"),
        (lambda: wf.on_grid("law", 0.0, 1.0, 5), "wf.Law, wf.Particles or a density"),
        (lambda: wf.on_grid(lambda t: jnp.sum(t), -1.0, 1.0, 5, neuron=PROBLEM.neuron), "finite and >= 0"),
        (lambda: wf.on_grid(lambda t: t, (-1.0, -1.0), 1.0, 5, neuron=PROBLEM.neuron), "one number"),
        (lambda: wf.on_grid(wf.init(PROBLEM), 90.0, 100.0, 5), "no mass"),
        (
            lambda: wf.on_grid(wf.init(PROBLEM, a=lambda key, shape: jnp.ones(shape)), -1.0, 1.0, 5),
            "distribution",
        ),
        (lambda: wf.GridDensity(np.ones(4), 0.0, 1.0, neuron=PROBLEM.neuron), "axes"),
        (lambda: wf.GridDensity(np.ones((4, 4)), 0.0, 1.0, neuron=PROBLEM.neuron), "sum to 1"),
        (lambda: wf.GridDensity(np.full((4, 4), np.nan), 0.0, 1.0, neuron=PROBLEM.neuron), "finite"),
        (lambda: wf.GridDensity(np.ones((2, 2, 2, 2)) / 16, 0.0, 1.0, neuron=PROBLEM.neuron), "axes"),
        (lambda: wf.GridDensity(np.ones((4, 4)) / 16, 0.0, 1.0, neuron="erf"), "neuron"),
    ],
)
def test_bad_input(call, told):
    with pytest.raises(ValueError, match=told):
        call()


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(1, 3))
def test_a_histogram_keeps_the_cloud(seed, axes):
    """Masses sum to 1, and the mean is off by half a cell at most."""
    rng = np.random.default_rng(seed)
    neuron = wf.CustomNeuron(lambda x, t: t @ x, axes)
    cloud = wf.Particles(rng.uniform(-1, 1, (30, axes)), rng.dirichlet(np.ones(30)), neuron=neuron)
    grid = wf.on_grid(cloud, -1.0, 1.0, tuple(rng.integers(2, 9, axes)))
    assert float(grid.mass.sum()) == pytest.approx(1.0, abs=1e-14)
    shift = np.abs(np.asarray(grid.mean()) - np.asarray(cloud.weights @ cloud.theta))
    assert (shift <= np.asarray(grid.widths) / 2 + 1e-12).all()


def test_both_tails_have_their_digits():
    """A symmetric law is symmetric on a symmetric grid, out to masses of 1e-190 on each axis."""
    mass = np.asarray(wf.on_grid(wf.init(PROBLEM, a=0.2, w=0.2), -6.0, 6.0, 40).mass)
    along = mass.sum(1)
    assert along.min() > 0
    np.testing.assert_allclose(along, along[::-1], rtol=1e-9)  # of logarithms of 400


def test_a_corner_counts_once():
    mass = np.zeros((4, 5))
    mass[0, 0], mass[3, 2], mass[1, 1] = 0.5, 0.3, 0.2
    grid = wf.GridDensity(mass, -1.0, 1.0, neuron=PROBLEM.neuron)
    assert float(grid.boundary_mass()) == pytest.approx(0.8, abs=1e-15)
