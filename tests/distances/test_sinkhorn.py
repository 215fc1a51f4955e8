"""Entropic transport: its bounds hold the exact W2, and close as ε falls."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import wideflow as wf
from exact_cases import slope
from wideflow.distances.sinkhorn import _bracket, _Cloud, _Potentials
from wideflow.distances.wasserstein import w2

NEURON = wf.CustomNeuron(lambda x, t: t @ x, 2)


def clouds(dim=2, n=60, m=45, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sign(rng.normal(size=(n, 1))) + 0.4 * rng.normal(size=(n, dim))
    return x, 0.5 + rng.normal(size=(m, dim)), (rng.dirichlet(np.ones(n)), None)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.3}, {"epsilon": 0.01}, {"debiased": True}], ids=str)
@pytest.mark.parametrize("dim", [1, 2, 6])
def test_bounds_hold_the_exact_value(dim, options):
    x, y, weights = clouds(dim)
    exact = float(w2(x, y, "simplex", weights=weights))
    found = w2(x, y, "sinkhorn", weights=weights, **options)
    assert abs(found.value - exact) <= found.error
    assert found.error < 0.2 * exact and "stopped" not in found.method


@pytest.mark.parametrize("iterations", [1, 3, 12])
def test_bounds_hold_when_it_is_stopped(iterations):
    """Any potentials give a lower bound and any plan a coupling; fewer steps only widen the gap."""
    x, y, weights = clouds()
    exact = float(w2(x, y, weights=weights))
    found = w2(x, y, "sinkhorn", weights=weights, iterations=iterations, epsilon=0.01)
    assert abs(found.value - exact) <= found.error
    assert f"stopped after {iterations} iterations" in found.method


def test_bounds_against_whole_tables():
    """From any f: the plan with g from f, rounded to a coupling with both marginals, and the dual value after
    two c-transforms, by tables of n × m in NumPy."""
    rng = np.random.default_rng(1)
    x, y, p, q = (
        rng.normal(size=(8, 2)),
        rng.normal(size=(5, 2)),
        rng.dirichlet(np.ones(8)),
        rng.dirichlet(np.ones(5)),
    )
    cost, eps, f = cdist(x, y, "sqeuclidean"), 0.7, rng.normal(size=8)
    g = -eps * np.log(p @ np.exp((f[:, None] - cost) / eps))
    plan = np.outer(p, q) * np.exp((f[:, None] + g - cost) / eps)
    plan *= np.minimum(p / plan.sum(1), 1)[:, None]
    rest = p - plan.sum(1)
    plan += np.outer(rest, q - plan.sum(0)) / rest.sum()
    assert np.allclose(plan.sum(1), p, atol=1e-15) and np.allclose(plan.sum(0), q, atol=1e-15)
    hard = (cost - f[:, None]).min(0)
    dual = q @ hard + p @ (cost - hard).min(1)

    mu, nu = (_Cloud(jnp.asarray(v), jnp.asarray(w)) for v, w in ((x, p), (y, q)))
    number = jnp.asarray(eps)
    less = lambda potential, points: jnp.asarray(potential - np.sum(points**2, axis=1))
    found = _Potentials(less(f, x), less(g, y), number, number, number, number)
    lower, upper = _bracket(mu, nu, found)
    assert float(upper) == pytest.approx(np.sum(plan * cost), rel=1e-13)
    assert float(lower) == pytest.approx(dual, rel=1e-13) and lower < upper


def test_error_falls_with_epsilon():
    """Between smooth densities the plan's cost is too large by about Dε/2, D = 2, so that the error of W2 is
    of first order as long as the blur √ε is wider than the gaps between points."""
    axis = (np.arange(20) + 0.5) / 20
    x = np.stack([v.ravel() for v in np.meshgrid(axis, axis)], axis=1)
    y = x**2 + 0.3 * x  # the gradient of a convex function, so optimal
    exact = np.sqrt(np.mean(np.sum((x - y - (x - y).mean(0)) ** 2, axis=1)))
    y = y - y.mean(0)
    epsilons = 0.16 / 2.0 ** np.arange(4)
    found = [w2(x - x.mean(0), y, "sinkhorn", epsilon=e, tol=1e-5) for e in epsilons]
    assert all(abs(d.value - exact) <= d.error for d in found)
    # of W2²; what blur at the boundary takes away is of relative order √ε
    upper = [(d.value + d.error) ** 2 - exact**2 for d in found]
    assert slope(epsilons, upper) == pytest.approx(1.0, abs=0.25)


def test_debiased_is_nearer_where_measures_are_near():
    """For μ = ν the bias is all there is; the debiased divergence has none, up to `tol` of the marginals."""
    x, _, _ = clouds(n=50)
    plain, debiased = (w2(x, x[::-1], "sinkhorn", debiased=on) for on in (False, True))
    assert debiased.value < 1e-3 < plain.value  # 0 exactly, but for the order of sums under a root
    assert plain.value <= plain.error and debiased.value <= debiased.error


def test_translation_is_taken_out():
    """W2² = |shift|² + the rest, so that entropy blurs only the rest."""
    x, _, _ = clouds()
    near = w2(x, x, "sinkhorn")
    far = w2(x, x + np.array([300.0, -400.0]), "sinkhorn")
    assert (
        abs(far.value - 500.0) <= far.error < near.error**2 / 200
    )  # half a width (2·near)²/(2·500), and more


def test_points_and_cells():
    """A single point: W2² is a second moment. A density on a plane against it: with h²/12 of each axis."""
    x, _, _ = clouds()
    found = w2(x, [[1.0, 2.0]], "sinkhorn")
    exact = np.sqrt(np.mean(np.sum((x - [1.0, 2.0]) ** 2, axis=1)))
    assert abs(found.value - exact) <= found.error + 1e-12 and found.error < 1e-6  # only one coupling
    assert float(w2([[0.0, 0.0]], [[3.0, 4.0]], "sinkhorn")) == 5.0
    mass = np.random.default_rng(0).dirichlet(np.ones(20)).reshape(4, 5)
    rho = wf.GridDensity(mass, [0.0, 0.0], [1.0, 2.0], neuron=NEURON)
    found = w2(rho, [[0.0, 0.0]], "sinkhorn")
    exact = np.sqrt(float(np.sum(rho.mean() ** 2) + np.trace(rho.covariance())))
    assert abs(found.value - exact) <= found.error and "cells as atoms" in found.method


def test_the_same_whatever_the_default_precision():
    x, y, _ = clouds()
    here = w2(x, y, "sinkhorn")
    with jax.enable_x64(False):
        there = w2(x, y, "sinkhorn")
    assert there == here


def test_epsilon_below_the_digits_is_refused():
    x, y, _ = clouds()
    with pytest.raises(ValueError, match="epsilon must be at least"):
        w2(x, y, "sinkhorn", epsilon=1e-16)
    with pytest.raises(ValueError, match="epsilon must be a number > 0"):
        w2(x, y, "sinkhorn", epsilon=-1.0)
