"""Ways to take E over (x, y): closed form, Gauss quadrature, fixed sample, data set.

Each way answers the same questions (risk, Ψ, velocity, V and U, how wrong it may be), so a functional
need not know which one it has."""

import abc
import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._checks import count
from .._tracing import jit_once
from .._typing import Abstract, Scalar
from ..problems.laws import is_dataset
from ..problems.losses import AbstractLoss
from ..problems.neurons import AbstractNeuron, is_ridge
from ..problems.nodes import Nodes
from ..problems.problem import Problem
from ..states.chunks import chunk_rows, chunked, in_chunks
from ..states.measure import AbstractMeasure
from ..states.particles import Particles, is_cloud
from ..states.state import AbstractState
from ..states.trainable import is_trainable
from .base import traced
from .engine import risk_of, sweep
from .linear_pairs import LinearPairs
from .pairs import ORDER, Pairs, why_not

# Closed forms cost n²: up to this width one evaluation takes about a second on two cores.
MOST_PAIRED = 8192
MOST_LINEAR = 4096  # of a linearised network, whose pairs have derivatives too
DEFAULT_SAMPLE = 2**14
# The streams of a fixed sample and of the fresh data beside it: none that `problem.sample(key(seed), m)`, a
# start or a run draws from, so that a test set of the same seed is not the training set.
_FIXED, _FRESH = 2**32 - 6, 2**32 - 2
_LEAST_FRESH = 1024  # losses are skewed: of a few dozen, mean and standard error are too small together
_ROUNDINGS = 4  # of a number, on its way through a sum
_MOST_TERMS = 1024  # of a dual's series, whose rule has twice as many points


class AbstractExpectation(eqx.Module):
    """E over (x, y), bound to a problem."""

    sample: Abstract[Nodes | None]  # the finite data behind it, to be drawn from; else None

    @abc.abstractmethod
    def risk(self, state: AbstractState) -> Float[Array, ""]:
        """R = E ℓ(f(x), y)."""

    @abc.abstractmethod
    def potential(self, parts: PyTree, particles: AbstractMeasure) -> Float[Array, " k"]:
        """Ψ(θ; ρ) = −E[u(x) σ*(x; θ)]."""

    @abc.abstractmethod
    def drift(self, particles: Particles, scale: Scalar = 1.0) -> PyTree:
        """−(scale/α)∇Ψ at every particle, in the neuron's parts."""

    @abc.abstractmethod
    def v(self, parts: PyTree) -> Float[Array, " k"]:
        """V(θ) = −E[y σ*(x; θ)] (squared loss)."""

    @abc.abstractmethod
    def u(self, parts: PyTree, others: PyTree) -> Float[Array, "k l"]:
        """U(θ, θ') = E[σ*(x; θ)σ*(x; θ')] (squared loss)."""

    @abc.abstractmethod
    def handles(self, state: AbstractState) -> bool:
        """Whether this way can be afforded for this state."""

    @abc.abstractmethod
    def error(self, state: AbstractState) -> float:
        """Estimated absolute error of `risk`, rounding included."""

    def observed(self, state: AbstractState) -> dict[str, Array]:
        """What a run records beside the risk; pure, so that it can be compiled and vmapped over states."""
        return {}

    def points(self) -> Nodes | None:
        """The weighted data that E is a sum over; None in closed form."""
        return None

    @property
    @abc.abstractmethod
    def way(self) -> str:
        """What this way is, in words."""


def coarser(order: int) -> tuple[int, int]:
    """Two orders to compare a Gauss rule with: half, and an odd one near two thirds. Even rules have
    no node at 0 and so can agree on a steep function that neither of them sees; an odd one does."""
    return (max(1, order // 2), 2 * (order // 3) + 1) if order > 1 else (2, 3)


class AbstractByNodes(AbstractExpectation):
    """E as a sum over weighted data."""

    problem: Abstract[Problem]
    nodes: Abstract[Nodes]

    def rows(self, state: AbstractState) -> Array:
        """ℓ of every row."""
        return self.problem.loss(state(self.nodes.x), self.nodes.y)

    @property
    def least(self) -> Scalar:
        """A part of the risk that does not depend on the state."""
        return 0.0

    def risk(self, state):
        if is_trainable(state):
            return risk_of(state, self.nodes, self.problem.loss) + self.least
        return jnp.sum(self.nodes.weights * self.rows(state)) + self.least

    def drift(self, particles, scale=1.0):
        return sweep(particles, self.nodes, self.problem.loss, scale)[1]

    @eqx.filter_jit
    def potential(self, parts, particles):
        u = self.problem.loss.signal(particles(self.nodes.x), self.nodes.y)
        return -_overlap(particles.neuron, parts, self.nodes, u)

    def v(self, parts):
        return -_overlap(self.problem.neuron, parts, self.nodes, self.nodes.y)

    def u(self, parts, others):
        return _gram(self.problem.neuron, parts, others, self.nodes)

    def handles(self, state):
        return True

    def points(self):
        return self.nodes

    def rounding(self, state: AbstractState) -> float:
        """Error of the risk by rounding: f and y each have a relative error eps, which ℓ passes on by its
        slope u = −∂ℓ/∂f, and so has the sum over rows: E[ℓ + |u|(|f| + |y|)], times a few roundings. It
        covers labels that had been rounded to this precision before."""
        return float(_rounding_of_rows(self.problem.loss, self.nodes, state(self.nodes.x)))


@jit_once
def _rounding_of_rows(loss: AbstractLoss, nodes: Nodes, f: Array) -> Float[Array, ""]:
    y = nodes.y
    u = jnp.abs(loss.signal(f, y))
    size = jnp.abs(f) + (jnp.abs(y) if y.shape == f.shape else 0)
    slack = loss(f, y) + jnp.sum((u * size).reshape(len(f), -1), axis=1)
    return _ROUNDINGS * jnp.finfo(f.dtype).eps * jnp.sum(nodes.weights * slack)


class OnData(AbstractByNodes):
    """E over a data set or a batch: exact up to rounding, as that is what is asked for."""

    problem: Problem
    nodes: Nodes

    @property
    def sample(self):  # type: ignore[override]
        return self.nodes

    def error(self, state):
        return self.rounding(state)

    @property
    def way(self):
        return f"data set ({self.nodes.m} points)"


class OnSample(AbstractByNodes):
    """E over a fixed sample of the law of (x, y): the empirical risk, which is what is descended. A state
    that was trained on it has fitted the chance fluctuations of the sample too, so that the risk of the law
    itself (the population risk) is estimated on `fresh` data, on which no state is trained."""

    problem: Problem
    nodes: Nodes
    fresh: Nodes

    @property
    def sample(self):  # type: ignore[override]
        return self.nodes

    def observed(self, state):
        """`fresh_risk`, an unbiased estimate of the population risk, and `fresh_risk_error`, one standard
        error of it."""
        rows = self.problem.loss(state(self.fresh.x), self.fresh.y)
        error = jnp.std(rows, ddof=1) / self.fresh.m**0.5
        return {"fresh_risk": jnp.mean(rows), "fresh_risk_error": error}

    def error(self, state):
        """How far `risk` may be from the population risk: the gap to that of fresh data, and one standard
        error of the latter."""
        observed = _observed(self, state)
        gap = float(self.risk(state) - observed["fresh_risk"])
        return math.hypot(gap, float(observed["fresh_risk_error"])) + self.rounding(state)

    @property
    def way(self):
        m, fresh = self.nodes.m, self.fresh.m
        return f"fixed sample ({m} points: the risk is that of these, its error against {fresh} fresh ones)"


_observed = eqx.filter_jit(lambda way, state: way.observed(state))


class ByQuadrature(AbstractByNodes):
    """E over Gauss nodes of x. Label noise moves no particle under the squared loss, and adds ½ noise²
    per output to the risk."""

    problem: Problem
    nodes: Nodes
    order: int = eqx.field(static=True)

    @property
    def sample(self):  # type: ignore[override]
        return None

    @property
    def least(self):
        return 0.5 * self.problem.noise**2 * self.problem.neuron.outputs

    def error(self, state):
        """The larger difference from two coarser rules (of a neuron's own means too), and rounding."""
        here = self.risk(state)
        rules = {n: self.problem.quadrature(n) for n in coarser(self.order)}
        coarse = [
            ByQuadrature(self.problem, nodes, n).risk(_coarser_neuron(state, n))
            for n, nodes in rules.items()
            if nodes is not None
        ]
        return float(max(abs(here - other) for other in coarse)) + self.rounding(state)

    @property
    def way(self):
        return f"Gauss quadrature of order {self.order} ({self.nodes.m} points)"


def _coarser_neuron(state: AbstractState, order: int) -> AbstractState:
    if not is_cloud(state):
        return state
    return eqx.tree_at(lambda p: p.neuron, state, state.neuron.with_order(order))


class ByPairs(AbstractExpectation):
    """E in closed form, as a sum over pairs of neurons."""

    pairs: Pairs

    @property
    def sample(self):  # type: ignore[override]
        return None

    def _of(self, state: AbstractState, order: int | None = None) -> Pairs | LinearPairs:
        """The pairs of a state, or those of the state that it is linearised at."""
        pairs = self.pairs if order is None else Pairs(self.pairs.problem, order)
        return pairs if is_cloud(state) else LinearPairs(pairs)

    def risk(self, state):
        return self._of(state).value(state)

    def potential(self, parts, particles):
        return self.pairs.potential(parts, particles)

    def v(self, parts):
        return self.pairs.v(parts)

    def u(self, parts, others):
        return self.pairs.u(parts, others)

    def drift(self, particles, scale=1.0):
        return self._of(particles).drift(particles, scale)

    def handles(self, state):
        cloud = state.base if is_trainable(state) else state
        if not (is_cloud(cloud) and cloud.n <= (MOST_PAIRED if cloud is state else MOST_LINEAR)):
            return False
        phi, neuron = self.pairs._phi, cloud.neuron
        if cloud is not state and phi.kinks:  # derivatives of its dual jump where two neurons are the same
            return False
        return is_ridge(neuron) and not neuron.bias and neuron.outputs == 1 and neuron.activation == phi

    def error(self, state):
        """Rounding of the three terms whose sum the risk is, which grows with |w| (variances and
        covariances of long weights cancel), and the difference from two lower orders where a dual is
        not in closed form."""
        rounding = float(_rounding_of_pairs(self._of(state), state))
        if not self.pairs.without_dual():
            return rounding
        here = self.risk(state)
        coarse = [self._of(state, n).value(state) for n in coarser(self.pairs.order)]
        return rounding + max(abs(float(here - other)) for other in coarse)

    @property
    def way(self):
        numeric = self.pairs.without_dual()
        by = f"; {', '.join(numeric)} to order {self.pairs.order}" if numeric else ""
        return f"closed form (dual activations{by})"


@jit_once
def _rounding_of_pairs(pairs: Pairs | LinearPairs, state: PyTree) -> Float[Array, ""]:
    """Of the sum over pairs; covariances of long weights cancel, so that it grows with |w|."""
    longest = jnp.sqrt(jnp.max(jnp.sum(state.base.parts.w**2, axis=0)))
    return jnp.finfo(state.dtype).eps * 8 * (1 + longest / 64) * pairs.magnitude(state)


@eqx.filter_jit
def _overlap(neuron: AbstractNeuron, parts: PyTree, nodes: Nodes, signal: Array) -> Float[Array, " k"]:
    """E[signal(x) · σ*(x; θ_i)], a chunk of rows at a time."""
    one = jax.tree.leaves(parts)[0]
    k, dtype = one.shape[-1], one.dtype
    weighted = (signal.T * nodes.weights).T.astype(dtype)
    rows = chunk_rows(nodes.m, k * neuron.outputs * neuron.fan, nodes.x.shape[1], dtype)

    def add(total, data):
        x, signal = data
        return total + jnp.einsum("km...,m...->k", neuron.features(parts, x), signal), None

    data = chunked(nodes.x.astype(dtype), rows), chunked(weighted, rows, pad="constant")
    return jax.lax.scan(add, jnp.zeros(k, dtype), data)[0]


@eqx.filter_jit
def _gram(neuron: AbstractNeuron, parts: PyTree, others: PyTree, nodes: Nodes) -> Float[Array, "k l"]:
    """E[σ*(x; θ_i)·σ*(x; θ'_j)], a chunk of rows at a time."""
    ones = [jax.tree.leaves(p)[0] for p in (parts, others)]
    shape, dtype = tuple(v.shape[-1] for v in ones), jnp.result_type(*ones)
    rows = chunk_rows(nodes.m, max(shape) * neuron.outputs * neuron.fan, nodes.x.shape[1], dtype)

    def add(total, data):
        left, right = neuron.features(parts, data.x), neuron.features(others, data.x)
        return total + jnp.einsum("km...,m,lm...->kl", left, data.weights, right), None

    return jax.lax.scan(add, jnp.zeros(shape, dtype), in_chunks(nodes.astype(dtype), rows))[0]


@dataclass(frozen=True)
class ClosedForm:
    """Ask for the closed form: Gaussian x, squared loss, an activation with a dual. With an `order`, an
    activation that has none is accepted too, its dual from that many terms of its Hermite series (nodes
    between two kinks, if it has any): 64 give eight digits for tanh and weights of length 1.

    >>> wf.Risk(problem, wf.ClosedForm()).way(net)
    'closed form (dual activations)'"""

    order: int | None = None

    def __post_init__(self):
        if self.order is not None and count("ClosedForm(order)", self.order) > _MOST_TERMS:
            raise ValueError(
                f"ClosedForm(order) must be a whole number from 1 to {_MOST_TERMS}, got {self.order}."
            )

    def bind(self, problem: Problem) -> tuple[AbstractExpectation, ...]:
        reason = why_not(problem, numeric=self.order is not None)
        if reason is not None:
            raise ValueError(
                f"There is no closed form here: {reason}. Try expectation=wf.Quadrature(order) for "
                "d <= 3 or wf.Sample(m)."
            )
        return (ByPairs(Pairs(traced(problem), self.order or ORDER)),)


@dataclass(frozen=True)
class Quadrature:
    """Ask for a product Gauss rule of the given order (d ≤ 3).

    >>> Q = wf.Risk(line, wf.Quadrature(8))
    >>> Q.way(density)
    'Gauss quadrature of order 8 (8 points)'"""

    order: int | None = None

    def __post_init__(self):
        if self.order is not None:
            count("Quadrature(order)", self.order)

    def bind(self, problem):
        noisy = float(problem.noise) > 0
        if noisy and not problem.loss.is_squared:
            raise ValueError("Quadrature with label noise needs the squared loss; try wf.Sample(m).")
        nodes = problem.quadrature(self.order)
        if nodes is None:
            name = type(problem.x).__name__
            raise ValueError(
                f"There is no affordable Gauss rule for {name} in d = {problem.d}; try wf.Sample(m)."
            )
        order = self.order or problem.x.default_order()
        return (ByQuadrature(traced(problem), nodes, order),)


@dataclass(frozen=True)
class Sample:
    """Ask for a fixed sample of m points, drawn from a stream of `seed` of its own: `problem.sample(key, m)`
    gives other points, and so a test set. The risk is that of the sample; runs also record
    `fresh_risk` and `fresh_risk_error`, the population risk as estimated on other points (m, but no fewer
    than 1024), and `Risk.error` counts the gap between the two.

    >>> wf.Risk(problem, wf.Sample(8)).way(net)
    'fixed sample (8 points: the risk is that of these, its error against 1024 fresh ones)'"""

    m: int = DEFAULT_SAMPLE
    seed: int = 0

    def __post_init__(self):
        count("Sample(m)", self.m)
        count("Sample(seed)", self.seed, least=0)

    def bind(self, problem):
        key = jax.random.key(self.seed)
        nodes = problem.fixed_sample(self.m, jax.random.fold_in(key, _FIXED))
        fresh = problem.fixed_sample(max(self.m, _LEAST_FRESH), jax.random.fold_in(key, _FRESH))
        return (OnSample(traced(problem), nodes, fresh),)


@dataclass(frozen=True)
class Data:
    """Ask for the sum over a data set.

    >>> data = wf.Problem(x=wf.Dataset(jnp.eye(3), jnp.ones(3)), neuron=wf.Neuron("erf"))
    >>> wf.Risk(data, wf.Data()).way(net)
    'data set (3 points)'"""

    def bind(self, problem):
        data = problem.x
        if not is_dataset(data):
            raise ValueError(f"wf.Data() needs x=wf.Dataset(X, y), got {type(data).__name__}.")
        return (OnData(traced(problem), Nodes(data.x, data.y, data.weights)),)


@dataclass(frozen=True)
class Auto:
    """The most exact way that is affordable: the data set itself; else the closed form, with nodes
    behind it for what the closed form cannot handle; else Gauss quadrature; else a fixed sample."""

    def bind(self, problem):
        if is_dataset(problem.x):
            return Data().bind(problem)
        exact = ClosedForm().bind(problem) if why_not(problem) is None else ()
        quiet = float(problem.noise) == 0 or problem.loss.is_squared
        if quiet and problem.x.default_order() is not None:
            return exact + Quadrature().bind(problem)
        return exact + Sample().bind(problem)
