"""Noise that changes in time, and noise on chosen coordinates, in the exact case 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import wideflow as wf
from wideflow.dynamics.schedules import Annealing

N, STEP, DECAY, T, C0 = 4000, 0.005, 0.5, 1.5, 0.49
W = np.array([1.0, -0.5])
PLANE = wf.Problem(
    x=wf.Gaussian(2), target=lambda x: x @ W, neuron=wf.CustomNeuron(lambda x, theta: theta @ x, 2)
)
RISK = wf.Risk(PLANE, wf.Quadrature(2))  # exact for a linear neuron
KINDS = ["linear", "geometric", "logarithmic", "power"]


def cloud(n=N):
    return wf.init(PLANE, theta=wf.laws.Normal(0.3, C0**0.5)).sample(jax.random.key(0), n)


def variance(rate):
    """C(T) of Ċ = −2λC + 2·rate(t), by quadrature."""
    gained = quad(lambda s: 2 * rate(s) * np.exp(-2 * DECAY * (T - s)), 0, T, epsabs=1e-12)[0]
    return C0 * np.exp(-2 * DECAY * T) + gained


@pytest.mark.parametrize("kind", KINDS)
def test_variance_under_annealing(kind):
    """Case 1: each coordinate is an Ornstein–Uhlenbeck process about the mean, dC/dt = −2λC + 2/β(t)."""
    beta = Annealing(0.8, 20.0, 1.0, kind)
    run = wf.evolve(wf.Langevin(RISK, STEP, beta=beta, decay=DECAY), cloud(), [T], key=jax.random.key(1))
    found = float(jnp.var(run.final.theta, axis=0, ddof=1).mean())
    exact = variance(lambda t: 1 / float(beta(t)))
    error = exact * np.sqrt(2 / (2 * N))  # of a Gaussian variance, two coordinates
    # The left rule for ∫2/β and the Euler step: (η/2)|2/β(0)| and (η/2)·2λ·C at most, 0.4 of an error.
    bias = STEP / 2 * (2 / 0.8 + 2 * DECAY * exact)
    assert abs(found - exact) < 4 * error + bias
    for fixed in (0.8, 20.0):  # neither end for all the time would do
        assert abs(found - variance(lambda t, fixed=fixed: 1 / fixed)) > 10 * error


def test_schedules_at_known_points():
    """Both ends, the end kept, and half way: the mean, the geometric one, log 2/log 3, that of the roots."""
    half = {"linear": 8.5, "geometric": 4.0, "logarithmic": 1 + 15 * np.log(2) / np.log(3), "power": 6.25}
    for kind in KINDS:
        beta = Annealing(1.0, 16.0, 2.0, kind)
        found = [float(beta(t)) for t in (0.0, 1.0, 2.0, 7.0)]
        assert np.allclose(found, [1.0, half[kind], 16.0, 16.0], rtol=1e-14)
    one, many = Annealing(1.0, 16.0, 2.0, "power", power=1.0), Annealing(1.0, 16.0, 2.0, "power", power=1e6)
    assert float(one(0.7)) == pytest.approx(float(Annealing(1.0, 16.0, 2.0, "linear")(0.7)), rel=1e-14)
    # p(e^{L/p} − 1) = L + L²/2p: 4e-6 from the geometric one at p = 1e6
    assert float(many(0.7)) == pytest.approx(float(Annealing(1.0, 16.0, 2.0, "geometric")(0.7)), rel=1e-5)


def test_annealing_that_stands_still_is_a_fixed_beta():
    fixed, still = (
        wf.evolve(wf.Langevin(RISK, STEP, beta=beta, decay=DECAY), cloud(20), [0.5], key=jax.random.key(1))
        for beta in (4.0, Annealing(4.0, 4.0, 1.0, "linear"))
    )
    assert np.array_equal(fixed.final.theta, still.final.theta)


def test_another_annealing_does_not_recompile():
    compiled = []
    listener = lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    start = cloud(20)
    wf.evolve(wf.Langevin(RISK, STEP, beta=Annealing(1.0, 5.0, 1.0)), start, [0.1])
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        wf.evolve(wf.Langevin(RISK, STEP, beta=Annealing(2.0, 7.0, 0.5)), start, [0.1])
        assert compiled == []
    finally:
        jax.monitoring.clear_event_listeners()


def test_cuts_and_checkpoints_keep_the_bits(tmp_path):
    """Cut anywhere, a run goes on with the β of its own time; a folder with another annealing is refused."""
    dynamics, key = wf.Langevin(RISK, STEP, beta=Annealing(1.0, 50.0, 0.5)), jax.random.key(3)
    once, _ = dynamics.advance(dynamics.init(cloud(20), key), 0.6)
    carry, info = dynamics.init(cloud(20), key), None
    while info is None or not info.reached:
        carry, info = dynamics.advance(carry, 0.6, budget=7)
    assert np.array_equal(carry.state.theta, once.state.theta)
    first, again = (wf.evolve(dynamics, cloud(20), [0.1], checkpoint=tmp_path / "run") for _ in range(2))
    assert np.array_equal(first.final.theta, again.final.theta)
    other = wf.Langevin(RISK, STEP, beta=Annealing(1.0, 51.0, 0.5))
    with pytest.raises(ValueError, match="other problem or dynamics"):
        wf.evolve(other, cloud(20), [0.1], checkpoint=tmp_path / "run")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Annealing(0.0, 1.0, 1.0), r"Annealing\(start\) must be a number > 0"),
        (lambda: Annealing(1.0, np.inf, 1.0), r"Annealing\(end\)"),
        (lambda: Annealing(1.0, 2.0, -1.0), r"Annealing\(over\)"),
        (lambda: Annealing(1.0, 2.0, 1.0, "power", power=0.0), r"Annealing\(power\)"),
        (lambda: Annealing(1.0, 2.0, 1.0, "geometrical"), "Did you mean 'geometric'"),
        (lambda: wf.Langevin(RISK, STEP, beta=lambda t: 1 + t), "wf.Annealing"),
        (lambda: wf.FreeEnergy(RISK, beta=Annealing(1.0, 2.0, 1.0)), "beta must be a number"),
    ],
)
def test_bad_schedules(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_free_energy_at_one_time_of_a_schedule():
    beta, state = Annealing(1.0, 2.0, 1.0, "linear"), wf.on_grid(wf.init(PLANE), -7.0, 7.0, 20)
    found = wf.FreeEnergy(RISK, beta=beta(0.5)).energy(state)
    assert float(found) == float(wf.FreeEnergy(RISK, beta=1.5).energy(state))


# --- noise on chosen coordinates ----------------------------------------------------------------


def test_noise_on_one_coordinate():
    """C₁(t) = C₀e^{−2λt} + (1 − e^{−2λt})/(βλ) with noise, C₂(t) = C₀e^{−2λt} without, per particle."""
    beta, start = 2.0, cloud()
    dynamics = wf.Langevin(RISK, STEP, beta=beta, decay=DECAY, noise_on="theta1")
    theta = np.asarray(wf.evolve(dynamics, start, [T], key=jax.random.key(1)).final.theta)
    exact = C0 * np.exp(-2 * DECAY * T) + (1 - np.exp(-2 * DECAY * T)) / (beta * DECAY)
    # 4 standard errors of a Gaussian variance, and the Euler bias ηλ/2 of the stationary part
    assert abs(theta[:, 0].var(ddof=1) - exact) < exact * (4 * np.sqrt(2 / N) + STEP * DECAY / 2)
    centred = np.asarray(start.theta[:, 1] - start.theta[:, 1].mean())
    shrunk = centred * (1 - STEP * DECAY) ** round(T / STEP)
    assert np.allclose(theta[:, 1] - theta[:, 1].mean(), shrunk, rtol=0, atol=1e-12)  # rounding, 300 steps
    # the continuous law within its own standard error
    free = C0 * np.exp(-2 * DECAY * T)
    assert abs(theta[:, 1].var(ddof=1) - free) < free * (4 * np.sqrt(2 / N) + STEP * DECAY**2 * T)


def test_noise_on_everything_is_noise():
    """By the names of all coordinates or of their part, the bits are those of plain Langevin."""
    runs = [
        wf.evolve(wf.Langevin(RISK, STEP, beta=2.0, noise_on=on), cloud(20), [0.2], key=jax.random.key(5))
        for on in (None, "theta", ("theta1", "theta2"), ("theta2", "theta"))
    ]
    for run in runs[1:]:
        assert np.array_equal(run.final.theta, runs[0].final.theta)


@pytest.mark.parametrize("on, still", [("w", [0, 3]), (("a", "b"), [1, 2]), (("w2", "a"), [1, 3])])
def test_parts_of_a_neuron(on, still):
    """With no force, coordinates without noise stay to the bit and all others move."""
    neuron = wf.Neuron("erf", bias=True)
    flat = 0.0 * wf.SecondMoment()
    start = wf.Particles(np.random.default_rng(0).normal(size=(5, 4)), neuron=neuron)
    moved = np.asarray(wf.evolve(wf.Langevin(flat, STEP, beta=1.0, noise_on=on), start, [0.1]).final.theta)
    same = moved == np.asarray(start.theta)
    assert same[:, still].all() and not np.delete(same, still, axis=1).any()


FROZEN = wf.Problem(
    x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="frozen", bias=True)
)


@pytest.mark.parametrize(
    ("on", "says"),
    [
        ("bias", "noise_on = 'bias' is no coordinate .* it has a, w1, w2, w3, b, w"),
        (("w1", "w4"), "'w4' is no coordinate .* Did you mean 'w"),
        ("a", "'a' is not trained"),
        ((), "names of coordinates"),
        (3, "names of coordinates"),
        ((1,), "names of coordinates"),
    ],
)
def test_bad_names(on, says):
    with pytest.raises(ValueError, match=says):
        wf.Langevin(wf.Risk(FROZEN), STEP, beta=1.0, noise_on=on)


def test_names_are_checked_against_the_state_where_there_is_no_problem():
    dynamics = wf.Langevin(1.0 * wf.SecondMoment(), STEP, beta=1.0, noise_on="w7")
    with pytest.raises(ValueError, match="'w7' is no coordinate"):
        wf.evolve(dynamics, wf.init(FROZEN).sample(jax.random.key(0), 4), [0.1])
    network = wf.MLP(3, activation="erf").sample(jax.random.key(0), 4)
    dynamics = wf.Langevin(wf.Risk(FROZEN), STEP, beta=1.0, noise_on="w")
    with pytest.raises(ValueError, match="whose coordinates have names, got a Network"):
        wf.evolve(dynamics, network, [0.1])
