"""One contract for every way to take an expectation: all of them against the risk written out by hand.

The reference holds an array of rows × neurons, knows nothing of chunks, parts or layouts, and leaves
every derivative to autodiff."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf

WEIGHTS = np.array([0.4, 0.0, 0.1, 0.3, 0.2])  # uneven, and one particle that weighs nothing
HEAVY = WEIGHTS > 0
RNG = np.random.default_rng(7)
PHI = {"erf": jax.lax.erf, "relu": lambda h: jnp.where(h > 0, h, 0.0), "tanh": jnp.tanh}


def hidden(neuron, x, theta):
    """σ*(x_i; θ_j) of every pair, (n, m) or (n, m, outputs), from the columns (a, w, b) of θ."""
    if isinstance(neuron, wf.CustomNeuron):
        return jax.vmap(lambda t: jax.vmap(lambda one: neuron.fn(one, t))(x))(theta)
    heads = 0 if neuron.output == "unit" else neuron.outputs
    w = theta[:, heads : theta.shape[1] - neuron.bias]
    h = jnp.sum(w[:, None, :] * x[None, :, :], axis=-1) + (theta[:, -1:] if neuron.bias else 0.0)
    phi = PHI[neuron.activation.name](h)
    if heads == 0:
        return phi
    return theta[:, :1] * phi if heads == 1 else theta[:, None, :heads] * phi[:, :, None]


def loss_by_hand(loss, f, y):
    """ℓ row by row."""
    if isinstance(loss, wf.losses.Squared):
        return 0.5 * jnp.sum(((y - f) ** 2).reshape(len(y), -1), axis=1)
    if isinstance(loss, wf.losses.Huber):
        e = jnp.abs(y - f)
        return jnp.where(e <= loss.delta, 0.5 * e**2, loss.delta * (e - 0.5 * loss.delta))
    if isinstance(loss, wf.losses.Logistic):
        return jnp.log(1 + jnp.exp(-y * f))
    return -jnp.log(jnp.exp(f[jnp.arange(len(y)), y.astype(int)]) / jnp.sum(jnp.exp(f), axis=1))


def dense_risk(theta, weights, alpha, neuron, loss, nodes):
    f = alpha * jnp.tensordot(weights, hidden(neuron, nodes.x, theta), axes=1)
    return jnp.sum(nodes.weights * loss_by_hand(loss, f, nodes.y))


@eqx.filter_jit
def reference(particles, loss, nodes):
    """R/α² written out, and its gradients in θ and in the weights."""
    p = particles
    energy = lambda theta, weights: dense_risk(theta, weights, p.alpha, p.neuron, loss, nodes) / p.alpha**2
    value, gradients = jax.value_and_grad(energy, (0, 1))(p.theta, p.weights)
    return value, *gradients


@dataclass(frozen=True, eq=False)
class Case:
    """`reference`: nodes to write the risk out on, if the way itself holds none; `value_tol` and
    `velocity_tol`: how exact the reference is."""

    name: str
    problem: wf.Problem
    way: Any
    alpha: float = 1.0
    reference: Any = None
    value_tol: float = 1e-12
    velocity_tol: float = 1e-12

    @cached_property
    def functional(self):
        return wf.Risk(self.problem, self.way)

    @cached_property
    def particles(self):
        theta = 0.5 * np.random.default_rng(3).normal(size=(5, self.problem.D))
        return wf.Particles(theta, WEIGHTS, self.alpha, self.problem.neuron)

    @cached_property
    def nodes(self):
        return self.functional.ways[-1].nodes if self.reference is None else self.reference(self.problem)

    @cached_property
    def floor(self):
        """½ noise² per output, where the labels of the reference carry no noise."""
        by_sample = isinstance(self.way, wf.Sample)
        return 0.0 if by_sample else 0.5 * self.problem.noise**2 * self.problem.neuron.outputs

    @cached_property
    def trained(self):
        """Which columns of θ move."""
        moves = np.ones(self.problem.D, bool)
        if getattr(self.problem.neuron, "output", None) == "frozen":
            moves[: self.problem.neuron.outputs] = False
        return moves

    @cached_property
    def written_out(self):
        return reference(self.particles, self.problem.loss, self.nodes)


def gauss(problem):
    return problem.quadrature(80)


def circle(problem):
    """For x ~ N(0, I_2) and functions of degree one: E q(x)² = E|x|² · mean of q² over directions, so
    equispaced points on the circle of radius √2. Kinks cost an error of order (2π/m)²."""
    angle = 2 * np.pi * (np.arange(20_000) + 0.5) / 20_000
    x = np.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return wf.types.Nodes(x, problem.target(jnp.asarray(x)), np.full(len(x), 1 / len(x)))


def rows(m, d, outputs=None, classes=None, signs=False, dtype=float):
    x = RNG.normal(size=(m, d))
    if classes:
        return x, RNG.integers(0, classes, m)
    if signs:
        return x, RNG.choice([-1, 1], m)
    return x, RNG.normal(size=m if outputs is None else (m, outputs))


FULL = np.array([[1.3, 0.4], [0.4, 0.6]])
TEACHER = wf.teacher([[1.0, 0.5], [-0.3, 0.8]], a=[0.7, -1.1], link="erf")
cube = lambda x, t: jnp.sin(t[0] * x[0]) + t[1] * x[1] ** 2
pair = lambda x, t: jnp.stack([t[0] * jnp.tanh(x @ t[1:]), jnp.cos(x @ t[1:])])

# erf–erf at variances 1 takes 50 nodes a dimension for ten digits; the largest one here is 2.
BY_GAUSS = dict(reference=gauss, value_tol=1e-9, velocity_tol=1e-8)
CASES = [
    Case(
        "closed form, erf, full covariance, teacher",
        wf.Problem(x=wf.Gaussian(2, FULL), target=TEACHER, neuron=wf.Neuron("erf")),
        wf.ClosedForm(),
        **BY_GAUSS,
    ),
    Case(
        "closed form, erf, unit output, noise, alpha 3",
        wf.Problem(
            x=wf.Gaussian(2),
            target=wf.single_index("erf"),
            neuron=wf.Neuron("erf", output="unit"),
            noise=0.3,
        ),
        wf.ClosedForm(),
        alpha=3.0,
        **BY_GAUSS,
    ),
    Case(
        "closed form, two Gaussians, alpha 2",
        wf.Problem(x=wf.two_gaussians(2, 0.2), neuron=wf.Neuron("erf")),
        wf.ClosedForm(),
        alpha=2.0,
        **BY_GAUSS,
    ),
    Case(
        "closed form, relu, frozen output, alpha 1/2",
        wf.Problem(
            x=wf.Gaussian(2),
            target=wf.single_index("relu", [1.0, 2.0]),
            neuron=wf.Neuron("relu", output="frozen"),
        ),
        wf.ClosedForm(),
        alpha=0.5,
        reference=circle,
        # (2π/20000)² = 1e-7 for the kinked risk; 2π/20000 = 3e-4 for the velocity, which jumps
        value_tol=1e-7,
        velocity_tol=3e-4,
    ),
    Case(
        "quadrature, tanh with bias, Huber, alpha 2",
        wf.Problem(
            x=wf.Gaussian(1, [2.0]),
            target=wf.polynomial([0.2, -1.0, 0.5]),
            neuron=wf.Neuron("tanh", bias=True),
            loss=wf.losses.Huber(0.7),
        ),
        wf.Quadrature(40),
        alpha=2.0,
    ),
    Case(
        "quadrature, three outputs, noise",
        wf.Problem(
            x=wf.Gaussian(2),
            target=lambda x: jnp.stack([x[0], x[1] ** 2, x[0] * x[1]]),
            neuron=wf.Neuron("erf", outputs=3, bias=True),
            noise=0.2,
        ),
        wf.Quadrature(9),
        alpha=1.7,
    ),
    Case(
        "quadrature on the sphere, relu with bias",
        wf.Problem(x=wf.Sphere(3), target=wf.hermite(2), neuron=wf.Neuron("relu", bias=True, output="unit")),
        wf.Quadrature(11),
    ),
    Case(
        "sample, relu, noise, alpha sqrt n",
        wf.Problem(x=wf.Gaussian(6), target=wf.single_index("relu"), neuron=wf.Neuron("relu"), noise=0.5),
        wf.Sample(133, seed=3),
        alpha=np.sqrt(5.0),
    ),
    Case(
        "sample of a mixture, logistic, frozen output",
        wf.Problem(
            x=wf.two_gaussians(4, 0.5),
            neuron=wf.Neuron("tanh", bias=True, output="frozen"),
            loss="logistic",
        ),
        wf.Sample(70),
        alpha=4.0,
    ),
    Case(
        "data with weights, cross-entropy, three classes",
        wf.Problem(
            x=wf.Dataset(*rows(41, 3, classes=3), weights=RNG.integers(0, 4, 41)),
            neuron=wf.Neuron("erf", bias=True, outputs=3),
            loss="cross_entropy",
        ),
        wf.Data(),
        alpha=2.0,
    ),
    Case(
        "data, custom neuron, Huber",
        wf.Problem(x=wf.Dataset(*rows(23, 2)), neuron=wf.CustomNeuron(cube, 2), loss="huber"),
        wf.Data(),
    ),
    Case(
        "data with weights, custom neuron, two outputs",
        wf.Problem(
            x=wf.Dataset(*rows(9, 2, outputs=2), weights=np.arange(9)),
            neuron=wf.CustomNeuron(pair, 3, outputs=2),
        ),
        wf.Data(),
        alpha=0.3,
    ),
    Case(
        "data, unit output with bias, logistic",
        wf.Problem(
            x=wf.Dataset(*rows(12, 2, signs=True)),
            neuron=wf.Neuron("tanh", bias=True, output="unit"),
            loss="logistic",
        ),
        wf.Data(),
        alpha=3.0,
    ),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
SQUARED = [c for c in CASES if isinstance(c.problem.loss, wf.losses.Squared)]


def close(given, wanted, tol):
    given, wanted = np.asarray(given), np.asarray(wanted)
    assert given.shape == wanted.shape
    assert np.max(np.abs(given - wanted)) <= tol * (1 + np.max(np.abs(wanted)))


@every_case
def test_value_and_velocity(case):
    """R as written out, and v_j = −∇_θj (R/α²)/weights_j; a frozen column has velocity 0."""
    energy, gradient, _ = case.written_out
    close(case.functional.value(case.particles), energy * case.alpha**2 + case.floor, case.value_tol)
    close(case.functional.energy(case.particles), energy + case.floor / case.alpha**2, case.value_tol)
    velocity = np.asarray(case.functional.velocity(case.particles))
    expected = -np.asarray(gradient)[HEAVY] / WEIGHTS[HEAVY, None] * case.trained
    close(velocity[HEAVY], expected, case.velocity_tol)
    assert np.all(velocity[:, ~case.trained] == 0)
    close(case.functional.gradient(case.particles), -WEIGHTS[:, None] * velocity, 1e-15)
    dissipation = np.sum(WEIGHTS[:, None] * velocity**2)
    assert float(case.functional.dissipation(case.particles)) == pytest.approx(dissipation, rel=1e-13)


@every_case
def test_potential(case):
    """The first variation of the energy, d(R/α²)/d(weights_j), at every particle; its gradient is minus
    the velocity, for the particle of weight 0 too."""
    p, functional = case.particles, case.functional
    potential = functional.potential(p.theta, p)
    close(potential, case.written_out[2], case.value_tol)
    close(functional.psi(p.theta, p), case.alpha * potential, 1e-14)
    slope = jax.jit(jax.grad(lambda theta: jnp.sum(functional.potential(theta, p))))(p.theta)
    close(functional.velocity(p), -slope * case.trained, 1e-12)  # the same way twice: rounding
    assert np.max(np.abs(functional.velocity(p)[1])) > 1e-3


@pytest.mark.parametrize("case", CASES[1::3], ids=lambda c: c.name)
def test_a_batch_is_a_small_data_set(case):
    rng = np.random.default_rng(5)
    y = np.asarray(case.nodes.y)[rng.integers(0, len(case.nodes.y), 3)]
    batch = wf.types.Nodes(rng.normal(size=(3, case.problem.d)), y, [0.5, 0.2, 0.3])
    energy, gradient, _ = reference(case.particles, case.problem.loss, batch)
    risk = case.functional.on(batch)
    close(risk.energy(case.particles), energy, 1e-12)  # rounding
    expected = -np.asarray(gradient)[HEAVY] / WEIGHTS[HEAVY, None]
    close(risk.velocity(case.particles)[HEAVY], expected * case.trained, 1e-12)


@pytest.mark.parametrize("case", SQUARED, ids=lambda c: c.name)
def test_split_into_v_and_u(case):
    """R = ½E[y²] + α∫V dρ + ½α²∬U dρdρ, and U is a Gram matrix."""
    p, functional = case.particles, case.functional
    v, u = np.asarray(functional.V(p.theta)), np.asarray(functional.U(p.theta, p.theta))
    y = np.asarray(case.nodes.y).reshape(case.nodes.m, -1)
    square = np.sum(np.asarray(case.nodes.weights)[:, None] * y**2)
    risk = 0.5 * square + case.floor + case.alpha * WEIGHTS @ v + 0.5 * case.alpha**2 * WEIGHTS @ u @ WEIGHTS
    close(functional.value(p), risk, case.value_tol)
    close(functional.psi(p.theta, p), v + case.alpha * u @ WEIGHTS, 1e-12)
    assert np.allclose(u, u.T, rtol=0, atol=1e-14 * np.max(u))
    assert np.linalg.eigvalsh(u).min() >= -1e-13 * np.max(u)  # rounding of a p.s.d. matrix
    close(functional.U(p.theta[:2], p.theta[2:]), u[:2, 2:], 1e-14)


@pytest.mark.parametrize("name", ["Huber", "logistic", "cross-entropy"])
def test_no_split_for_other_losses(name):
    case = next(c for c in CASES if name in c.name)
    with pytest.raises(ValueError, match="squared loss alone"):
        case.functional.V(case.particles.theta)


@pytest.mark.parametrize("case", [CASES[2], CASES[5], CASES[9]], ids=lambda c: c.name)
def test_replicas_by_vmap(case):
    """A batch of measures from a batch of keys; every number is that of the single measure."""
    law, keys = wf.init(case.problem), jax.random.split(jax.random.key(0), 3)
    batch = jax.vmap(lambda k: law.sample(k, 4, alpha=case.alpha))(keys)
    assert batch.theta.shape == (3, 4, case.problem.D) and batch.alpha.shape == (3,)
    functional = case.functional  # made here: its nodes are computed by NumPy, outside of all tracing
    values, drifts = jax.jit(jax.vmap(lambda p: (functional.value(p), functional.drift(p))))(batch)
    predictions = jax.vmap(lambda p: p(jnp.ones((2, case.problem.d))))(batch)
    for i, key in enumerate(keys):
        one = law.sample(key, 4, alpha=case.alpha)
        assert np.array_equal(batch.theta[i], one.theta)
        # rounding: batched matrix products may add up in another order
        close(values[i], case.functional.value(one), 1e-13)
        close(case.problem.neuron.pack(drifts)[i], case.functional.velocity(one), 1e-13)
        close(predictions[i], one(jnp.ones((2, case.problem.d))), 1e-13)


def test_replicas_given_as_arrays():
    case = CASES[1]
    theta = np.random.default_rng(0).normal(size=(3, 4, 2))
    batch = wf.Particles(theta, alpha=[1.0, 2.0, 3.0], neuron=case.problem.neuron)
    values = jax.vmap(case.functional.value)(batch)
    for i in range(3):
        one = wf.Particles(theta[i], alpha=1.0 + i, neuron=case.problem.neuron)
        close(values[i], case.functional.value(one), 1e-13)  # rounding
        close(batch(np.ones((2, 2)))[i], one(np.ones((2, 2))), 1e-13)


@pytest.mark.parametrize("case", [CASES[0], CASES[7]], ids=lambda c: c.name)
def test_sums_and_multiples(case):
    """F = 2R + 0.3·½∫|θ|² + ∫q: value, energy, potential and velocity are those of the sum."""
    p, q = case.particles, lambda theta: jnp.cos(theta[0]) * theta[-1]
    functional = 2 * case.functional + wf.SecondMoment() * 0.3 + wf.Moment(q)
    penalty = lambda theta: p.weights @ (0.15 * jnp.sum(theta**2, axis=1) + jax.vmap(q)(theta))
    energy, slope, _ = case.written_out
    value, gradient = jax.value_and_grad(penalty)(p.theta)
    close(functional.value(p), 2 * energy * case.alpha**2 + value, case.value_tol)
    close(functional.energy(p), 2 * energy + value, case.value_tol)
    close(functional.gradient(p), 2 * slope + gradient, case.velocity_tol)
    alone = jax.grad(lambda theta: jnp.sum(functional.potential(theta, p)))(p.theta)
    close(functional.velocity(p), -alone, 1e-12)
    # what a run records is the risk itself, not the multiple of it that is descended
    assert float(functional.observed(p)["risk"]) == float(case.functional.value(p))
    assert float(functional.observed(p)["energy"]) == float(functional.energy(p))


def test_penalties_leave_frozen_parts_alone():
    neuron = wf.Neuron("relu", output="frozen", bias=True)
    theta = np.random.default_rng(1).normal(size=(4, 5))
    p = wf.Particles(theta, WEIGHTS[[0, 1, 3, 4]] / 0.9, neuron=neuron)
    assert np.allclose(wf.SecondMoment().velocity(p), -theta * [0, 1, 1, 1, 1], rtol=1e-15)
    assert float(wf.SecondMoment().value(p)) == pytest.approx(0.5 * p.weights @ (theta[:, 1:] ** 2).sum(1))
    inner = np.linalg.norm(theta[:, 1:], axis=1)
    assert float(wf.PathNorm().value(p)) == pytest.approx(p.weights @ (np.abs(theta[:, 0]) * inner))
    expected = -np.abs(theta[:, :1]) * theta / inner[:, None] * [0, 1, 1, 1, 1]
    assert np.allclose(wf.PathNorm().velocity(p), expected, rtol=1e-14)


def test_path_norm_at_zero_has_no_nan():
    p = wf.Particles(np.zeros((2, 3)), neuron=wf.Neuron("relu"))
    assert np.all(wf.PathNorm().velocity(p) == 0)


def test_a_state_need_not_be_particles():
    """Anything that predicts has a risk: here f(x) = x₁/2 against y = x₁, R = ½E(x₁/2)² = ⅛."""
    problem = wf.Problem(x=wf.Gaussian(2), target=wf.single_index("identity"), neuron=wf.Neuron("identity"))
    risk = wf.Risk(problem)
    assert float(risk.value(lambda x: x[:, 0] / 2)) == pytest.approx(0.125, rel=1e-12)
    assert "quadrature" in risk.way(lambda x: x[:, 0])
