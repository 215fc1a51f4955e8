"""A run that is not finite is told by its cause: data, activation, loss, gradient, optimiser, penalty,
observer, start; and by the step only where that is the cause."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wideflow as wf
from wideflow.problems.losses import AbstractLoss

X = np.random.default_rng(0).normal(size=(6, 2))
Y = np.sin(X[:, 0])
KEY = jax.random.key(0)
TS = (0.0, 0.1, 0.2)


def relu_like(value, where, slope=None):
    """relu, but `value` on h < where; or, with a slope, the right values with that derivative there."""

    @jax.custom_jvp
    def phi(h):
        return jnp.where(h < where, value, jnp.maximum(h, 0.0)) if slope is None else jnp.maximum(h, 0.0)

    @phi.defjvp
    def _(primals, tangents):
        (h,), (v,) = primals, tangents
        below = jnp.where(h < where, jnp.nan if slope is None else slope, 1.0)
        return phi(h), below * v

    return phi


def on_data(neuron="tanh", y=Y, **more):
    neuron = neuron if isinstance(neuron, wf.CustomNeuron) else wf.Neuron(neuron)
    return wf.Risk(wf.Problem(x=wf.Dataset(X, y), neuron=neuron, **more))


def particles(risk, n=4, **more):
    return wf.init(risk.problem).sample(KEY, n, **more)


def message_of(dynamics, start, status="diverged", ts=TS, **more):
    with pytest.warns(UserWarning, match=f"The run {status}"):
        run = wf.evolve(dynamics, start, ts, key=KEY, **more)
    assert run.status == status
    assert "nan." not in run.message.split("Try step = ")[-1]
    return run.message


def descent(risk):
    return wf.GradientDescent(risk, step=0.01)


# --- causes --------------------------------------------------------------------------------------


def test_a_target_that_is_not_finite():
    problem = wf.Problem(x=wf.Gaussian(2), target=lambda x: jnp.log(x[0]), neuron=wf.Neuron("tanh"))
    risk = wf.Risk(problem, wf.Sample(6))
    message = message_of(descent(risk), particles(risk))
    nodes = risk.sample
    i = int(np.argmax(np.isnan(nodes.y)))
    assert f"in row {i} the target gives nan at x = [{nodes.x[i, 0]:.4g}" in message
    assert "at the start" in message and "step" not in message


def test_a_target_that_is_not_finite_in_one_batch():
    """Fresh batches: most are finite, and the message is about the one that is not."""
    target = lambda x: jnp.where(x[0] > 2.0, jnp.nan, x[0])
    problem = wf.Problem(x=wf.Gaussian(2), target=target, neuron=wf.Neuron("tanh"))
    risk = wf.Risk(problem, wf.Sample(6))
    start = particles(risk)
    message = message_of(wf.SGD(risk, step=0.001, batch=2), start, ts=(0.5, 1.0))
    x = float(re.search(r"the target gives nan at x = \[(\S+),", message)[1])
    assert x > 2.0 and "too large" not in message


STARTS = {
    "particles": lambda phi: (on_data(phi), None),
    "deep": lambda phi: (
        wf.Risk(wf.Problem(x=wf.Dataset(X, Y))),
        wf.MLP(2, depth=2, activation=phi).sample(KEY, 4, "ntk"),
    ),
}


@pytest.mark.parametrize("kind", STARTS)
def test_an_activation_that_is_not_finite(kind):
    risk, start = STARTS[kind](relu_like(jnp.nan, -0.3))
    message = message_of(descent(risk), particles(risk) if start is None else start)
    h = float(re.search(r"The activation 'phi' gives nan at the input (\S+)\. ", message)[1])
    assert h < -0.3
    assert "Take one that is finite everywhere" in message and "step" not in message


def test_an_activation_that_is_met_on_the_way():
    """Finite at the start; the weights grow past the point in later steps, and a flow stands before it."""
    phi = relu_like(jnp.nan, -4.0)  # no input of the start is below, see the assertion
    risk = on_data(lambda h: phi(h), y=30.0 * Y)
    start = particles(risk)
    assert np.isfinite(risk.value(start))
    for dynamics, status in (
        (wf.GradientDescent(risk, 0.02), "diverged"),
        (wf.GradientFlow(risk), "stalled"),
    ):
        message = message_of(dynamics, start, status, ts=(0.0, 1.0, 8.0))
        assert "gives nan at the input -4." in message


def test_a_neuron_that_is_not_finite():
    wave = wf.CustomNeuron(lambda x, theta: theta[0] * jnp.sqrt(theta[1:] @ x), dim=3)
    risk = on_data(wave)
    message = message_of(descent(risk), particles(risk))
    assert "The neuron gives nan at x = [" in message and "theta = [" in message


def test_a_network_that_overflows():
    risk = wf.Risk(
        wf.Problem(x=wf.Dataset(X.astype(np.float32), Y.astype(np.float32)), neuron=wf.Neuron("square"))
    )
    start = wf.Particles(np.full((4, 3), 1e15, np.float32), neuron=risk.problem.neuron)
    assert "The network gives inf in row 0" in message_of(descent(risk), start)


def test_a_loss_that_overflows():
    y = np.asarray(np.where(np.arange(6) == 3, 1e30, Y), np.float32)
    risk = wf.Risk(wf.Problem(x=wf.Dataset(X.astype(np.float32), y), neuron=wf.Neuron("tanh")))
    message = message_of(descent(risk), wf.init(risk.problem).sample(KEY, 4, dtype=jnp.float32))
    assert "The Squared loss is inf in row 3" in message and "y = 1e+30" in message


def test_a_derivative_that_is_not_finite():
    message = message_of(descent(risk := on_data(relu_like(0.0, -0.3, slope=jnp.nan))), particles(risk))
    h = float(re.search(r"derivative of the activation 'phi' is nan at the input (\S+),", message)[1])
    assert h < -0.3 and "although its value is finite" in message


def test_a_derivative_of_the_loss_that_is_not_finite():
    class Distance(AbstractLoss):
        def __call__(self, f, y):
            return jnp.sqrt((f - y) ** 2)

    risk = on_data(y=np.zeros(6), loss=Distance())
    theta = np.asarray(particles(risk).theta) * ([0.0] + [1.0] * (risk.problem.D - 1))
    start = wf.Particles(theta, neuron=risk.problem.neuron)  # a = 0, so that f = 0 = y: a root at 0
    message = message_of(descent(risk), start)
    assert "The derivative of the Distance loss is nan in row 0, where f = 0 and y = 0" in message


def test_an_optimiser_whose_update_is_not_finite():
    """A division by the gradient's own size, without an eps: 0/0 where a neuron has no gradient."""
    scale = optax.stateless(lambda updates, _: jax.tree.map(lambda g: g / jnp.abs(g), updates))
    theta = np.zeros((4, 3))  # a = w = 0: no gradient at all
    risk = on_data()
    start = wf.Particles(theta, neuron=risk.problem.neuron)
    message = message_of(wf.Optax(risk, optax.chain(scale, optax.scale(-0.01)), step=0.01), start)
    assert "The optimiser's update is not finite although the gradient is" in message


@pytest.mark.parametrize(
    "at, what", [(-1.0, "The penalty Moment is nan"), (0.0, "gradient of the penalty Moment")]
)
def test_a_penalty_that_is_not_finite(at, what):
    """A root below 0, and at 0."""
    risk = on_data()
    start = wf.Particles(np.full((4, 3), at), neuron=risk.problem.neuron)
    dynamics = descent(risk + 0.1 * wf.Moment(lambda theta: jnp.sqrt(theta[0])))
    assert what in message_of(dynamics, start, ts=(0.1, 0.2))


def test_a_density_on_a_grid():
    neuron = wf.CustomNeuron(lambda x, theta: jnp.log(theta[0]) * x[0], dim=1)
    problem = wf.Problem(x=wf.Dataset(X, Y), neuron=neuron)
    rho = wf.GridDensity(np.full(8, 0.125), -1.0, 1.0, neuron=neuron)
    message = message_of(wf.GridFlow(wf.Risk(problem), beta=10.0), rho, "diverged", ts=(0.1, 0.2))
    assert "The neuron gives nan at x = [" in message and "theta = -0.875" in message


def test_a_linearised_network():
    risk = on_data(relu_like(0.0, -0.3, slope=jnp.nan))
    message = message_of(wf.Linearised(descent(risk)), particles(risk))
    assert "activation 'phi'" in message


def test_the_first_replica_that_is_lost():
    """One of three has a neuron where φ is not finite; the others go on."""
    risk = on_data(relu_like(jnp.nan, -4.0))
    theta = np.full((3, 4, 3), 0.1)
    theta[1, :, 1:] = 5.0
    with pytest.warns(UserWarning, match="The run diverged"):
        run = wf.evolve(descent(risk), wf.Particles(theta, neuron=risk.problem.neuron), TS, key=KEY)
    assert "1 of 3 replicas diverged (1)" in run.message
    assert "The activation 'phi' gives nan at the input -" in run.message
    assert run.replica(0).status == run.replica(2).status == "ok"


# --- what is told otherwise ----------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [None, 2])
def test_an_observer_that_returns_nan_is_told_once(replicas, tmp_path):
    risk = on_data()
    start = particles(risk, replicas=replicas)
    observe = {"root": lambda t, state: jnp.sqrt(0.05 - t), "inf": lambda t, state: jnp.inf}
    with pytest.warns(UserWarning, match="observer 'root' gave NaN at t = 0.1") as warned:
        run = wf.evolve(descent(risk), start, TS, key=KEY, observe=observe)
    assert len(warned) == 1
    assert run.status == "ok" and len(run.rows) == 3
    assert run.info["observers_not_finite"] == {"root": pytest.approx(0.1)}
    assert "The observer 'root' gave NaN at t = 0.1" in run.message
    assert wf.load(run.save(tmp_path)).info["observers_not_finite"] == run.info["observers_not_finite"]


def test_a_penalty_that_is_nan_with_a_finite_gradient_is_told():
    """log θ below 0 is NaN, its derivative 1/θ is not: the run goes on, and no observer is blamed."""
    risk = on_data()
    dynamics = descent(risk + 0.01 * wf.Moment(lambda theta: jnp.log(theta[0] - 9.0)))
    with pytest.warns(UserWarning, match="energy is NaN at t = 0.* what is added to the risk gives NaN"):
        run = wf.evolve(dynamics, particles(risk), TS, key=KEY)
    assert run.status == "ok" and "energy is NaN" in run.message and "observer" not in run.message


@pytest.mark.parametrize("kind", ["particles", "network", "grid"])
def test_a_start_that_is_not_finite_is_refused(kind):
    risk = on_data()
    broken = lambda state, leaf: jax.tree.map(
        lambda v: v.at[(0,) * v.ndim].set(jnp.nan) if v is leaf else v, state
    )
    if kind == "particles":
        start = particles(risk)
        start, dynamics, name = broken(start, start.parts.w), descent(risk), ".parts.w"
    elif kind == "network":
        start = wf.MLP(2, depth=2).sample(KEY, 4, "ntk")
        start, dynamics, name = broken(start, start.parts[1].w), descent(risk), ".parts[1].w"
    else:
        neuron = wf.Neuron("tanh", output="unit")
        start = wf.GridDensity(np.full((4, 4), 1 / 16), -1.0, 1.0, neuron=neuron)
        start, dynamics, name = broken(start, start.mass), wf.GridFlow(risk, beta=10.0), ".mass"
    with pytest.raises(ValueError, match=f"The start must be finite.*state{re.escape(name)}.*nan at index"):
        wf.evolve(dynamics, start, TS)


@pytest.mark.parametrize("make", [wf.GradientDescent, lambda risk, step: wf.Optax(risk, optax.sgd, step)])
def test_a_step_that_is_too_large_is_told_with_one_that_works(make):
    risk = on_data("relu")
    start = particles(risk)
    message = message_of(make(risk, 1e3), start, ts=(0.0, 1e5))
    assert "step = 1000 is too large" in message
    step = float(re.search(r"Try step = (\S+)\.$", message)[1])
    run = wf.evolve(make(risk, step), start, (0.0, 100 * step))
    assert run.status == "ok" and run["risk"][-1] < 1.2 * run["risk"][0]


def test_no_step_is_advised_that_was_not_seen_to_work():
    """The step of a ready optimiser is its own; and a functional without a lower bound has no stable step."""
    risk = on_data("relu")
    start = particles(risk)
    message = message_of(wf.Optax(risk, optax.sgd(1e3), step=1e3), start, ts=(0.0, 1e5))
    assert "Try step" not in message and "learning rate of the optimiser" in message
    growing = message_of(wf.GradientDescent(risk + (-2.0) * wf.SecondMoment(), 1.0), start, ts=(0.0, 1e4))
    assert "Try step" not in growing and "No smaller step is advised" in growing
