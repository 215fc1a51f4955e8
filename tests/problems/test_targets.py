"""Targets, written out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf

X = np.random.default_rng(0).normal(size=(7, 3))
U = np.array([1.0, -2.0, 2.0])  # of norm 3


def on(target):
    """y = f*(x), through a problem."""
    problem = wf.Problem(x=wf.Gaussian(3), target=target, neuron=wf.Neuron("erf"))
    return np.asarray(problem.target(jnp.asarray(X)))


CASES = {
    "first axis": (wf.single_index("tanh"), np.tanh(X[:, 0])),
    "direction is normalised": (wf.single_index("tanh", U), np.tanh(X @ U / 3)),
    "tiny direction": (wf.single_index("identity", 1e-200 * U), X @ U / 3),
    "with options": (
        wf.single_index("leaky_relu", slope=0.5),
        np.where(X[:, 0] > 0, X[:, 0], X[:, 0] / 2),
    ),
    "hermite": (wf.hermite(2, U), ((X @ U / 3) ** 2 - 1) / np.sqrt(2)),
    "polynomial": (wf.polynomial([1.0, -2.0, 0.0, 0.5]), 1 - 2 * X[:, 0] + 0.5 * X[:, 0] ** 3),
    "polynomial along a direction": (wf.polynomial([0.0, 1.0, 1.0], U), X @ U / 3 + (X @ U / 3) ** 2),
    "multi-index on axes": (wf.multi_index(lambda s: s[0] * s[1], 2), X[:, 0] * X[:, 1]),
    "multi-index along directions": (
        wf.multi_index(lambda s: s[0] - s[1] ** 2, 2, [U, [0.0, 1.0, 0.0]]),
        X @ U - X[:, 1] ** 2,  # as they are given, not normalised
    ),
    "teacher": (
        wf.teacher([U, -U], a=[1.0, 2.0], b=[0.1, 0.2]),
        np.maximum(X @ U + 0.1, 0) + 2 * np.maximum(-X @ U + 0.2, 0),
    ),
    "teacher is a mean by default": (wf.teacher(np.eye(3), link="erf"), None),
    "function": (lambda x: jnp.sum(x**2), np.sum(X**2, axis=1)),
}


@pytest.mark.parametrize("name", CASES)
def test_target(name):
    target, expected = CASES[name]
    if expected is None:
        expected = np.mean([on(wf.single_index("erf", e)) for e in np.eye(3)], axis=0)
    assert np.allclose(on(target), expected, rtol=1e-13, atol=1e-14)  # rounding


def test_function_of_several_outputs():
    problem = wf.Problem(x=wf.Gaussian(3), target=lambda x: x[:2] ** 2, neuron=wf.Neuron("erf", outputs=2))
    assert np.allclose(problem.target(jnp.asarray(X)), X[:, :2] ** 2, rtol=1e-15)
    assert problem.sample(jax.random.key(0), 4).y.shape == (4, 2)


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_hermite_has_unit_second_moment(degree):
    """E y² = 1, and E y = 0 for degree ≥ 1, along any direction: Gauss nodes of order 6 are exact."""
    problem = wf.Problem(x=wf.Gaussian(3), target=wf.hermite(degree, U), neuron=wf.Neuron("erf"))
    nodes = problem.quadrature(6)
    assert float(jnp.sum(nodes.weights * nodes.y**2)) == pytest.approx(1.0, rel=1e-12)
    assert float(jnp.sum(nodes.weights * nodes.y)) == pytest.approx(float(degree == 0), abs=1e-12)


def test_equal_polynomials_are_one_static_function():
    """So that a second problem with the same target does not compile anew."""
    assert wf.polynomial([1.0, 2.0]).fn is wf.polynomial([1.0, 2.0]).fn
    assert wf.polynomial([1.0, 2.0]).fn is not wf.polynomial([1.0, 3.0]).fn


def test_targets_follow_the_dtype_of_x():
    for target in (wf.single_index("erf", U), wf.polynomial([0.0, 1.0], U), wf.teacher([U])):
        assert target(jnp.asarray(X, jnp.float32)).dtype == jnp.float32


def test_a_target_that_is_not_finite_is_named_where_nodes_are_made():
    problem = wf.Problem(
        x=wf.Gaussian(2), target=lambda x: jnp.log(x[0] + 1.5), neuron=wf.Neuron(lambda h: jnp.tanh(h))
    )
    with pytest.raises(ValueError, match=r"The target must be finite, but gives nan at x = \[.*Mend"):
        wf.Risk(problem)
