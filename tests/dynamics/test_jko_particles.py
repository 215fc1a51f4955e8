"""The proximal step of particles, its assignment, and the step split with noise."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import wideflow as wf
from dynamics.jko_cases import JKO, W_STAR, linear_risk, moments
from exact_cases import erf_problem, gaussian_flow, gaussian_jko_step, slope
from wideflow.dynamics.jko.assignment import certificate, is_optimal

PROBLEM = erf_problem(2)
RISK = wf.Risk(PROBLEM, wf.Quadrature(16))
START = wf.init(PROBLEM).sample(jax.random.key(0), 12)


def least_square(before, after):
    """W2² of two clouds of equal weights, by SciPy."""
    cost = ((np.asarray(before.theta)[:, None] - np.asarray(after.theta)) ** 2).sum(-1)
    return cost[linear_sum_assignment(cost)].mean()


@pytest.mark.parametrize("step", [0.1, 2.0])
def test_the_step_is_implicit(step):
    """θ⁺ = θ + τv(θ⁺), with weights and α: v is the library's velocity, of which a weight is no part."""
    rng = np.random.default_rng(1)
    start = wf.Particles(START.theta, rng.dirichlet(np.ones(12)), alpha=2.5, neuron=PROBLEM.neuron)
    dynamics = JKO(RISK, step, decay=0.2)
    final = wf.evolve(dynamics, start, [step]).final
    velocity = RISK.velocity(final) - 0.2 * final.theta
    away = final.theta - start.theta - step * velocity
    scale = np.sqrt(np.sum(np.asarray(start.weights)[:, None] * np.asarray(start.theta) ** 2))
    assert np.sqrt(np.sum(start.weights[:, None] * away**2)) <= 1e-9 * max(1.0, scale)  # tol
    assert np.abs(final.theta - start.theta).max() > 0.01


def test_linear_neurons_in_closed_form():
    risk, theta = linear_risk(2), np.random.default_rng(0).normal(size=(5, 2))
    start = wf.Particles(theta, neuron=risk.problem.neuron)
    final = wf.evolve(JKO(risk, 0.5, decay=0.3), start, [0.5]).final
    mean, shrink = gaussian_jko_step(theta.mean(0), 1.0, np.full(2, W_STAR), 0.5, 0.3)
    # 1e-8: the tolerance of 1e-9, shared by 5 particles
    np.testing.assert_allclose(final.theta, mean + (theta - theta.mean(0)) * shrink, atol=1e-8)


def test_first_order_against_the_flow():
    flow = wf.evolve(wf.GradientFlow(RISK, rtol=1e-9), START, [1.0]).final.theta
    steps = [0.2, 0.1, 0.05, 0.025]
    ends = [wf.evolve(JKO(RISK, step), START, [1.0]).final.theta for step in steps]
    errors = [float(jnp.linalg.norm(end - flow)) for end in ends]
    assert slope(steps, errors) == pytest.approx(1.0, abs=0.1)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), step=st.floats(0.05, 3.0), decay=st.floats(0.0, 0.5))
def test_energy_falls_by_the_distance(seed, step, decay):
    start = wf.init(PROBLEM).sample(jax.random.key(seed), 12)
    run = wf.evolve(JKO(RISK, step, decay=decay), start, np.arange(5) * step)
    assert run.status == "ok"
    energy = np.array([float(RISK.value(s) + decay * s.second_moment()) for s in run.states])
    pairs = zip(run.states[:-1], run.states[1:], strict=True)
    square = np.array([least_square(a, b) for a, b in pairs])
    assert (np.diff(energy) + square / (2 * step) <= 1e-12).all()  # rounding of numbers of order 1
    assert 0 < square.sum() <= 2 * step * (energy[0] - energy[-1]) + 1e-12


def wild():
    """Three neurons of both signs to be learned by 40: far steps cross."""
    teacher = wf.teacher(np.array([[2.0, 0.0], [0.0, 2.0], [-1.0, 1.0]]), a=[1.0, -1.0, 1.0], link="erf")
    problem = wf.Problem(x=wf.Gaussian(2), target=teacher, neuron=wf.Neuron("erf"))
    return wf.Risk(problem, wf.Quadrature(16)), wf.init(problem).sample(jax.random.key(0), 40)


def test_far_steps_are_told():
    risk, start = wild()
    square = lambda end: float(jnp.sum((end.theta - start.theta) ** 2)) / start.n
    with pytest.warns(UserWarning, match=r"step of 1e\+03 .* not W2. Use a smaller step"):
        far = wf.evolve(JKO(risk, 1000.0), start, [1000.0])
    assert least_square(start, far.final) < square(far.final) * (1 - 1e-3)  # SciPy finds a shorter one
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = wf.evolve(JKO(risk, 1.0), start, [1.0])
    assert least_square(start, near.final) == pytest.approx(square(near.final), rel=1e-12)


def test_warned_once_and_counted():
    risk, start = wild()
    with pytest.warns(UserWarning, match="not W2") as told:
        run = wf.evolve(JKO(risk, 1000.0), start, [1000.0, 2000.0])
    assert len(told) == 1 and 1 <= run.info["unsure_steps"] <= 2


def test_the_certificate_is_a_proof():
    """Its bound W2² ≥ Σ w|θ⁺ − θ|² − 2δ holds at every step size, and δ = 0 where it certifies."""
    risk, start = wild()
    certified = 0
    for step in (0.1, 1.0, 10.0, 100.0, 1000.0):
        dynamics = JKO(risk, step)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the step is far
            moved, _ = dynamics.advance(dynamics.init(start, jax.random.key(0)), step)
        proof = certificate(risk, start, moved.state, jnp.asarray(step), moved.residual)
        square = float(jnp.sum((moved.state.theta - start.theta) ** 2)) / start.n
        bound = square - 2 * float(proof.violation) - 2 * float(proof.slack)
        assert least_square(start, moved.state) >= bound
        certified += float(proof.violation) <= float(proof.slack)
    assert 1 <= certified < 5


def test_kinds_are_not_exchanged():
    """Two particles that swap places: not optimal, unless their frozen output weights differ."""
    problem = erf_problem(1)
    frozen = wf.Neuron("erf", output="frozen")
    step, exact = jnp.asarray(1e-3), jnp.asarray(0.0)
    for a, optimal in (([1.0, 1.0], False), ([1.0, -1.0], True)):
        clouds = [wf.Particles(np.array([[a[0], w], [a[1], -w]]), neuron=frozen) for w in (1.0, -1.0)]
        assert bool(is_optimal(wf.Risk(problem, wf.Quadrature(8)), *clouds, step, exact)) is optimal


def test_frozen_weights_do_not_move():
    problem = wf.Problem(
        x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="frozen")
    )
    start, risk = wf.init(problem).sample(jax.random.key(1), 6), wf.Risk(problem, wf.Quadrature(8))
    for beta in (np.inf, 5.0):
        final = wf.evolve(JKO(risk, 0.2, beta=beta), start, [0.4]).final
        assert np.array_equal(final.parts.a, start.parts.a)
        assert not np.array_equal(final.parts.w, start.parts.w)


@pytest.mark.slow
def test_splitting_in_standard_errors():
    """Case 1 in D = 2. The split step has m ← (m + τw*)/(1 + τ(1 + λ)), s² ← s²/(1 + τλ)² + 2τ/β exactly in
    the mean over the noise; that recursion is of first order in τ."""
    decay, beta, n, w = 0.3, 5.0, 4000, W_STAR
    risk = linear_risk(2)
    start = wf.init(risk.problem, theta=wf.laws.Normal(-0.5, 0.7)).sample(jax.random.key(2), n)
    m0, s0 = moments(start)

    def scheme(step):
        m, v = m0, s0**2
        for _ in range(round(1.0 / step)):
            m, v = (m + step * w) / (1 + step * (1 + decay)), v / (1 + step * decay) ** 2 + 2 * step / beta
        return m, v

    mean, sd = moments(wf.evolve(JKO(risk, 0.1, beta=beta, decay=decay), start, [1.0]).final)
    m, v = scheme(0.1)
    # 4 standard errors: of a mean, √(v/n); of a variance, v√(2/n) (the noise is Gaussian)
    assert (np.abs(mean - m) < 4 * np.sqrt(v / n)).all()
    assert (np.abs(sd**2 - v) < 4 * v * np.sqrt(2 / n)).all()
    exact, steps = gaussian_flow(m0, s0, w, 1.0, decay, beta), [0.1, 0.05, 0.025, 0.0125]
    for i in (0, 1):
        errors = [np.abs(scheme(step)[i] - exact[i] ** (1 + i)).max() for step in steps]
        assert slope(steps, errors) == pytest.approx(1.0, abs=0.1)
