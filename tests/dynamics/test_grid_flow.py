"""Densities on a grid: exact solutions, orders, equilibria, invariants."""

import dataclasses
import warnings

import equinox as eqx
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import wideflow as wf
from noisy_case import NoisyLinear
from wideflow import loop
from wideflow._tracing import traced
from wideflow.dynamics.grid import flow as grid_flow
from wideflow.dynamics.grid import scharfetter_gummel as sg

LINE = NoisyLinear()
PLANE = NoisyLinear(w_star=(0.7, -0.4), m0=(-0.5, 0.6), decay=1.0)
TS = np.array([0.0, 0.5, 2.0])


def evolved(case, cells, ts=TS, half=6.0, tol=1e-8, **changes):
    case = dataclasses.replace(case, **changes)
    flow = wf.GridFlow(case.risk, beta=case.beta, decay=case.decay, tol=tol)
    run = wf.evolve(flow, case.start(cells, half), ts)
    assert run.status == "ok"
    return case, run


def slope(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


@pytest.mark.parametrize(
    ("case", "cells"),
    [(LINE, (50, 100, 200)), pytest.param(PLANE, (24, 36, 54), marks=pytest.mark.slow)],
    ids=["1-D", "2-D"],
)
def test_order_in_the_cells_with_noise(case, cells):
    """L1 error at t = 0.5 and 2: order 2 in h (asked: 1.8 or more)."""
    half = 6.0 if case is LINE else 4.0
    errors = []
    for n in cells:
        _, run = evolved(case, n, half=half, tol=1e-7)
        errors.append([case.error(t, rho) for t, rho in zip(run.t[1:], run.states[1:], strict=True)])
    for i in range(2):
        assert slope([1 / n for n in cells], [e[i] for e in errors]) > 1.8


@pytest.mark.slow
@pytest.mark.parametrize(("case", "cells"), [(LINE, (64, 128, 256)), (PLANE, (48, 96))], ids=["1-D", "2-D"])
def test_order_in_the_cells_without_noise(case, cells):
    """The limited slopes are of order 2 in L1 where ρ is smooth; extrema cost a little."""
    errors = []
    for n in cells:
        noiseless, run = evolved(case, n, ts=[0.2, 0.4], half=3.6, tol=1e-4, beta=np.inf, s0=0.6)
        errors.append([noiseless.error(t, rho) for t, rho in zip(run.t, run.states, strict=True)])
    for i in range(2):
        assert slope([1 / n for n in cells], [e[i] for e in errors]) > 1.8


@pytest.mark.slow
def test_three_axes():
    """D = 3 agrees with the exact solution to the order that a coarse grid allows: the error falls by
    2.25 = 1.5² to within a tenth when h does by 1.5."""
    case = NoisyLinear(w_star=(0.7, -0.4, 0.2), m0=(-0.3, 0.3, 0.0), beta=4.0, decay=1.0)
    errors = []
    for cells in (16, 24):
        _, run = evolved(case, cells, ts=[0.5], half=3.5, tol=1e-5)
        errors.append(case.error(0.5, run.final))
    assert errors[1] < errors[0] / 2.0


def test_mean_covariance_and_free_energy_at_all_times():
    ts = np.linspace(0.0, 4.0, 9)
    _, run = evolved(LINE, 400, ts=ts)
    h = 12 / 400
    for t, rho, energy in zip(run.t, run.states, run["free_energy"], strict=True):
        # all three are O(h²), with factors of order 1 for densities of width 0.6 and more
        assert abs(rho.mean()[0] - LINE.mean(t)[0]) < 2 * h**2
        assert abs(rho.covariance()[0, 0] - LINE.sd(t) ** 2) < 2 * h**2
        assert abs(energy - LINE.energy(t)) < 2 * h**2


@pytest.mark.slow
@pytest.mark.parametrize("beta", [4.0, np.inf])
def test_order_in_time(beta):
    """Fixed steps of 1/k against a fine solution on the same grid: order 3."""
    case = dataclasses.replace(LINE, beta=beta)
    flow = traced(wf.GridFlow(case.risk, beta=beta, decay=case.decay))
    state = case.start(40, 4.0)
    potential = flow._potential(state)

    @jax.jit
    def end(mass, k):
        one = lambda _, m: flow.scheme(m, potential(m), potential, grid_flow._cells(state), 0.4 / k)[0]
        return jax.lax.fori_loop(0, k, one, mass)

    exact = end(state.mass, 640)
    steps = np.array([8, 16, 32])
    errors = [float(jnp.abs(end(state.mass, int(k)) - exact).sum()) for k in steps]
    if beta == np.inf:  # the limiter of slopes has kinks, which cost order
        assert slope(1 / steps, errors) > 1.7
    else:
        assert slope(1 / steps, errors) == pytest.approx(3.0, abs=0.35)


def test_tolerance_is_kept():
    """A hundredth of the tolerance: less error in time by ten or more (the estimate is of lower order)."""
    fine = evolved(LINE, 50, ts=[1.0], tol=1e-11)[1].final.mass
    errors = [
        float(jnp.abs(evolved(LINE, 50, ts=[1.0], tol=tol)[1].final.mass - fine).sum())
        for tol in (1e-5, 1e-7)
    ]
    assert errors[1] < errors[0] / 10
    assert errors[0] < 1e-3  # some hundred steps of 1e-5 at most


def test_saved_times_do_not_change_the_steps():
    _, few = evolved(LINE, 60, ts=[2.0])
    _, many = evolved(LINE, 60, ts=np.linspace(0.1, 2.0, 20))
    assert few.info["steps"] == many.info["steps"]
    assert (np.asarray(few.final.mass) == np.asarray(many.final.mass)).all()


@eqx.filter_jit
def one_step(step, mass, phi, grid, dt):
    return step(mass, phi, lambda m: phi, grid, dt)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31 - 1), st.floats(1e-3, 1e3), st.integers(1, 3))
def test_discrete_equilibria_are_kept(seed, beta, axes):
    """m ∝ e^{−βΦ} for any Φ: a step of any length leaves every mass where it is, to rounding."""
    rng = np.random.default_rng(seed)
    shape = (9, 7, 5)[:axes]
    phi = jnp.asarray(rng.normal(size=shape) * 5 / beta)
    mass = jnp.exp(-beta * phi)
    mass = mass / mass.sum()
    step = grid_flow.DriftDiffusion(jnp.asarray(beta))
    grid = grid_flow.Cells(jnp.asarray(rng.uniform(0.1, 1, axes)), (True,) * axes)
    dt = jnp.asarray(10.0 ** rng.uniform(-3, 6))
    new, error = one_step(step, mass, phi, grid, dt)
    # a flux of 0 is the difference of two that are as large as the rates, each with some roundings
    largest = max(
        float(jnp.max(v))
        for i in range(axes)
        for v in sg.rates(jnp.moveaxis(phi, i, 0), beta, grid.widths[i])
    )
    allowed = 1e-13 * (1 + dt * largest)
    assert (np.abs(np.asarray(new - mass)) <= np.minimum(allowed, 1.0) * np.asarray(mass).max()).all()
    assert error < allowed * 10


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31 - 1), st.floats(-6, 12))
def test_implicit_step_solves_its_equation(seed, log_rate):
    """Against a dense solve; masses over 200 orders of magnitude stay positive and keep their sum."""
    rng = np.random.default_rng(seed)
    n = 12
    right, left = (10.0**log_rate * rng.uniform(0, 1, n - 1) for _ in range(2))
    mass = 10.0 ** rng.uniform(-200, 0, n)
    new = np.asarray(sg.implicit_step(jnp.asarray(mass), sg.Rates(jnp.asarray(right), jnp.asarray(left))))
    assert (new > 0).all()
    np.testing.assert_allclose(new.sum(), mass.sum(), rtol=1e-13)  # some ten roundings
    # the residual m − (m⁺ − A m⁺), against the size of its terms
    flow = right * new[:-1] - left * new[1:]
    back = new + np.append(flow, 0) - np.append(0, flow)
    size = (
        new
        + np.append(right * new[:-1] + left * new[1:], 0)
        + np.append(0, right * new[:-1] + left * new[1:])
    )
    assert (np.abs(back - mass) <= 1e-13 * (size + mass)).all()


def random_problem(seed):
    rng = np.random.default_rng(seed)
    phi = (jnp.cos, "erf", "relu", "tanh")[rng.integers(4)]
    target = wf.single_index("erf") if rng.random() < 0.5 else wf.hermite(2)
    return wf.Problem(x=wf.Gaussian(1), target=target, neuron=wf.Neuron(phi)), rng


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**31 - 1), st.sampled_from([np.inf, 0.3, 5.0, 80.0]), st.sampled_from([0.0, 0.5]))
def test_free_energy_never_increases(seed, beta, decay):
    """Any step that the stepper accepts, in random problems, from random densities; masses stay positive and
    of sum 1."""
    problem, rng = random_problem(seed)
    mass = rng.gamma(0.3, size=(14, 12))
    state = wf.GridDensity(
        mass / mass.sum(), (-2.0, -1.5), (2.0, 2.5), neuron=problem.neuron, alpha=rng.uniform(0.5, 2)
    )
    flow = wf.GridFlow(wf.Risk(problem, wf.Quadrature(16)), beta=beta, decay=decay, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mass at the boundary and steep potentials, as such densities have
        carry = flow.init(state, jax.random.key(0))
        energies = [float(carry.attempt.memory.energy)]
        for _ in range(40):
            carry, info = flow.advance(carry, 1e9, budget=1)
            assert info.finite
            assert (carry.state.mass >= 0).all()
            assert abs(float(carry.state.mass.sum()) - 1) < 1e-14
            energies.append(float(carry.attempt.memory.energy))
    assert (np.diff(energies) <= 64 * np.finfo(float).eps * (1 + np.abs(energies[1:]))).all()
    assert energies[-1] < energies[0]


@pytest.mark.slow
def test_positive_and_of_mass_one_over_many_steps():
    """10⁵ steps of each scheme."""
    case = LINE
    state = case.start(16, 4.0)
    for beta in (4.0, np.inf):
        flow = traced(wf.GridFlow(case.risk, beta=beta, decay=0.3))
        potential = flow._potential(state)

        @jax.jit
        def many(mass, flow=flow, potential=potential):
            def one(k, carry):
                mass, least = carry
                # back and forth: the target's sign changes every 50 steps
                sign = jnp.where((k // 50) % 2 == 0, 1.0, -1.0)
                phi = lambda m: sign * potential(m)
                mass = flow.scheme(mass, phi(mass), phi, grid_flow._cells(state), jnp.asarray(2e-3))[0]
                return mass, jnp.minimum(least, jnp.min(mass))

            return jax.lax.fori_loop(0, 100_000, one, (mass, jnp.min(mass)))

        mass, least = many(state.mass)
        assert least >= 0
        # without the division by the sum that the stepper makes: 10⁵ roundings of 2.2e-16
        assert abs(float(mass.sum()) - 1) < 2.2e-11


def test_dissipation_identity():
    """F(0) − F(t) = ∫∫|∇(Ψ_λ + β⁻¹ log ρ)|²dρ dt with the exact Gaussian's dissipation, to O(h²)."""
    ts = np.linspace(0, 1, 41)
    gaps = []
    for cells in (60, 120):
        _, run = evolved(LINE, cells, ts=ts)
        # for a Gaussian ∇(Ψ_λ + β⁻¹ log ρ) = (1+λ)m − w* + (λ − 1/(βC))(θ − m)
        rate = lambda t: (
            ((1 + LINE.decay) * LINE.mean(t)[0] - 0.7) ** 2
            + (LINE.decay * LINE.sd(t) - 1 / (LINE.beta * LINE.sd(t))) ** 2
        )
        rates = np.array([rate(t) for t in ts])
        lost = np.sum(np.diff(ts)[::2] * 2 * (rates[:-2:2] + 4 * rates[1::2] + rates[2::2]) / 6)
        gaps.append(abs(run["free_energy"][0] - run["free_energy"][-1] - lost))
    assert gaps[1] < gaps[0] / 3  # order 2 is a factor of 4
    assert gaps[1] < 2 * (12 / 120) ** 2


def test_a_frozen_output_weight_stays():
    problem = wf.Problem(
        x=wf.Gaussian(1), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="frozen")
    )
    law = wf.init(problem, a=wf.laws.Uniform(-1.0, 1.0), w=1.0)
    start = wf.on_grid(law, (-1.0, -6.0), (1.0, 6.0), (6, 40))
    run = wf.evolve(wf.GridFlow(wf.Risk(problem), beta=3.0, decay=0.5), start, [0.0, 1.0])
    assert start.moves == (False, True)
    np.testing.assert_allclose(run.final.marginal(0), start.marginal(0), rtol=1e-13)
    assert abs(run.final.marginal(1) - start.marginal(1)).max() > 0.01


def test_boundary_warns():
    case = dataclasses.replace(LINE, beta=0.5)
    with pytest.warns(UserWarning, match="outermost cells"):
        wf.evolve(wf.GridFlow(case.risk, beta=0.5, decay=0.3), case.start(40, 3.0), [1.0])


def test_alpha_and_float32():
    """At scale α the mean obeys ṁ = w*/α − (1 + λ)m; float32 keeps its own digits."""
    case = dataclasses.replace(LINE, beta=4.0)
    start = case.start(200)
    scaled = wf.GridDensity(start.mass, start.low, start.high, neuron=start.neuron, alpha=2.0)
    run = wf.evolve(wf.GridFlow(case.risk, beta=4.0, decay=0.3), scaled, [1.0])
    fixed = 0.35 / 1.3
    assert abs(float(run.final.mean()[0]) - (fixed + (-0.5 - fixed) * np.exp(-1.3))) < 1e-3  # h² = 3.6e-3
    small = jax.tree.map(lambda v: v.astype(jnp.float32), start)
    run32 = wf.evolve(wf.GridFlow(case.risk, beta=4.0, decay=0.3), small, [1.0])
    run64 = wf.evolve(wf.GridFlow(case.risk, beta=4.0, decay=0.3), start, [1.0])
    assert run32.final.mass.dtype == jnp.float32
    assert float(jnp.abs(run32.final.mass - run64.final.mass).sum()) < 1e-4  # 2e2 steps of 1e-6 and rounding


def test_resumes_to_the_same_bits(tmp_path, monkeypatch):
    flow = wf.GridFlow(LINE.risk, beta=4.0, decay=0.3)
    call = {"dynamics": flow, "state": LINE.start(30), "ts": np.linspace(0, 1, 5)}
    whole, look, looks = wf.evolve(**call), loop._Loop.look, []

    def interrupted(self, t, state):
        looks.append(t)
        if len(looks) == 3:
            raise KeyboardInterrupt
        return look(self, t, state)

    monkeypatch.setattr(loop._Loop, "look", interrupted)
    assert wf.evolve(**call, checkpoint=tmp_path / "run").status == "interrupted"
    again = wf.evolve(**call, checkpoint=tmp_path / "run")
    assert again.status == "ok" and looks == [0.0, 0.25, 0.5, 0.5, 0.75, 1.0]
    for here, there in zip((again, wf.load(tmp_path / "run")), (whole, whole), strict=True):
        for a, b in zip(here.states, there.states, strict=True):
            assert (np.asarray(a.mass) == np.asarray(b.mass)).all()


def test_particles_are_refused():
    rho = wf.init(LINE.problem, w=1.0).sample(jax.random.key(0), 5)
    with pytest.raises(ValueError, match=r"wf.on_grid"):
        wf.evolve(wf.GridFlow(LINE.risk, beta=1.0), rho, [1.0])


def test_a_steep_potential_is_told():
    """At a cell Péclet number x the flux has the diffusion x coth x / β, here with h = 0.12, β = 500 and a
    slope of 1.5 everywhere."""
    case = dataclasses.replace(LINE, beta=500.0, s0=0.1, m0=(-0.8,), decay=1e-9)
    with pytest.warns(UserWarning, match="more cells"):
        run = wf.evolve(wf.GridFlow(case.risk, beta=500.0), case.start(100), [0.0])
    slope = 1.5  # Ψ' = m − w*
    assert run.info["grid_diffusion"] == pytest.approx(500 * slope * 0.12 / 2 - 1, rel=0.01)
    assert evolved(LINE, 100, ts=[0.1])[1].info["grid_diffusion"] < 0.05
