"""Dissipation, weak form, distances and rates, along solutions that are known (case 1)."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import wideflow as wf
from wideflow.diagnostics.dissipated import DissipationRate, dissipation
from wideflow.diagnostics.observers import EnergyOf, distance_to, mass, second_moment
from wideflow.diagnostics.rates import decay_rate, guaranteed_rate, log_sobolev_constant
from wideflow.diagnostics.weak_equation import weak_form
from wideflow.dynamics.grid.flow import GridFlow
from wideflow.mean_field.gibbs import gibbs
from wideflow.run import Row, Run

_W, _BETA, _DECAY = 0.7, 2.0, 0.5
_TESTS = (lambda z: z[0], lambda z: z[0] ** 2, lambda z: jnp.sin(z[0]))


def _problem(w=_W):
    neuron = wf.CustomNeuron(lambda x, theta: theta @ x, 1)
    problem = wf.Problem(x=wf.Gaussian(1), target=lambda x: w * x[0], neuron=neuron)
    return problem, wf.Risk(problem, wf.Quadrature(4))


@pytest.fixture(scope="module")
def linear():
    return _problem()


def _moments(t, m0=-1.0, c0=0.3):
    """Mean and variance of case 1 at time t."""
    rest = _W / (1 + _DECAY)
    variance = c0 * np.exp(-2 * _DECAY * t) + (1 - np.exp(-2 * _DECAY * t)) / (_BETA * _DECAY)
    return rest + (m0 - rest) * np.exp(-(1 + _DECAY) * t), variance


def _exact_run(problem, ts, cells=200):
    """The exact solution, put on a grid at each time."""

    def at(t):
        m, c = _moments(t)
        return wf.on_grid(
            wf.init(problem, theta=wf.laws.Normal(float(m), float(np.sqrt(c)))), -9.0, 9.0, cells
        )

    states = [at(t) for t in ts]
    rows = tuple(Row(float(t), {"risk": np.zeros(())}, s) for t, s in zip(ts, states, strict=True))
    return Run(rows, states[-1])


@pytest.fixture(scope="module")
def flown(linear):
    """The distributional dynamics on 120 cells."""
    problem, R = linear
    start = wf.on_grid(wf.init(problem, theta=wf.laws.Normal(-1.0, float(np.sqrt(0.3)))), -9.0, 9.0, 120)
    rest = gibbs(R, beta=_BETA, decay=_DECAY, on=start)
    F = wf.FreeEnergy(R, beta=_BETA, decay=_DECAY)
    observe = {"mass": mass, "second": second_moment, "F": EnergyOf(F)}
    observe |= {name: distance_to(rest, name) for name in ("l1", "kl", "w2")}
    flow = GridFlow(R, beta=_BETA, decay=_DECAY, tol=1e-8)
    return wf.evolve(flow, start, np.linspace(0, 6, 61), observe=observe, progress=False), rest


def _exact_dissipation(t):
    """∫|∇(Ψ_λ + log ρ/β)|²dρ = (w* − (1 + λ)m)² + (λ − 1/(βc))²c, as Ψ_λ + log ρ/β is a quadratic."""
    m, c = _moments(t)
    return (_W - (1 + _DECAY) * m) ** 2 + (_DECAY - 1 / (_BETA * c)) ** 2 * c


def test_the_discrete_dissipation_is_of_second_order(linear):
    problem, R = linear
    observer = DissipationRate(R, _BETA, _DECAY)
    errors = []
    for cells in (60, 120, 240):
        state = _exact_run(problem, [0.4], cells).final
        errors.append(abs(float(observer(0.4, state)) - _exact_dissipation(0.4)))
    assert np.log2(errors[0] / errors[1]) > 1.8 and np.log2(errors[1] / errors[2]) > 1.8, errors


def test_the_identity_along_the_exact_solution_is_of_second_order_in_h(linear):
    """Times 0.1 apart, whose spline leaves less than the grid does: what is left falls as h²."""
    problem, R = linear
    ts = np.linspace(0, 2, 41)
    left = [dissipation(_exact_run(problem, ts, n), R, beta=_BETA, decay=_DECAY).largest for n in (60, 120)]
    assert np.log2(left[0] / left[1]) > 1.8, left


@pytest.mark.slow
def test_the_identity_holds_along_the_grid_flow(linear, flown):
    """I is what the scheme itself dissipates, so only the time integral and the flow's steps are left."""
    _, R = linear
    run, _ = flown
    fine = dissipation(run, R, beta=_BETA, decay=_DECAY)
    coarse = dissipation(Run(run.rows[::2], run.final), R, beta=_BETA, decay=_DECAY)
    assert fine.order == 4 and (fine.change < 0).all()
    # order 4 in the distance of times: 16 by halving it; 8 leaves room for the spline's ends
    assert coarse.largest / fine.largest > 8 and fine.largest < 1e-4


def test_the_identity_for_particles_without_noise(linear):
    problem, R = linear
    cloud = wf.init(problem, theta=wf.laws.Normal(-1.0, 0.5)).sample(jr.key(0), 50)
    run = wf.evolve(wf.GradientFlow(R), cloud, np.linspace(0, 2, 41), progress=False)
    found = dissipation(run, R)
    # GradientFlow's default tolerance and (Δt = 0.05)⁴/180 ≈ 3e-8
    assert found.largest < 1e-6
    with pytest.raises(ValueError, match="no density"):
        dissipation(run, R, beta=2.0)


def test_without_noise_on_a_grid(linear):
    """∫|∇Ψ_λ|²dρ = (w* − (1 + λ)m)² + λ²c for a Gaussian; O(h²)."""
    problem, R = linear
    errors = []
    for cells in (60, 120):
        state = wf.on_grid(wf.init(problem, theta=wf.laws.Normal(-1.0, 0.8)), -9.0, 9.0, cells)
        exact = (_W + (1 + _DECAY)) ** 2 + _DECAY**2 * 0.64
        errors.append(abs(float(DissipationRate(R, decay=_DECAY)(0.0, state)) - exact))
    assert np.log2(errors[0] / errors[1]) > 1.8, errors


def test_the_weak_form_on_a_grid_to_second_order(linear):
    problem, R = linear
    ts = np.linspace(0, 2, 81)
    left = []
    for cells in (30, 60):
        found = weak_form(_exact_run(problem, ts, cells), R, _TESTS, beta=_BETA, decay=_DECAY)
        assert found.change.shape == (80, 3)
        left.append(np.abs(found.residual.sum(axis=0)).max())
    # the worst is θ²: masses of cells at their centres have a second moment h²/12 too large, of which the
    # drift −2λθ² makes 2λT h²/12; what the sum over cells adds to that is exponentially small
    assert np.log2(left[0] / left[1]) > 1.8, left
    np.testing.assert_allclose(left[1], 2 * _DECAY * ts[-1] * 0.3**2 / 12, rtol=1e-3)


def test_the_weak_form_of_noisy_particles_in_standard_errors(linear):
    """What is left is a martingale of known variance: standardised, each of 3 tests has mean square 1 over
    40 independent intervals, with a standard error of √(2/40); four of them are allowed."""
    problem, R = linear
    cloud = wf.init(problem, theta=wf.laws.Normal(-1.0, 0.5)).sample(jr.key(0), 300)
    flow = wf.Langevin(R, 0.005, beta=_BETA, decay=_DECAY)
    run = wf.evolve(flow, cloud, np.linspace(0, 2, 41), key=jr.key(1), progress=False)
    found = weak_form(run, R, _TESTS, beta=_BETA, decay=_DECAY)
    square = np.mean(found.standardised**2, axis=0)
    assert (np.abs(square - 1) < 4 * np.sqrt(2 / 40)).all(), square
    assert (np.abs(found.standardised) < 4.5).all()  # of 120: a chance of 1e-3
    # at half the temperature it does not hold: the drift of θ² is off by 1/β in each unit of time
    wrong = weak_form(run, R, _TESTS[1], beta=2 * _BETA, decay=_DECAY)
    assert abs(wrong.residual.sum()) > 5 * np.sqrt(np.sum(wrong.error**2))


def test_the_weak_form_without_noise_is_exact(linear):
    problem, R = linear
    cloud = wf.init(problem, theta=wf.laws.Normal(-1.0, 0.5)).sample(jr.key(0), 50)
    run = wf.evolve(wf.GradientFlow(R), cloud, np.linspace(0, 2, 41), progress=False)
    found = weak_form(run, R, _TESTS)
    assert (found.error == 0).all() and found.largest < 1e-6  # as for the dissipation
    with pytest.raises(ValueError, match="one number"):
        weak_form(run, R, lambda z: z)
    with pytest.raises(ValueError, match="one function"):
        weak_form(run, R, [])


def test_what_observers_see(flown):
    """Mass 1; moments of case 1; l1²/2 ≤ kl ≤ β(F − F*); all distances fall to 0."""
    run, rest = flown
    np.testing.assert_allclose(run["mass"], 1.0, atol=1e-12)
    m, c = _moments(run.t)
    # cells are 0.15 wide: their centres miss h²/12 of the second moment at the start, the flow O(h²)
    np.testing.assert_allclose(run["second"], 0.5 * (m**2 + c), atol=0.15**2)
    above = run["F"] - rest.free_energy
    late = above > 1e-8
    assert (run["l1"] ** 2 / 2 <= run["kl"] + 1e-12).all()
    assert (run["kl"][late] <= _BETA * above[late] * (1 + 1e-9)).all()
    # W2 of Gaussians on the line: distance of means and of standard deviations, to O(h²)
    gap = np.hypot(m - _W / (1 + _DECAY), np.sqrt(c) - 1 / np.sqrt(_BETA * _DECAY))
    np.testing.assert_allclose(run["w2"], gap, atol=0.15**2)
    assert (np.diff(run["kl"]) < 1e-12).all() and (np.diff(run["l1"]) < 1e-12).all()


def test_the_rate_of_the_grid_flow_is_above_what_is_guaranteed(linear, flown):
    """The covariance comes to rest as e^{−2λt}, F as its square: 4λ = 2; the mean as e^{−(1+λ)t}: 3. The
    slower one is left late, and Bakry–Émery guarantees 2λ = 1."""
    run, rest = flown
    found = decay_rate(run.t, run["F"], rest.free_energy)
    exact = min(2 * (1 + _DECAY), 4 * _DECAY)
    # the faster part is e^{−t} of it: a twentieth where the stretch begins, which the error bar has to show
    assert abs(found.value - exact) < 0.1 * exact and found.straight
    assert found.value - 3 * found.error > guaranteed_rate(_BETA, _DECAY) == 2 * _DECAY


def test_rates_of_known_decays():
    t = np.linspace(0, 10, 101)
    pure = decay_rate(t, 0.2 + 3 * np.exp(-1.7 * t), 0.2, floor=1e-6)
    assert abs(pure.value - 1.7) < 1e-6 and pure.straight and abs(pure.factor - 3) < 1e-4 and pure.since == 0
    two = decay_rate(t, 5 * np.exp(-4 * t) + np.exp(-0.5 * t), 0.0)
    # by half of the stretch's bend, of at most a twentieth of the rate
    assert abs(two.value - 0.5) <= 0.025 and two.since > 0
    bent = decay_rate(np.arange(1, 6.0), np.exp(-(np.arange(1, 6.0) ** 2)), 0.0, floor=1e-30)
    assert not bent.straight and bent.error > 0.1
    np.testing.assert_allclose(pure.at([0.0]), 3, rtol=1e-4)
    with pytest.raises(ValueError, match="4 times"):
        decay_rate([0.0, 1.0, 2.0], [1.0, 0.5, 0.1], 0.0)
    with pytest.raises(ValueError, match="one length"):
        decay_rate([0.0, 1.0], [1.0, 0.5, 0.1], 0.0)


def test_the_log_sobolev_constant():
    """Holley–Stroock: half as much for each log 2/β of oscillation; the rate is 2λ without any."""
    assert log_sobolev_constant(4.0, 0.25) == 1.0
    np.testing.assert_allclose(log_sobolev_constant(4.0, 0.25, np.log(2) / 4), 0.5)
    assert guaranteed_rate(3.0, 0.25) == 0.5


def test_mistakes_are_told(linear, flown):
    problem, R = linear
    run, rest = flown
    with pytest.raises(ValueError, match="Did you mean"):
        distance_to(rest, "w3")
    with pytest.raises(ValueError, match="one grid"):
        distance_to(rest)(0.0, _exact_run(problem, [0.0], 30).final)
    with pytest.raises(ValueError, match="one grid"):
        distance_to(wf.init(problem, theta=wf.laws.Normal(0.0, 1.0)).sample(jr.key(0), 9))
    with pytest.raises(ValueError, match="snapshots"):
        dissipation(Run(run.rows[:1], run.final), R, beta=_BETA, decay=_DECAY)
    with pytest.raises(ValueError, match="evolve"):
        weak_form([1, 2], R, _TESTS)
