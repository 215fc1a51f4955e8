"""Features of cells, kept: the same numbers as features taken anew, and when they are kept."""

import gc
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.functionals import kept
from wideflow.functionals.kept import OnCells, on_cells

ROUNDING = 1e-13  # of sums over 36 nodes and 60 cells in float64, in another order


@cache
def problem() -> wf.Problem:
    return wf.Problem(x=wf.Gaussian(5), target=wf.single_index("erf"), neuron=wf.Neuron("erf"), noise=0.3)


def density(alpha: float = 2.0) -> wf.GridDensity:
    mass = np.random.default_rng(0).uniform(size=(5, 4, 3))
    neuron = problem().reduced().neuron
    return wf.GridDensity(mass / mass.sum(), (-2, -1, 0.1), (2, 1, 1), neuron=neuron, alpha=alpha)


def risk() -> wf.Risk:
    return wf.Risk(problem().reduced(), wf.Quadrature(6))


def test_risk_and_potential_are_those_of_features_taken_anew():
    R, rho = risk(), density()
    by_cells = R.on_cells(rho)
    assert isinstance(by_cells.expectation(rho), OnCells)
    np.testing.assert_allclose(by_cells.value(rho), R.value(rho), rtol=ROUNDING)
    anew, again = (F.potential(rho.theta, rho) for F in (R, by_cells))
    np.testing.assert_allclose(again, anew, rtol=0, atol=ROUNDING)
    assert by_cells.way(rho) == R.way(rho)


def test_other_points_and_other_grids_are_left_to_features_taken_anew():
    R, rho = risk(), density()
    by_cells = R.on_cells(rho)
    for theta in (rho.theta[:5], rho.theta + 0.1):
        np.testing.assert_array_equal(by_cells.potential(theta, rho), R.potential(theta, rho))
    wider = wf.GridDensity(rho.mass, (-3, -1, 0.1), (2, 1, 1), neuron=rho.neuron)
    np.testing.assert_array_equal(by_cells.value(wider), R.value(wider))
    np.testing.assert_array_equal(by_cells.potential(rho.theta, wider), R.potential(rho.theta, wider))


def test_several_outputs():
    neuron = wf.Neuron("tanh", output="trained", outputs=2)
    x = np.random.default_rng(1).normal(size=(7, 1))
    data = wf.Problem(x=wf.Dataset(x, np.hstack([x, x**2])), neuron=neuron)
    by, mass = wf.Risk(data).ways[0], np.full((2, 3, 4), 1 / 24)
    rho = wf.GridDensity(mass, -1.0, 1.0, neuron=neuron)
    cells = OnCells(by, neuron.features(rho.parts, by.nodes.x), rho.parts)
    np.testing.assert_allclose(cells.risk(rho), by.risk(rho), rtol=ROUNDING)
    anew, again = (way.potential(rho.parts, rho) for way in (by, cells))
    np.testing.assert_allclose(again, anew, rtol=0, atol=ROUNDING)


def test_a_flow_is_the_same_with_and_without(monkeypatch):
    """The steps carry the rounding of the potentials on, each to the tolerance of the last digits."""
    flow, rho = wf.GridFlow(risk(), beta=5.0), density()
    ways = []
    for most in (kept.MOST_KEPT, 0):
        monkeypatch.setattr(kept, "MOST_KEPT", most)
        carry, info = flow.advance(flow.init(rho, jax.random.key(0)), 0.05)
        ways.append((np.asarray(carry.state.mass), int(info.steps)))
    assert ways[0][1] == ways[1][1]
    np.testing.assert_allclose(ways[0][0], ways[1][0], rtol=0, atol=1e3 * ROUNDING)


@pytest.mark.parametrize("spare", [0, -1], ids=["enough", "a byte too little"])
def test_the_bound_on_memory(monkeypatch, spare):
    R, rho = risk(), density()
    way = R.expectation(rho)
    monkeypatch.setattr(kept, "MOST_KEPT", rho.n * way.nodes.m * 8 + spare)
    assert isinstance(on_cells(way, rho), OnCells) == (spare == 0)


def test_a_neuron_without_means_is_not_kept():
    line = wf.Problem(x=wf.Gaussian(1), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="unit"))
    rho = wf.GridDensity(np.full(4, 0.25), -1.0, 1.0, neuron=line.neuron)
    way = wf.Risk(line, wf.Quadrature(4)).ways[0]
    assert on_cells(way, rho) is way


def test_features_are_taken_once_and_go_with_the_risk():
    R, rho = risk(), density()
    features = [R.on_cells(state).ways[0].features for state in (rho, rho.with_mass(rho.mass[::-1]))]
    assert features[0] is features[1]
    finer = wf.GridDensity(jnp.full((6, 4, 3), 1 / 72), (-2, -1, 0.1), (2, 1, 1), neuron=rho.neuron)
    assert R.on_cells(finer).ways[0].features.shape[0] == 72
    known = id(R.ways[0].nodes.x)
    assert known in kept._known
    del R
    gc.collect()
    assert known not in kept._known
