"""What every dynamics on particles must do."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wideflow as wf
from exact_cases import erf_problem

RNG = np.random.default_rng(0)
DATA = wf.Dataset(RNG.normal(size=(64, 3)), RNG.normal(size=64))
FINITE = wf.Problem(x=DATA, neuron=wf.Neuron("erf"))
ENDLESS = erf_problem(3)
STEP = 2.0**-7

DYNAMICS = {
    "GradientFlow": lambda p, s: wf.GradientFlow(wf.Risk(p)),
    "GradientDescent": lambda p, s: wf.GradientDescent(wf.Risk(p), s),
    "SGD": lambda p, s: wf.SGD(wf.Risk(p), s),
    "SGD batch": lambda p, s: wf.SGD(wf.Risk(p), s, batch=5),
    "Langevin": lambda p, s: wf.Langevin(wf.Risk(p), s, beta=50.0, decay=0.1),
    "noisy SGD": lambda p, s: wf.Langevin(wf.Risk(p), s, beta=50.0, batch=2),
    "annealed": lambda p, s: wf.Langevin(
        wf.Risk(p), s, beta=wf.Annealing(5.0, 500.0, over=1.0), noise_on=("w",)
    ),
    "WassersteinFisherRao": lambda p, s: wf.WassersteinFisherRao(wf.Risk(p), s, decay=0.1),
    "BirthDeath": lambda p, s: wf.BirthDeath(wf.Risk(p), s, reaction=20.0, beta=50.0),
    "Adam": lambda p, s: wf.Adam(wf.Risk(p), s),
    "Adam batch": lambda p, s: wf.Adam(wf.Risk(p), s, batch=4),
    "Optax": lambda p, s: wf.Optax(wf.Risk(p), optax.sgd, s),
    "sum": lambda p, s: wf.GradientDescent(wf.Risk(p) + 0.1 * wf.SecondMoment() + 0.01 * wf.PathNorm(), s),
}
every_dynamics = pytest.mark.parametrize("make", DYNAMICS.values(), ids=DYNAMICS)


def start_of(problem, n=6, **kwargs):
    return wf.init(problem).sample(jax.random.key(1), n, **kwargs)


@every_dynamics
@pytest.mark.parametrize("problem", [ENDLESS, FINITE], ids=["law", "data"])
def test_contract(make, problem):
    dynamics, start, ts = make(problem, STEP), start_of(problem), [0.0, 0.1, 0.5]
    run = wf.evolve(dynamics, start, ts, key=jax.random.key(2))
    assert run.status == "ok" and len(run.states) == 3
    assert np.array_equal(run.states[0].theta, start.theta)
    assert np.array_equal(run.final.theta, run.states[-1].theta)
    assert not np.array_equal(run.final.theta, start.theta)
    # discrete times snap to the nearest kη, half a step at most
    assert np.all(np.abs(run.t - ts) <= STEP / 2)
    if dynamics.name != "GradientFlow":
        assert np.array_equal(run.t / STEP, np.rint(run.t / STEP))
        assert run.info["steps"] == round(run.t[-1] / STEP)
    # the same sum in two programs
    assert run["risk"][-1] == pytest.approx(float(wf.Risk(problem).value(run.final)), rel=1e-12)
    assert run.citations() and all(len(source) > 20 for source in run.citations())


@every_dynamics
def test_same_key_same_bits(make):
    runs = [
        wf.evolve(make(ENDLESS, STEP), start_of(ENDLESS), [0.3], key=jax.random.key(k)) for k in (3, 3, 4)
    ]
    theta = [np.asarray(run.final.theta) for run in runs]
    assert np.array_equal(theta[0], theta[1])
    one = make(ENDLESS, STEP)
    random = one.name in ("Langevin", "BirthDeath") or (one.name != "GradientFlow" and one.batches.batch > 0)
    assert np.array_equal(theta[0], theta[2]) != random


@every_dynamics
def test_second_call_never_recompiles(make):
    compiled = []
    listener = lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    wf.evolve(make(ENDLESS, STEP), start_of(ENDLESS), [0.1, 0.3])
    start = start_of(ENDLESS)
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        wf.evolve(make(ENDLESS, STEP), start, [0.05, 0.2, 0.4], key=jax.random.key(9))
        assert compiled == []
        if make(ENDLESS, STEP).name != "Optax":  # any optax optimiser holds its step in its code
            wf.evolve(make(ENDLESS, STEP / 3), start, [0.1])
            assert compiled == []
    finally:
        jax.monitoring.clear_event_listeners()


@pytest.mark.slow
@every_dynamics
def test_float32_stays_float32(make):
    run = wf.evolve(make(ENDLESS, STEP), start_of(ENDLESS, dtype=jnp.float32), [0.1])
    assert run.final.theta.dtype == np.float32


@pytest.mark.slow
@every_dynamics
def test_frozen_output_weights_do_not_move(make):
    problem = wf.Problem(
        x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="frozen")
    )
    start = start_of(problem)
    run = wf.evolve(make(problem, STEP), start, [0.3])
    if run.provenance["dynamics"]["name"] == "BirthDeath":  # a neuron dies and is born with its weights
        assert set(np.asarray(run.final.parts.a)) <= set(np.asarray(start.parts.a))
    else:
        assert np.array_equal(run.final.parts.a, start.parts.a)
    assert not np.array_equal(run.final.parts.w, start.parts.w)


def test_adamw_does_not_decay_frozen_weights():
    problem = wf.Problem(
        x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf", output="frozen")
    )
    start = start_of(problem)
    run = wf.evolve(wf.Optax(wf.Risk(problem), optax.adamw(1e-2, weight_decay=1.0), 1e-2), start, [0.1])
    assert np.array_equal(run.final.parts.a, start.parts.a)


def test_optax_sgd_is_gradient_descent():
    start = start_of(ENDLESS)
    ours = wf.evolve(wf.GradientDescent(wf.Risk(ENDLESS), STEP), start, [0.5])
    theirs = wf.evolve(wf.Optax(wf.Risk(ENDLESS), optax.sgd, STEP), start, [0.5])
    assert np.allclose(ours.final.theta, theirs.final.theta, rtol=1e-13, atol=1e-14)  # 64 steps' rounding


def test_adam_against_its_formula():
    """m ← b₁m + (1 − b₁)g, v ← b₂v + (1 − b₂)g², θ ← θ − η m̂/(√v̂ + ε), g = −velocity."""
    start, eta, b1, b2, eps = start_of(ENDLESS), 1e-2, 0.9, 0.999, 1e-8
    risk, theta, m, v = wf.Risk(ENDLESS), np.asarray(start.theta), 0.0, 0.0
    for k in range(1, 21):
        g = -np.asarray(risk.velocity(wf.Particles(theta, neuron=ENDLESS.neuron)))
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        theta = theta - eta * (m / (1 - b1**k)) / (np.sqrt(v / (1 - b2**k)) + eps)
    run = wf.evolve(wf.Adam(risk, eta), start, [20 * eta])
    assert np.allclose(run.final.theta, theta, rtol=0, atol=1e-12)  # rounding of 20 steps of 1e-2


def test_sum_of_two_risks_has_no_batches():
    other = wf.Problem(x=wf.Dataset(DATA.x, -DATA.y), neuron=wf.Neuron("erf"))
    both = wf.Risk(FINITE) + 0.5 * wf.Risk(other)
    with pytest.raises(ValueError, match="a sum of several"):
        wf.SGD(both, STEP)
    run = wf.evolve(wf.GradientDescent(both, STEP), start_of(FINITE), [STEP])
    moved = np.asarray(start_of(FINITE).theta) + STEP * np.asarray(both.velocity(start_of(FINITE)))
    assert np.allclose(run.final.theta, moved, rtol=0, atol=1e-15)  # one step, one rounding


def test_full_batch_of_a_data_set_is_its_mean():
    """SGD's velocity, averaged over all batches of one pass, is the full velocity to first order in η."""
    start, step = start_of(FINITE), 1e-6
    one_pass = wf.evolve(wf.SGD(wf.Risk(FINITE), step, batch=4, one_pass=True), start, [16 * step])
    moved = (np.asarray(one_pass.final.theta) - np.asarray(start.theta)) / (16 * step)
    full = np.asarray(wf.Risk(FINITE).velocity(start))
    assert np.allclose(moved, full, rtol=0, atol=2e-5)  # 16 steps of 1e-6 change the velocity by 1e-5


def test_one_pass_on_a_data_set_reads_each_row_once():
    dynamics = wf.SGD(wf.Risk(FINITE), STEP, batch=4, one_pass=True)
    nodes = dynamics.batches.draw(jax.random.key(5), jnp.arange(16))
    rows = np.asarray(nodes.x).reshape(-1, 3)
    assert np.array_equal(np.sort(rows, axis=0), np.sort(np.asarray(DATA.x), axis=0))


def test_one_pass_beyond_the_data_is_refused():
    dynamics = wf.SGD(wf.Risk(FINITE), STEP, one_pass=True)
    assert wf.evolve(dynamics, start_of(FINITE), [64 * STEP]).status == "ok"
    with pytest.raises(ValueError, match=r"takes 65 steps.*lasts for 64 steps.*one_pass=False"):
        wf.evolve(dynamics, start_of(FINITE), [65 * STEP])


def test_noise_is_independent_of_the_order_of_the_data():
    """One pass of noisy SGD: the noise of step 0 against each row's place in the pass, in float32,
    where a key used twice would show as a correlation near 1."""
    m = 512
    data = wf.Dataset(np.arange(m, dtype=np.float32)[:, None] / m, np.zeros(m, np.float32))
    problem = wf.Problem(x=data, neuron=wf.Neuron("identity", output="unit"))
    dynamics = wf.Langevin(wf.Risk(problem), 1e-8, beta=1.0, batch=1, one_pass=True)
    start = wf.Particles(np.zeros((m, 1), np.float32), neuron=problem.neuron)
    key = jax.random.key(3)
    carry, _ = dynamics.advance(dynamics.init(start, key), 1e-8)
    noise = np.asarray(carry.state.theta[:, 0])
    place = np.argsort(np.asarray(dynamics.batches.draw(key, jnp.arange(m)).x).ravel())
    assert abs(np.corrcoef(noise, place)[0, 1]) < 4 / np.sqrt(m)  # four standard errors


def test_saved_times_closer_than_a_step_are_refused():
    with pytest.raises(ValueError, match=r"ts\[1\] = 0\.02 and ts\[2\] = 0\.021 both are step 2"):
        wf.evolve(wf.GradientDescent(wf.Risk(ENDLESS), 0.01), start_of(ENDLESS), [0.0, 0.02, 0.021])


def test_flow_needs_a_solver_with_an_error_estimate():
    with pytest.raises(ValueError, match=r"GradientFlow\(solver\) must be an explicit"):
        wf.GradientFlow(wf.Risk(ENDLESS), solver="tsit5")
    run = wf.evolve(wf.GradientFlow(wf.Risk(ENDLESS), solver=diffrax.Dopri8()), start_of(ENDLESS), [0.5])
    assert run.status == "ok" and not any("Tsitouras" in source for source in run.citations())


def test_resampling_follows_the_weights():
    weights = np.arange(1.0, 65)
    data = wf.Dataset(DATA.x, np.arange(64.0), weights)
    problem = wf.Problem(x=data, neuron=wf.Neuron("erf"))
    nodes = wf.SGD(wf.Risk(problem), STEP, batch=64).batches.draw(jax.random.key(6), jnp.arange(400))
    share = np.bincount(np.asarray(nodes.y).astype(int).ravel(), minlength=64) / nodes.y.size
    expected = weights / weights.sum()
    assert np.all(np.abs(share - expected) < 5 * np.sqrt(expected / nodes.y.size))  # 64 counts: 5 s.e.


@pytest.mark.parametrize("batch", [0, -1, 1.5, "many"])
def test_bad_batches(batch):
    with pytest.raises(ValueError, match="batch must be a whole number >= 1"):
        wf.SGD(wf.Risk(ENDLESS), STEP, batch=batch)


@pytest.mark.parametrize("step", [0, -1e-3, float("nan"), float("inf"), "fast"])
def test_bad_steps(step):
    for make in (wf.GradientDescent, wf.SGD, wf.Adam):
        with pytest.raises(ValueError, match="step must be a number > 0"):
            make(wf.Risk(ENDLESS), step)


def test_bad_temperatures_and_tolerances():
    with pytest.raises(ValueError, match="beta must be a number > 0 or inf"):
        wf.Langevin(wf.Risk(ENDLESS), STEP, beta=-1.0)
    with pytest.raises(ValueError, match="decay must be a number >= 0"):
        wf.Langevin(wf.Risk(ENDLESS), STEP, beta=1.0, decay=-1.0)
    with pytest.raises(ValueError, match="rtol"):
        wf.GradientFlow(wf.Risk(ENDLESS), rtol=0.0)
    with pytest.raises(ValueError, match="below the rounding of float32"):
        start = start_of(ENDLESS, dtype=jnp.float32)
        wf.evolve(wf.GradientFlow(wf.Risk(ENDLESS), rtol=1e-9), start, [1.0])


def test_many_passes_need_a_sample():
    with pytest.raises(ValueError, match="Many passes need a finite sample"):
        wf.SGD(wf.Risk(ENDLESS, wf.Quadrature(8)), STEP, one_pass=False)
    run = wf.evolve(wf.SGD(wf.Risk(ENDLESS, wf.Sample(32)), STEP, one_pass=False), start_of(ENDLESS), [0.1])
    assert run.status == "ok"


def test_largest_stable_step():
    """On a quadratic risk GD converges just below the largest stable step, and diverges above it."""
    problem = wf.Problem(
        x=wf.Gaussian(3, covariance=[4.0, 1.0, 0.25]),
        target=wf.single_index("identity"),
        neuron=wf.Neuron("identity", output="unit"),
    )
    risk, start = wf.Risk(problem), wf.init(problem).sample(jax.random.key(0), 5)
    stable = wf.largest_stable_step(risk, start)
    assert stable == pytest.approx(2 / 4.0, rel=0.01)  # 2/λ, λ the top eigenvalue of Cov x
    below = wf.evolve(wf.GradientDescent(risk, 0.98 * stable), start, [100.0])
    above = wf.evolve(wf.GradientDescent(risk, 1.05 * stable), start, [100.0])
    assert below["risk"][-1] < 1e-3 * float(risk.value(start))
    assert above["risk"][-1] > float(risk.value(start))
