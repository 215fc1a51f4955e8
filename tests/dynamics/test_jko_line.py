"""The minimising movement by quantiles, against the Gaussian step in closed form and the laws behind it."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

import wideflow as wf
from dynamics.jko_cases import JKO, W_STAR, erf_risk, linear_risk, moments
from exact_cases import gaussian_flow, gaussian_jko_step, slope
from wideflow.dynamics.jko.quantiles import gap_rule, line_entropy

RISK, ERF = linear_risk(), erf_risk()
LAW = wf.init(RISK.problem, theta=wf.laws.Normal(-0.5, 0.7))


def quantiles(n):
    """Equal weights at the levels (j − ½)/n of N(−0.5, 0.7²)."""
    levels = (np.arange(n) + 0.5) / n
    return wf.Particles((-0.5 + 0.7 * norm.ppf(levels))[:, None], neuron=RISK.problem.neuron)


@pytest.mark.parametrize("decay, beta", [(0.0, 2.0), (0.3, 5.0), (0.7, np.inf)])
def test_the_closed_form_is_the_minimum(decay, beta):
    """By brute force over Gaussians, another code: F + W2²/(2τ) written out."""
    m0, s0, tau = -0.5, 0.7, 0.2

    def objective(v):
        m, s = v[0], np.exp(v[1])
        energy = 0.5 * (W_STAR - m) ** 2 + decay / 2 * (m**2 + s**2) - np.log(s) / beta
        return energy + ((m - m0) ** 2 + (s - s0) ** 2) / (2 * tau)

    found = minimize(objective, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-16}).x
    expected = gaussian_jko_step(m0, s0, W_STAR, tau, decay, beta)
    # 1e-6: the value is flat to 1e-16 within about 1e-8 of its minimum
    np.testing.assert_allclose([found[0], np.exp(found[1])], expected, atol=1e-6)


@pytest.mark.parametrize("step, decay, beta", [(0.1, 0.3, 5.0), (1.0, 0.3, 5.0), (0.1, 0.0, 0.5)])
@pytest.mark.parametrize("start", [LAW.nodes(32), quantiles(500)], ids=["nodes", "equal weights"])
def test_one_gaussian_step(start, step, decay, beta):
    """Gauss nodes have the law's own mean and standard deviation; those of 500 equal weights are a little
    smaller than the law's, and are what is compared."""
    run = wf.evolve(JKO(RISK, step, beta=beta, decay=decay), start, [step])
    m0, s0 = moments(start)
    expected = gaussian_jko_step(m0, s0, W_STAR, step, decay, beta)
    assert run.status == "ok"
    np.testing.assert_allclose(np.concatenate(moments(run.final)), np.concatenate(expected), atol=1e-6)
    if start.n == 32:  # the law itself
        np.testing.assert_allclose([m0[0], s0[0]], [-0.5, 0.7], atol=1e-12)
    else:  # every particle keeps its place in the Gaussian: the rule is well balanced, up to the tolerance
        shape = (start.theta - m0) / s0
        np.testing.assert_allclose(run.final.theta, expected[0] + expected[1] * shape, atol=1e-7)


def test_first_order_in_the_step():
    steps, errors = [0.2, 0.1, 0.05, 0.025], []
    start = quantiles(100)
    m0, s0 = moments(start)
    exact = np.concatenate(gaussian_flow(m0, s0, W_STAR, 1.0, 0.3, 5.0))
    for step in steps:
        run = wf.evolve(JKO(RISK, step, beta=5.0, decay=0.3), start, [1.0])
        errors.append(np.abs(np.concatenate(moments(run.final)) - exact))
    for error in np.transpose(errors):
        # 1 with a correction of the next order, a few times τ
        assert slope(steps, error) == pytest.approx(1.0, abs=0.1)


def test_entropy_of_a_gaussian_is_exact():
    start = quantiles(50)
    expected = 0.5 * np.log(2 * np.pi * np.e * moments(start)[1][0] ** 2)
    assert line_entropy(start.theta[:, 0], start.weights) == pytest.approx(expected, abs=1e-12)  # rounding
    for weights in (start.weights, LAW.nodes(64).weights):
        rule = gap_rule(weights)
        assert (rule.weights > 0).all() and float(rule.weights.sum()) == pytest.approx(1.0, abs=1e-12)


def test_entropy_of_another_law():
    """The logistic law has entropy 2; its tails are heavier than Gaussian, and what lies beyond the last
    quantile is of order log n/n."""
    sizes = [100, 300, 900]
    errors = []
    for n in sizes:
        levels = (np.arange(n) + 0.5) / n
        line = jnp.asarray(np.log(levels / (1 - levels)))
        errors.append(abs(float(line_entropy(line, jnp.full(n, 1 / n))) - 2.0))
    assert slope(sizes, errors) < -0.8 and errors[-1] < 5e-3  # log n/n from 100 to 900 has slope −0.83


@pytest.mark.slow
def test_gibbs_measure_stays():
    """The quantiles of e^{−βq} for a q of two wells, by numerical integration: the step moves them by the
    error of the rule alone, which falls with n."""
    beta, q = 2.0, lambda t: (t**2 - 1) ** 2 / 2
    grid = np.linspace(-4, 4, 200_001)
    levels = np.cumsum(np.exp(-beta * q(grid)))
    levels /= levels[-1]
    penalty, sizes, moves = wf.Moment(lambda t: (t[0] ** 2 - 1) ** 2 / 2), [50, 150, 450], []
    for n in sizes:
        at = np.interp((np.arange(n) + 0.5) / n, levels, grid)[:, None]
        start = wf.Particles(at, neuron=RISK.problem.neuron)
        final = wf.evolve(JKO(penalty, 0.1, beta=beta), start, [0.1]).final
        moves.append(np.sqrt(np.mean((np.asarray(final.theta) - at) ** 2)))
    # 1/n with a logarithm: what a law that is not Gaussian has beyond its last quantiles
    assert slope(sizes, moves) < -0.8 and moves[-1] < 1e-3


@pytest.mark.slow
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    step=st.floats(0.02, 2.0),
    beta=st.floats(0.5, 50.0),
    decay=st.floats(0.0, 1.0),
)
def test_free_energy_falls_by_the_distance(seed, step, beta, decay):
    """F(ρ_{k+1}) + W2²/(2τ) ≤ F(ρ_k), the distance by another code; summed, Σ W2² ≤ 2τ(F_0 − F_K)."""
    theta = np.random.default_rng(seed).normal(0.3, 1.0, size=(12, 1))
    run = wf.evolve(
        JKO(ERF, step, beta=beta, decay=decay),
        wf.Particles(theta, neuron=ERF.problem.neuron),
        np.arange(5) * step,
    )
    assert run.status == "ok"
    free = [
        float(ERF.value(s) + decay * s.second_moment() - line_entropy(s.theta[:, 0], s.weights) / beta)
        for s in run.states
    ]
    pairs = zip(run.states[:-1], run.states[1:], strict=True)
    square = np.array([float(wf.distances.w2_line(a.theta[:, 0], b.theta[:, 0])) ** 2 for a, b in pairs])
    assert (np.diff(free) + square / (2 * step) <= 1e-9 * (1 + np.abs(free[:-1]))).all()  # the tolerance
    assert square.sum() <= 2 * step * (free[0] - free[-1]) + 1e-8
    assert square.sum() > 0


def test_order_of_the_particles_does_not_matter():
    start = quantiles(60)
    mixed = np.random.default_rng(0).permutation(60)
    ends = [
        wf.evolve(
            JKO(RISK, 0.1, beta=5.0), wf.Particles(theta, neuron=RISK.problem.neuron), [0.3]
        ).final.theta
        for theta in (start.theta, start.theta[mixed])
    ]
    np.testing.assert_allclose(ends[1], ends[0][mixed], atol=1e-12)  # sums in another order
