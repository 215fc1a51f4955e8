"""Fisher–Rao, Wasserstein–Fisher–Rao and birth–death against exact weights and against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import wideflow as wf
from exact_cases import slope
from wideflow.dynamics.birth_death import BirthDeath
from wideflow.dynamics.fisher_rao import FisherRao
from wideflow.dynamics.wasserstein_fisher_rao import WassersteinFisherRao

RNG = np.random.default_rng(0)
NEURON = wf.Neuron("tanh")
DATA = wf.Problem(x=wf.Dataset(RNG.normal(size=(30, 2)), RNG.normal(size=30)), neuron=NEURON)
RISK = wf.Risk(DATA)
ATOMS = wf.Particles(RNG.normal(size=(5, 3)), RNG.dirichlet(np.ones(5)), neuron=NEURON)
LINE = wf.Problem(
    x=wf.Gaussian(1), target=lambda x: 0.6 * x[0], neuron=wf.CustomNeuron(lambda x, theta: theta @ x, 1)
)
METHODS = {
    "FisherRao": lambda risk, eta: FisherRao(risk, eta),
    "WassersteinFisherRao": lambda risk, eta: WassersteinFisherRao(risk, eta, reaction=2.0),
    "BirthDeath": lambda risk, eta: BirthDeath(risk, eta, reaction=2.0, beta=50.0),
}


def features():
    """The matrix of the risk in the weights: f = Φω, by NumPy alone."""
    a, w = np.asarray(ATOMS.theta)[:, 0], np.asarray(ATOMS.theta)[:, 1:]
    return a * np.tanh(np.asarray(DATA.x.x) @ w.T), np.asarray(DATA.x.y)


def exact_weights(t):
    """ω̇_j = −ω_j(Ψ_j − Σω_iΨ_i), Ψ = −Φᵀ(y − Φω)/m, by SciPy at 1e-12."""
    phi, y = features()
    psi = lambda omega: -phi.T @ (y - phi @ omega) / len(y)
    field = lambda _, omega: -omega * (psi(omega) - omega @ psi(omega))
    return solve_ivp(field, (0, t), np.asarray(ATOMS.weights), rtol=1e-12, atol=1e-14).y[:, -1]


# --- Fisher–Rao ---------------------------------------------------------------------------------


def test_fisher_rao_has_order_one_to_the_exact_weights():
    steps, errors = 2.0 ** -np.arange(3, 8), []
    for step in steps:
        final = wf.evolve(FisherRao(RISK, step), ATOMS, [4.0]).final
        assert np.array_equal(final.theta, ATOMS.theta)
        assert float(final.weights.sum()) == pytest.approx(1.0, abs=1e-14)  # five weights' rounding
        errors.append(np.abs(np.asarray(final.weights) - exact_weights(4.0)).max())
    assert slope(steps, errors) == pytest.approx(1.0, abs=0.1)  # O(η²) on the coarsest steps


def test_a_linear_potential_is_solved_exactly():
    """F = ∫q dρ: ω_j(t) ∝ ω_j(0)e^{−tq(θ_j)} for any η, far below the smallest number that is one."""
    q = lambda theta: 300.0 * theta[0] ** 2
    run = wf.evolve(FisherRao(wf.Moment(q), 0.5), ATOMS, [1.0, 20.0])
    values = 300 * np.asarray(ATOMS.theta)[:, 0] ** 2
    for t, state in zip(run.t, run.states, strict=True):
        logs = np.log(np.asarray(ATOMS.weights)) - t * (values - values.min())
        # digits are lost to tq of some thousands, 1e3 ulp
        assert np.allclose(state.weights, np.exp(logs) / np.exp(logs).sum(), rtol=1e-11, atol=1e-300)
    assert np.asarray(run.final.weights).min() == 0.0  # below 1e-308 by far


def test_lost_masses_come_back():
    """log ω is carried: a mass that was 0 as a number grows again under the opposite potential."""
    dynamics = FisherRao(wf.Moment(lambda theta: 1000.0 * theta[0]), 0.5)
    carry, _ = dynamics.advance(dynamics.init(ATOMS, jax.random.key(0)), 5.0)
    assert float(carry.state.weights.min()) == 0.0
    back = FisherRao(wf.Moment(lambda theta: -1000.0 * theta[0]), 0.5)
    carry, _ = back.advance(carry, 10.0)
    assert np.allclose(carry.state.weights, ATOMS.weights, rtol=1e-9)  # 1e4 in the logs: 1e-12


def test_energy_falls_and_obeys_the_bound_of_mirror_descent():
    """F(ω_t) − F(ω) ≤ KL(ω|ω_0)/t for every ω, the minimiser among them, for η < 1/L in KL's geometry."""
    phi, y = features()
    value = lambda omega: 0.5 * np.mean((y - phi @ omega) ** 2)
    # |⟨ω − ω', Hess (ω − ω')⟩| ≤ L |ω − ω'|₁² ≤ 2L·KL with L the largest entry of ΦᵀΦ/m
    step = 0.9 / np.abs(phi.T @ phi / len(y)).max()
    ts = step * np.unique(np.rint(np.geomspace(1, 2000, 15)))
    run = wf.evolve(FisherRao(RISK, step), ATOMS, ts)
    found = np.array([value(np.asarray(s.weights)) for s in run.states])
    assert np.allclose(found, run["risk"], rtol=1e-12)
    assert np.all(np.diff(found) <= 1e-15)
    start = np.asarray(ATOMS.weights)
    best = np.asarray(run.final.weights)  # near the minimiser; the bound holds against any ω
    for omega in (best, np.eye(5)[0], RNG.dirichlet(np.ones(5))):
        kl = np.sum(np.where(omega > 0, omega * np.log(np.maximum(omega, 1e-300) / start), 0))
        assert np.all(found - value(omega) <= kl / run.t + 1e-12)
    assert value(start) - value(best) > 1e-3  # there was something to gain


def test_on_a_grid_as_on_the_particles_at_its_cells():
    density = wf.on_grid(wf.init(LINE, theta=wf.laws.Normal(0.0, 1.0)), -6.0, 6.0, 60)
    risk = wf.Risk(LINE, wf.Quadrature(8))
    on_grid, on_atoms = (
        wf.evolve(FisherRao(risk, 0.05), state, [0.0, 1.0]) for state in (density, density.particles)
    )
    assert np.allclose(on_grid.final.weights, on_atoms.final.weights, rtol=1e-12, atol=1e-18)
    assert on_grid["risk"][-1] < on_grid["risk"][0]


def test_with_entropy_the_fixed_point_is_gibbs_whatever_the_step():
    """Case 1 in one dimension: ρ* is N(m, 1/(βλ)), m = w*/(1 + λ); on a grid of cells h to O(h²), and the
    free energy falls at every step."""
    beta, decay, risk = 5.0, 0.4, wf.Risk(LINE, wf.Quadrature(8))
    start = wf.on_grid(wf.init(LINE, theta=wf.laws.Normal(-1.0, 1.0)), -7.0, 7.0, 140)
    free, finals = wf.FreeEnergy(risk, beta=beta, decay=decay), []
    for step in (0.1, 0.7):
        run = wf.evolve(FisherRao(risk, step, beta=beta, decay=decay), start, step * np.arange(0, 600, 20))
        energy = [float(free.energy(s)) for s in run.states]
        assert np.all(np.diff(energy) < 1e-13)  # rounding at the end
        finals.append(run.final)
    potential = np.asarray(run.final.axis(0))
    centre = 0.6 / (1 + decay)
    gibbs = np.exp(-beta * decay * (potential - centre) ** 2 / 2)
    # log ρ relaxes at the rate 1/β: e^{−t/β} = e^{−11.6} at t = 580 · 0.1, and nothing at 580 · 0.7
    assert np.allclose(finals[1].mass, gibbs / gibbs.sum(), rtol=0, atol=1e-6)
    assert np.allclose(finals[0].mass, gibbs / gibbs.sum(), rtol=0, atol=1e-4)


# --- positions and masses -----------------------------------------------------------------------


def test_without_reaction_it_is_gradient_descent():
    conic = wf.evolve(WassersteinFisherRao(RISK, 0.05, reaction=0.0), ATOMS, [2.0]).final
    plain = wf.evolve(wf.GradientDescent(RISK, 0.05), ATOMS, [2.0]).final
    assert np.allclose(conic.theta, plain.theta, rtol=0, atol=1e-13)  # weights rounded once through log
    assert np.allclose(conic.weights, ATOMS.weights, rtol=1e-14)


def test_conic_descent_has_order_one_to_its_equations():
    """θ̇ = −∇Ψ, ω̇ = −κω(Ψ − ∫Ψ), by SciPy on NumPy's own gradients."""
    kappa, t = 1.5, 1.0
    x, y = np.asarray(DATA.x.x), np.asarray(DATA.x.y)

    def field(_, z):
        a, w, omega = z[:5], z[5:15].reshape(5, 2), z[15:]
        hidden = np.tanh(x @ w.T)
        u = (y - (a * hidden) @ omega) / len(y)
        psi = -a * (u @ hidden)
        grad_w = a[:, None] * ((u[:, None] * (1 - hidden**2)).T @ x)
        return np.concatenate([u @ hidden, grad_w.ravel(), -kappa * omega * (psi - omega @ psi)])

    theta = np.asarray(ATOMS.theta)
    z0 = np.concatenate([theta[:, 0], theta[:, 1:].ravel(), np.asarray(ATOMS.weights)])
    end = solve_ivp(field, (0, t), z0, rtol=1e-12, atol=1e-14).y[:, -1]
    steps, errors = 2.0 ** -np.arange(3, 8), []
    for step in steps:
        final = wf.evolve(WassersteinFisherRao(RISK, step, reaction=kappa), ATOMS, [t]).final
        found = np.concatenate([final.parts.a, final.parts.w.T.ravel(), final.weights])
        errors.append(np.abs(found - end).max())
    assert slope(steps, errors) == pytest.approx(1.0, abs=0.1)


def test_conic_descent_dissipates_by_both():
    """dF/dt = −∫|∇Ψ|²dρ − κ Var_ρ Ψ, from two steps of one small η."""
    kappa, step, functional = 2.0, 1e-5, RISK + 0.1 * wf.SecondMoment()
    after = wf.evolve(WassersteinFisherRao(functional, step, reaction=kappa), ATOMS, [step]).final
    psi = np.asarray(functional.potential(ATOMS.theta, ATOMS))
    omega = np.asarray(ATOMS.weights)
    rate = float(functional.dissipation(ATOMS)) + kappa * (omega @ psi**2 - (omega @ psi) ** 2)
    fall = float(functional.energy(ATOMS) - functional.energy(after)) / step
    assert fall == pytest.approx(rate, rel=1e-4)  # second order in a step of 1e-5


# --- birth and death ----------------------------------------------------------------------------


def test_birth_death_has_the_weights_of_fisher_rao():
    """q constant on three pieces: nothing moves, and the shares over seeds are ω_j ∝ ω_j(0)e^{−tq_j}."""
    n, seeds, t, step = 600, 24, 1.0, 1 / 128
    levels = jnp.array([0.0, 0.7, 1.6])
    q = lambda theta: levels[jnp.clip(jnp.floor(theta[0]), 0, 2).astype(int)]
    theta = np.repeat([[0.5], [1.5], [2.5]], n // 3, axis=0)
    start = wf.Particles(theta, neuron=LINE.neuron)
    dynamics, shares = BirthDeath(wf.Moment(q), step), []
    for seed in range(seeds):
        final = np.asarray(wf.evolve(dynamics, start, [t], key=jax.random.key(seed)).final.theta)
        assert set(np.unique(final)) <= {0.5, 1.5, 2.5} and final.shape == theta.shape
        shares.append([np.mean(final == place) for place in (0.5, 1.5, 2.5)])
    exact = np.exp(-t * np.asarray(levels))
    exact /= exact.sum()
    error = np.std(shares, axis=0, ddof=1) / np.sqrt(seeds)
    # sequential events and the step: O(η) of shares that change by 0.2; finite n: O(1/n)
    assert np.all(np.abs(np.mean(shares, axis=0) - exact) < 4 * error + 0.2 * step + 1 / n)
    assert np.all(error < 0.01) and np.abs(exact - 1 / 3).max() > 0.1


def test_birth_death_without_events_is_descent_and_with_noise_langevin():
    start = wf.Particles(ATOMS.theta, neuron=NEURON)
    key = jax.random.key(4)
    for beta in (np.inf, 20.0):
        calm = wf.evolve(BirthDeath(RISK, 0.05, reaction=0.0, beta=beta, decay=0.1), start, [1.0], key=key)
        plain = wf.evolve(wf.Langevin(RISK, 0.05, beta=beta, decay=0.1), start, [1.0], key=key)
        assert np.allclose(calm.final.theta, plain.final.theta, rtol=0, atol=1e-13)  # compiled apart


def test_unequal_weights_are_refused():
    with pytest.raises(ValueError, match=r"BirthDeath moves particles of equal weight.*WassersteinFisherRao"):
        wf.evolve(BirthDeath(RISK, 0.1), ATOMS, [0.5])


# --- what all of them do ------------------------------------------------------------------------


@pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)
def test_bits_do_not_depend_on_cuts_nor_programs_on_numbers(make, tmp_path):
    start = wf.Particles(ATOMS.theta, neuron=NEURON)
    dynamics, key = make(RISK, 0.05), jax.random.key(2)
    once, _ = dynamics.advance(dynamics.init(start, key), 2.0)
    carry, info = dynamics.init(start, key), None
    while info is None or not info.reached:
        carry, info = dynamics.advance(carry, 2.0, budget=7)
    for one, other in zip(jax.tree.leaves(carry.state), jax.tree.leaves(once.state), strict=True):
        assert np.array_equal(one, other)
    first, again = (wf.evolve(dynamics, start, [0.5], checkpoint=tmp_path / "run") for _ in range(2))
    assert np.array_equal(first.final.weights, again.final.weights)
    compiled = []
    listener = lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        make(RISK, 0.03).advance(carry, 2.5)
        assert compiled == []
    finally:
        jax.monitoring.clear_event_listeners()


@pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)
def test_float32_stays_float32(make):
    start = wf.Particles(np.asarray(ATOMS.theta, np.float32), neuron=NEURON)
    final = wf.evolve(make(RISK, 0.05), start, [0.5]).final
    assert final.theta.dtype == final.weights.dtype == np.float32


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: FisherRao(RISK, 0.0), "step must be a number > 0"),
        (lambda: FisherRao(RISK, 0.1, beta=-1.0), "beta must be"),
        (lambda: WassersteinFisherRao(RISK, 0.1, reaction=-1.0), "reaction must be a number >= 0"),
        (lambda: BirthDeath(RISK, 0.1, reaction=np.nan), "reaction must be a number >= 0"),
        (lambda: wf.evolve(FisherRao(RISK, 0.1, beta=2.0), ATOMS, [1.0]), "atoms have no entropy"),
        (lambda: wf.evolve(FisherRao(RISK, 0.1), wf.MLP(2).sample(jax.random.key(0), 4), [1.0]),
         "FisherRao moves the masses of wf.Particles or of a wf.GridDensity, got a Network"),
        (lambda: wf.evolve(WassersteinFisherRao(RISK, 0.1), wf.on_grid(wf.init(LINE), -7, 7, 9), [1.0]),
         "moves wf.Particles, got a GridDensity"),
    ],
)  # fmt: skip
def test_bad_input(call, says):
    with pytest.raises(ValueError, match=says):
        call()
