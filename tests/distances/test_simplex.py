"""W2 by the network simplex against the assignment problem and known optimal maps."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import wideflow as wf
from wideflow import _checks
from wideflow.distances.wasserstein import w2

NEURON = wf.CustomNeuron(lambda x, t: t @ x, 2)


def by_assignment(x, y):
    cost = cdist(x, y, "sqeuclidean")
    return np.sqrt(cost[linear_sum_assignment(cost)].mean())


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_against_assignment(dim):
    """Between equal numbers of equal atoms a permutation is optimal: another algorithm of another library."""
    rng = np.random.default_rng(dim)
    for n in (1, 2, 60):
        x, y = rng.normal(size=(n, dim)), 3 + 2 * rng.normal(size=(n, dim))
        found = w2(x, y, "simplex")
        assert abs(found.value - by_assignment(x, y)) <= found.error + 1e-13
        assert found.error < 1e-10 and found.method == "network simplex"


def test_weights_against_repeated_points():
    """Weights k/10 are k equal atoms at the same place."""
    rng = np.random.default_rng(0)
    x, y, k, m = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), np.array([5, 2, 3]), np.array([1, 4, 0, 5])
    found = w2(wf.Particles(x, k / 10, neuron=NEURON), y, "simplex", weights=(None, m / 10))
    expected = by_assignment(np.repeat(x, k, axis=0), np.repeat(y, m, axis=0))
    assert float(found) == pytest.approx(expected, rel=1e-12)


def test_on_the_line_against_quantiles():
    rng = np.random.default_rng(3)
    x, y, p = rng.normal(size=(40, 1)), rng.normal(size=(70, 1)), rng.dirichlet(np.ones(40))
    one, two = (w2(x, y, method, weights=(p, None)) for method in ("simplex", "quantiles"))
    assert abs(one.value - two.value) <= one.error + two.error < 1e-10


def test_gradient_of_a_convex_function_is_optimal():
    """y = m + Tx, T symmetric and positive: between a cloud and its image W2² is the mean of |x − y|². For a
    draw of N(0, I) that is Bures' distance to N(m, T²) within standard errors."""
    rng = np.random.default_rng(4)
    T, m = np.array([[1.5, 0.4], [0.4, 0.6]]), np.array([1.0, -0.5])
    x = rng.normal(size=(400, 2))
    y = m + x @ T
    squares = np.sum((x - y) ** 2, axis=1)
    found = w2(x, rng.permutation(y))
    assert abs(found.value - np.sqrt(squares.mean())) <= found.error + 1e-14 and found.error < 1e-10
    bures = float(wf.distances.w2_gaussian(np.zeros(2), np.eye(2), m, T @ T)) ** 2
    assert abs(found.square - bures) < 4 * squares.std() / np.sqrt(400)
    # Gelbrich: the Gaussians of the same moments are nearer, and for an affine map just as near
    gaussian = w2(x, y, "gaussian")
    assert gaussian.value == pytest.approx(found.value, abs=gaussian.error) and gaussian.error < 1e-6


def test_gaussians_from_independent_draws():
    """|W2(μ_n, ν_n) − W2| ≤ W2(μ_n, μ) + W2(ν_n, ν), which W2(μ_n, μ'_n) of two more draws estimates from
    above: E W2(μ_n, μ) ≤ E W2(μ_n, μ'_n) by convexity."""
    rng = np.random.default_rng(5)
    draw = lambda: rng.normal(size=(500, 2))
    other = lambda: np.array([2.0, 0.0]) + draw() * np.array([2.0, 0.5])
    exact = np.sqrt(4 + 1 + 0.25)
    allowed = float(w2(draw(), draw())) + float(w2(other(), other()))
    assert abs(float(w2(draw(), other())) - exact) < allowed < 0.6


def test_says_itself():
    found = w2([[0.0, 0.0]], [[3.0, 4.0]])
    assert str(found) == f"5 ± {found.error:.1g} (network simplex)" and found.error < 1e-13


def test_unfinished_is_an_error():
    x, y = np.random.default_rng(6).normal(size=(2, 50, 2))
    with pytest.raises(
        ValueError, match=r"did not end in 3 iterations between 50 and 50 .*iterations="
    ) as told:
        w2(x, y, "simplex", iterations=3)
    assert "sinkhorn" in str(told.value)


def test_too_large_is_refused_before(monkeypatch):
    monkeypatch.setattr(_checks, "available_memory", lambda: 1e6)
    x = np.zeros((300, 2))
    with pytest.raises(MemoryError, match="plan between 300 and 300 points"):
        w2(x, x, "simplex")
