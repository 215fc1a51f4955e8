"""Dynamics against exact solutions, with their orders."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from exact_cases import CASES, linear_neuron, slope, two_layer_linear

TS = np.array([0.0, 0.3, 0.7, 1.3, 2.0])


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("rtol", [1e-5, 1e-8, 1e-10])
def test_flow_is_exact_to_its_tolerance(case, rtol):
    run = wf.evolve(wf.GradientFlow(case.functional, rtol=rtol, atol=rtol), case.start, TS)
    assert run.status == "ok"
    # The tolerance holds per step. Errors of some 20 steps over two e-folding times add up, and a
    # saved time may lie between steps (dense output): a factor 50 leaves room for both.
    for t, state, risk in zip(run.t, run.states, run["risk"], strict=True):
        assert np.allclose(case.quantity(state), case.exact(t), rtol=50 * rtol, atol=50 * rtol)
        assert abs(risk - case.risk(t)) <= 50 * rtol


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_flow_error_falls_with_its_tolerance(case):
    tolerances = 10.0 ** -np.arange(4, 10)
    errors = []
    for tol in tolerances:
        run = wf.evolve(wf.GradientFlow(case.functional, rtol=tol, atol=tol), case.start, [1.3])
        errors.append(np.max(np.abs(case.quantity(run.final) - case.exact(1.3))))
    # Error per unit step control: global error ∝ tol^(p/(p+1)) … tol for a method of order p = 5.
    assert 0.7 < slope(tolerances, errors) < 1.3


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_gradient_descent_has_order_one(case):
    steps, errors = 2.0 ** -np.arange(6, 11), []
    for step in steps:
        run = wf.evolve(wf.GradientDescent(case.functional, step), case.start, [1.0])
        assert run.t[0] == 1.0  # a power of two divides it
        errors.append(np.max(np.abs(case.quantity(run.final) - case.exact(1.0))))
    assert slope(steps, errors) == pytest.approx(1.0, abs=0.1)


def test_langevin_without_noise_is_gradient_descent_with_decay():
    case = linear_neuron(decay=0.3)
    risk = wf.Risk(case.functional.problem)
    noiseless = wf.evolve(wf.Langevin(risk, 0.01, beta=np.inf, decay=0.3), case.start, [1.0])
    descent = wf.evolve(wf.GradientDescent(case.functional, 0.01), case.start, [1.0])
    assert np.array_equal(noiseless.final.theta, descent.final.theta)


@pytest.mark.slow
def test_langevin_bias_has_order_one():
    """Case 1 with noise: Cov(t) = C₀e^{−2λt} + (1 − e^{−2λt})/(βλ). Its Euler bias is O(η)."""
    d, n, beta, decay, t = 50, 100_000, 2.0, 1.0, 1.0
    rng = np.random.default_rng(0)
    # The velocity of the risk is the same for every particle of a linear neuron: it moves the mean
    # alone, so any data will do and the covariance is that of an Ornstein–Uhlenbeck process.
    data = wf.Dataset(rng.normal(size=(8, d)), rng.normal(size=8))
    problem = wf.Problem(x=data, neuron=wf.Neuron("identity", output="unit"))
    start = wf.init(problem, w=0.0).sample(jax.random.key(0), n)  # all at 0, so C₀ = 0
    exact = (1 - np.exp(-2 * decay * t)) / (beta * decay)
    steps, biases, errors = np.array([0.05, 0.1, 0.2]), [], []
    for i, step in enumerate(steps):
        dynamics = wf.Langevin(wf.Risk(problem), step, beta=beta, decay=decay)
        theta = wf.evolve(dynamics, start, [t], key=jax.random.key(i), snapshots=False).final.theta
        variance = float(jnp.var(theta, axis=0).mean())
        biases.append(variance - exact)
        errors.append(variance * np.sqrt(2 / (n * d)))  # standard error of a Gaussian variance
        # The discrete variance is known too: a geometric sum, a check of the noise's size alone.
        shrink = (1 - step * decay) ** 2
        discrete = 2 * step / beta * (1 - shrink ** round(t / step)) / (1 - shrink)
        assert abs(variance - discrete) < 4 * errors[-1]
    fitted, error = slope(steps, biases, errors)
    assert error < 0.02
    # 0.1: the discrete formula itself, bias ∝ η + 0.54η² + …, has slope 1.05 on these steps.
    assert fitted == pytest.approx(1.0, abs=0.1)


def test_noise_leaves_the_mean_alone():
    """Case 1: ṁ = w* − (1 + λ)m whatever β; within 4 standard errors."""
    case, n, decay = linear_neuron(d=3), 20_000, 0.5
    w_star = np.asarray(case.functional.problem.target.w[0])
    start = wf.init(case.functional.problem, w=1.0).sample(jax.random.key(1), n)
    risk = wf.Risk(case.functional.problem, wf.Quadrature(2))  # exact for a linear neuron
    dynamics = wf.Langevin(risk, 1e-2, beta=1.0, decay=decay)
    run = wf.evolve(dynamics, start, [1.0], key=jax.random.key(2))
    m0 = np.asarray(start.theta.mean(0))
    shrink = (1 - 1e-2 * (1 + decay)) ** 100  # the mean of the Euler scheme, exactly
    mean = w_star / (1 + decay) * (1 - shrink) + m0 * shrink
    # each step adds noise of variance 2η/(βn) to the mean: at most 2t/(βn) in all
    assert np.all(np.abs(run.final.theta.mean(0) - mean) < 4 * np.sqrt(2 / n))


@pytest.mark.parametrize("decay", [0.0, 0.4])
@pytest.mark.parametrize("alpha", [1.0, 4.0])
def test_energy_dissipation(decay, alpha):
    """F(T) − F(0) = −∫₀ᵀ∫|∇Ψ_λ|²dρ dt with F = R/α² + (λ/2)∫|θ|²dρ, by Gauss–Legendre in time."""
    problem = wf.Problem(x=wf.Gaussian(4), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    functional = wf.Risk(problem) + decay * wf.SecondMoment()
    start = wf.init(problem).sample(jax.random.key(3), 20, alpha=alpha)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    ts = np.concatenate([[0.0], 1 + nodes, [2.0]])
    run = wf.evolve(wf.GradientFlow(functional, rtol=1e-10, atol=1e-12), start, ts)
    energy = [float(functional.energy(s)) for s in run.states]
    rates = [float(functional.dissipation(s)) for s in run.states[1:-1]]
    # solver tolerance 1e-10; the 20-point rule in time is exact to rounding for so smooth a rate
    assert energy[-1] - energy[0] == pytest.approx(-np.dot(weights, rates), abs=2e-9)
    assert np.all(np.diff(energy) < 0)
    if decay == 0 and alpha == 1:
        assert np.allclose(energy, run["risk"], rtol=1e-13, atol=0)  # compiled together or apart


@pytest.mark.slow
def test_reparametrisation_symmetry():
    """abc symmetry on particles: σ'(x; θ) = σ*(x; κθ) from θ₀/κ with step η/κ² trains the same
    function. With κ a power of two no rounding differs: identical to the bit."""
    kappa, neuron = 4.0, wf.Neuron("tanh")
    scaled = lambda x, theta: theta[0] * kappa * jnp.tanh(kappa * theta[1:] @ x)
    plain = lambda x, theta: theta[0] * jnp.tanh(theta[1:] @ x)
    common = dict(x=wf.Gaussian(3), target=wf.single_index("tanh"))
    theta = wf.init(wf.Problem(**common, neuron=neuron)).sample(jax.random.key(4), 6).theta
    ts, runs = np.arange(1, 6) * 0.25, []
    for fn, k in ((plain, 1.0), (scaled, kappa)):
        problem = wf.Problem(**common, neuron=wf.CustomNeuron(fn, 4))
        start = wf.Particles(theta / k, neuron=problem.neuron)
        dynamics = wf.SGD(wf.Risk(problem), 2.0**-6 / k**2, batch=2)
        runs.append(wf.evolve(dynamics, start, ts / k**2, key=jax.random.key(5)))
    for one, other in zip(runs[0].states, runs[1].states, strict=True):
        assert np.array_equal(one.theta, kappa * other.theta)
    assert not np.array_equal(runs[0].states[0].theta, runs[0].states[-1].theta)


def test_two_layer_linear_limit_does_not_depend_on_dimension():
    small, large = two_layer_linear(d=2), two_layer_linear(d=9)
    runs = [
        wf.evolve(wf.GradientFlow(c.functional, rtol=1e-9, atol=1e-9), c.start, TS) for c in (small, large)
    ]
    assert np.allclose(runs[0]["risk"], runs[1]["risk"], rtol=0, atol=1e-7)  # 50 × the tolerance
