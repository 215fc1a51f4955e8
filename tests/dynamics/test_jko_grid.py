"""The minimising movement on grids: entropic transport, its bias, and that it is solved."""

import jax
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp

import wideflow as wf
from dynamics.jko_cases import JKO, W_STAR, erf_risk, linear_risk, moments
from exact_cases import gaussian_flow, gaussian_jko_step, slope

RISK, ERF = linear_risk(), erf_risk()
START = wf.on_grid(wf.init(RISK.problem, theta=wf.laws.Normal(-0.5, 0.7)), -6.0, 6.0, 160)


def entropic_gaussian_step(mean, sd, step, epsilon, decay, beta):
    """With variance v of θ', covariance c with θ, the objective of the entropic step on Gaussians is, up to
    constants, (v − 2c)/(2τ) − (ε/(2τ))log(s²v − c²) + λv/2 − (κ/2)log v, with κ = max(0, 1/β − ε/(2τ)).
    Its minimum has v = (c² + εc)/s² and (1 − s²/c)/τ + λ = κ/v. The mean moves as without blur."""
    kappa = max(0.0, 1 / beta - epsilon / (2 * step))
    variance = lambda c: (c**2 + epsilon * c) / sd**2
    c = brentq(lambda c: (1 - sd**2 / c) / step + decay - kappa / variance(c), 1e-6, 1e3, xtol=1e-14)
    return gaussian_jko_step(mean, sd, W_STAR, step, decay, beta)[0], np.sqrt(variance(c))


@pytest.mark.parametrize(
    "step, epsilon, beta",
    [(0.1, 0.01, 5.0), (0.1, 0.04, 5.0), (0.5, 0.05, 2.0), (0.1, 0.02, np.inf), (0.1, 0.08, 5.0)],
)
@pytest.mark.filterwarnings("ignore:JKO blurs")  # the last has more blur than noise
def test_one_gaussian_step_with_its_blur(step, epsilon, beta):
    run = wf.evolve(JKO(RISK, step, beta=beta, decay=0.3, epsilon=epsilon), START, [step])
    m0, s0 = moments(START)
    expected = entropic_gaussian_step(m0[0], s0[0], step, epsilon, 0.3, beta)
    found = [float(v[0]) for v in moments(run.final)]
    # 1e-6: masses in cells are not quite a Gaussian, by h⁴ with h = 0.075
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert run.status == "ok"


def test_first_order_in_the_step():
    """ε = τ/β by default: what the blur spreads is taken out of the entropy, no bias of order 1 is left."""
    steps, errors = [0.2, 0.1, 0.05], []
    m0, s0 = moments(START)
    exact = np.concatenate(gaussian_flow(m0, s0, W_STAR, 1.0, 0.3, 5.0))
    for step in steps:
        dynamics = JKO(RISK, step, beta=5.0, decay=0.3)
        assert dynamics.blur(START).bias == 0 and dynamics.blur(START).epsilon == pytest.approx(step / 5)
        run = wf.evolve(dynamics, START, [0.0, 1.0])
        errors.append(np.abs(np.concatenate(moments(run.final)) - exact))
        assert float(run.final.mass.min()) >= 0
        assert float(run.final.mass.sum()) == pytest.approx(1.0, abs=1e-13)  # rounding of 20 steps
    for error in np.transpose(errors):
        assert slope(steps, error) == pytest.approx(1.0, abs=0.1)


def test_the_bias_is_as_stated():
    """Nothing to move for (F = 0, β = ∞): each step adds the variance ε, a diffusion ε/(2τ)."""
    nothing = wf.Moment(lambda theta: 0.0 * theta[0])
    dynamics = JKO(nothing, 0.5, epsilon=0.03)
    run = wf.evolve(dynamics, START, [0.0, 1.5])
    grown = moments(run.final)[1][0] ** 2 - moments(START)[1][0] ** 2
    assert grown == pytest.approx(3 * 0.03, abs=1e-10)  # a Gaussian blur of two cells is exact to 1e-30
    blur = dynamics.blur(START)
    assert blur.diffusion == blur.bias == pytest.approx(grown / (2 * 1.5), rel=1e-8)


def test_more_blur_than_noise_is_told():
    with pytest.warns(UserWarning, match="that of a larger temperature. Use cells smaller than"):
        wf.evolve(JKO(RISK, 0.1, beta=50.0), START, [0.1])


@pytest.mark.slow
def test_against_all_pairs_of_cells():
    """In two dimensions, on few cells: the same equations with the matrix cells × cells, by NumPy."""
    risk, step, beta, epsilon = erf_risk(2), 0.4, 2.0, 0.3
    law = wf.init(risk.problem, theta=wf.laws.Normal(0.3, 0.8))
    with pytest.warns(UserWarning, match="outside the grid"):
        start = wf.on_grid(law, [-2.0, -2.5], [2.5, 2.0], [8, 9])
    run = wf.evolve(JKO(risk, step, beta=beta, decay=0.2, epsilon=epsilon), start, [step])
    theta, mass = np.asarray(start.theta), np.asarray(start.weights)
    log_k = -((theta[:, None] - theta) ** 2).sum(-1) / (2 * epsilon)
    kappa, log_b = 1 / beta - epsilon / (2 * step), np.zeros(len(mass))
    for _ in range(300):
        log_a = np.log(mass) - logsumexp(log_k + log_b, axis=1)
        spread = logsumexp(log_k + log_a, axis=1)
        rho = start.with_mass(np.exp(log_b + spread).reshape(8, 9))
        psi = np.asarray(risk.potential(theta, rho)) + 0.1 * (theta**2).sum(1)
        log_b = 0.5 * log_b + 0.5 * (-kappa * spread - psi) / (epsilon / step + kappa)
    np.testing.assert_allclose(run.final.mass, rho.mass, atol=1e-8)  # both solved to 1e-9
    assert np.abs(run.final.mass - start.mass).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("beta, decay, mean", [(2.0, 0.5, -1.0), (5.0, 0.2, 0.5), (20.0, 0.0, 0.0)])
def test_free_energy_falls(beta, decay, mean):
    """Far from the fixed point, where its fall outweighs the bias of order τ."""
    start = wf.on_grid(wf.init(ERF.problem, theta=wf.laws.Normal(mean, 0.5)), -5.0, 5.0, 100)
    free = wf.FreeEnergy(ERF, beta=beta, decay=decay)
    run = wf.evolve(JKO(ERF, 0.2, beta=beta, decay=decay), start, np.arange(4) * 0.2)
    values = [float(free.energy(state)) for state in run.states]
    assert run.status == "ok" and (np.diff(values) < 0).all()


def test_a_large_step_is_solved():
    """τ = 20, many times the time of the flow: the fixed point is found all the same."""
    run = wf.evolve(JKO(RISK, 20.0, beta=5.0, decay=0.3, epsilon=0.5), START, [20.0])
    m0, s0 = moments(START)
    expected = entropic_gaussian_step(m0[0], s0[0], 20.0, 0.5, 0.3, 5.0)
    assert run.status == "ok"
    np.testing.assert_allclose([float(v[0]) for v in moments(run.final)], expected, atol=1e-5)


def test_a_frozen_axis_keeps_its_marginal():
    problem = wf.Problem(
        x=wf.Gaussian(1), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="frozen")
    )
    law = wf.init(problem, a=wf.laws.Normal(0.0, 0.5), w=wf.laws.Normal(0.0, 0.5))
    start = wf.on_grid(law, -3.0, 3.0, [10, 24])
    dynamics = JKO(wf.Risk(problem, wf.Quadrature(8)), 0.5, beta=4.0)
    final = wf.evolve(dynamics, start, [1.0]).final
    np.testing.assert_allclose(final.marginal(0), start.marginal(0), atol=1e-13)  # mass of each a is kept
    assert np.abs(final.marginal(1) - start.marginal(1)).max() > 1e-3


def test_cells_without_mass():
    """A start on half of the box: −inf in its logarithm harms nothing."""
    mass = np.where(np.arange(160) < 80, 1 / 80, 0.0)
    start = wf.GridDensity(mass, [-6.0], [6.0], neuron=RISK.problem.neuron)
    final = wf.evolve(JKO(RISK, 0.2, beta=2.0), start, [0.4]).final
    assert np.isfinite(final.mass).all() and float(final.mass.sum()) == pytest.approx(1.0, abs=1e-13)
    assert jax.numpy.sum(final.mass[80:]) > 0.01
