"""Laws of one coordinate; starts as Gauss nodes, panels and low-discrepancy points."""

import math

import jax
import numpy as np
import pytest
from scipy import stats

import wideflow as wf
from wideflow.states.marginals import Isotropic, Panels, Radius

MARGINALS = {
    "normal": (wf.laws.Normal(0.5, 2.0), stats.norm(0.5, 2.0)),
    "uniform": (wf.laws.Uniform(-1.0, 3.0), stats.uniform(-1, 4)),
    "radius": (Radius(1.5, 9.0), stats.chi(9, scale=0.5)),
    "isotropic": (Isotropic(2.0), stats.norm(0, 2.0)),
}


@pytest.mark.parametrize("name", MARGINALS)
def test_rule_quantile_and_draws_are_one_law(name):
    """Even moments by the rule exactly; quantiles exactly; draws by Kolmogorov–Smirnov."""
    marginal, law = MARGINALS[name]
    points, weights = marginal.rule(12)
    for k in (2, 4, 6):
        assert weights @ points**k == pytest.approx(
            law.moment(k), rel=1e-9
        )  # SciPy takes some moments numerically
    levels = np.array([0.01, 0.3, 0.5, 0.9])
    assert np.allclose(marginal.quantile(levels), law.ppf(levels), rtol=1e-10)
    drawn = np.asarray(marginal.sample(jax.random.key(0), (4000, 1), float)).ravel()
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-3


def small_problem(d=5):
    return wf.Problem(x=wf.Gaussian(d), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))


def test_nodes_integrate_the_start():
    """E a², E s², E r² and E a² s² r² of the reduced start of w ~ N(0, γ²/d I), γ = 0.8."""
    start = wf.init(small_problem(), a=2.0, w=0.8).reduced()
    rho = start.nodes({"a": 4, "s": 3, "r": 3})
    a, s, r = np.asarray(rho.theta).T
    mean = lambda q: float(np.asarray(rho.weights) @ q)
    assert rho.n == 36 and start.size({"a": 4, "s": 3, "r": 3}) == 36
    assert mean(a**2) == pytest.approx(4, rel=1e-13)
    assert mean(s**2) == pytest.approx(0.64 / 5, rel=1e-13)
    assert mean(r**2) == pytest.approx(0.64 * 4 / 5, rel=1e-13)
    assert mean(a**2 * s**2 * r**2) == pytest.approx(4 * 0.64 / 5 * 0.64 * 4 / 5, rel=1e-13)


def test_small_weights_are_left_out():
    start = wf.init(small_problem()).reduced()
    every, kept = start.nodes(12), start.nodes(12, least=1e-8)
    assert kept.n < every.n and float(kept.weights.min()) > 1e-8
    assert float(kept.weights.sum()) == pytest.approx(1, abs=1e-12)


def test_low_discrepancy_points_beat_samples():
    """rms error of E[tanh(a) s² + r]: near 1/n for Sobol points, n^−½ for draws."""
    start = wf.init(small_problem()).reduced()
    q = lambda rho: float(np.mean([np.tanh(a + 0.3) * s**2 + r for a, s, r in np.asarray(rho.theta)]))
    nodes = start.nodes(24)
    a, s, r = np.asarray(nodes.theta).T
    exact = float(np.asarray(nodes.weights) @ (np.tanh(a + 0.3) * s**2 + r))
    errors = {n: [abs(q(start.points(n, seed=k)) - exact) for k in range(16)] for n in (64, 256, 1024)}
    rms = [np.sqrt(np.mean(np.square(errors[n]))) for n in errors]
    assert wf.diagnostics.fit_slope(list(errors), rms, 0.18 * np.array(rms)).value < -0.6  # 0.09 its bar
    drawn = [abs(q(start.sample(jax.random.key(k), 1024)) - exact) for k in range(8)]
    assert rms[-1] < 0.3 * np.sqrt(np.mean(np.square(drawn)))


def test_infinite_dimension_starts_on_a_point():
    problem = wf.Problem(x=wf.Gaussian(math.inf), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    rho = wf.init(problem, w=0.7).reduced().nodes(5)
    assert rho.n == 5
    assert np.allclose(rho.theta[:, 1], 0) and np.allclose(rho.theta[:, 2], 0.7)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda law: law.nodes(0), "order"),
        (lambda law: law.nodes({"a": 3, "s": 3}), "missing"),
        (lambda law: law.nodes({"a": 3, "s": 3, "rr": 3}), "Did you mean 'r'"),
        (lambda law: law.points(0), "n must"),
    ],
)
def test_bad_orders(call, says):
    with pytest.raises(ValueError, match=says):
        call(wf.init(small_problem()).reduced())


def test_an_order_that_memory_cannot_hold():
    with pytest.raises(MemoryError, match="lower order"):
        wf.init(small_problem(50)).nodes(3)
    with pytest.raises(MemoryError, match="lower order"):
        wf.init(small_problem()).reduced().nodes(100_000)


def test_a_law_by_draws_alone_has_no_nodes():
    law = wf.init(small_problem(), a=lambda key, shape: jax.random.cauchy(key, shape)).reduced()
    with pytest.raises(ValueError, match="no Gauss nodes"):
        law.nodes(3)
    assert law.sample(jax.random.key(0), 5).n == 5


def test_the_start_of_a_reduced_problem_comes_from_the_full_one():
    with pytest.raises(ValueError, match="before its reduction"):
        wf.init(small_problem().reduced())


@pytest.mark.parametrize("name", MARGINALS)
def test_panels_integrate_every_law(name):
    """Moments, and a step by panels that were cut around it: each cut divides what is missed."""
    marginal, law = MARGINALS[name]
    points, weights = Panels(order=12).rule(marginal)
    for k in (2, 4):
        # far out in the tail a quantile of 1 − 1e-15 has lost its digits
        assert weights @ points**k == pytest.approx(law.moment(k), rel=1e-8)
    panels, missed = Panels(), []
    step = law.ppf(0.37)
    for _ in range(5):
        points, weights = panels.rule(marginal)
        missed.append(abs(weights @ (points < step) - 0.37))
        below = (points < step).reshape(-1, panels.order)
        panels = panels.cut(below.any(axis=1) & ~below.all(axis=1), 8)
    assert missed[-1] < 8.0**-4 and panels.size == 6 * (len(panels.edges) - 1)


def test_panels_as_the_rule_of_one_part():
    law = wf.init(small_problem()).reduced()
    rho = law.nodes({"a": Panels(), "s": 3, "r": 2})
    assert rho.n == law.size({"a": Panels(), "s": 3, "r": 2}) == Panels().size * 6
    assert float(rho.weights @ rho.theta[:, 0] ** 2) == pytest.approx(1.0, abs=1e-6)
