"""Ways to take E over (x, y): closed form, Gauss quadrature, fixed sample, data set.

Each way answers the same questions (risk, Ψ, velocity, V and U, how wrong it may be), so a functional
does not know which one it holds."""

import abc
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import count
from .._typing import Abstract
from ..problems.laws import Dataset
from ..problems.losses import Squared
from ..problems.neurons import AbstractNeuron, Neuron
from ..problems.nodes import Nodes
from ..problems.problem import Problem
from ..states.chunks import chunk_rows, chunked, in_chunks
from ..states.particles import Particles
from ..states.trainable import AbstractTrainable
from .base import traced
from .engine import risk_of, sweep
from .pairs import ORDER, Pairs, why_not

# Closed forms cost n²: up to this width one evaluation takes about a second on two cores.
MOST_PAIRED = 8192
DEFAULT_SAMPLE = 2**14
_MOST_TERMS = 1024  # of a dual's series, whose rule has twice as many points


class AbstractExpectation(eqx.Module):
    """E over (x, y), bound to a problem."""

    sample: Abstract[Nodes | None]  # the finite data behind it, to be drawn from; else None

    @abc.abstractmethod
    def risk(self, state: Any) -> Float[Array, ""]:
        """R = E ℓ(f(x), y)."""

    @abc.abstractmethod
    def potential(self, parts: Any, particles: Particles) -> Float[Array, " k"]:
        """Ψ(θ; ρ) = −E[u(x) σ*(x; θ)]."""

    @abc.abstractmethod
    def drift(self, particles: Particles, scale: Any = 1.0) -> Any:
        """−(scale/α)∇Ψ at every particle, in the neuron's parts."""

    @abc.abstractmethod
    def v(self, parts: Any) -> Float[Array, " k"]:
        """V(θ) = −E[y σ*(x; θ)] (squared loss)."""

    @abc.abstractmethod
    def u(self, parts: Any, others: Any) -> Float[Array, "k l"]:
        """U(θ, θ') = E[σ*(x; θ)σ*(x; θ')] (squared loss)."""

    @abc.abstractmethod
    def handles(self, state: Any) -> bool:
        """Whether this way can be afforded for this state."""

    @abc.abstractmethod
    def error(self, state: Any) -> float:
        """Estimated absolute error of `risk`."""

    @property
    @abc.abstractmethod
    def way(self) -> str:
        """What this way is, in words."""


def coarser(order: int) -> tuple[int, int]:
    """Two orders to compare a Gauss rule with: half, and an odd one near two thirds. Even rules have
    no node at 0 and so can agree on a steep function that neither of them sees; an odd one has."""
    return (max(1, order // 2), 2 * (order // 3) + 1) if order > 1 else (2, 3)


class AbstractByNodes(AbstractExpectation):
    """E as a sum over weighted data."""

    problem: Abstract[Problem]
    nodes: Abstract[Nodes]

    def rows(self, state: Any) -> Array:
        """ℓ of every row."""
        return self.problem.loss(state(self.nodes.x), self.nodes.y)

    def risk(self, state):
        if isinstance(state, AbstractTrainable):
            return risk_of(state, self.nodes, self.problem.loss)
        return jnp.sum(self.nodes.weights * self.rows(state))

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


class OnData(AbstractByNodes):
    """E over a data set or a batch: exact, as that is what is asked for."""

    problem: Problem
    nodes: Nodes

    @property
    def sample(self):
        return self.nodes

    def error(self, state):
        return 0.0

    @property
    def way(self):
        return f"data set ({self.nodes.m} points)"


class OnSample(AbstractByNodes):
    """E over a fixed sample of the law of (x, y). Its error bar is that of a state which was not
    trained on this sample: what a state has fitted of the sample's own chance does not show in it."""

    problem: Problem
    nodes: Nodes

    @property
    def sample(self):
        return self.nodes

    def error(self, state):
        """One standard error; unknown, so infinite, for a sample of one."""
        m = self.nodes.m
        return float(jnp.std(self.rows(state), ddof=1) / jnp.sqrt(m)) if m > 1 else float("inf")

    @property
    def way(self):
        return f"fixed sample ({self.nodes.m} points, error in sample)"


class ByQuadrature(AbstractByNodes):
    """E over Gauss nodes of x. Label noise moves no particle under the squared loss, and adds ½ noise²
    per output to the risk."""

    problem: Problem
    nodes: Nodes
    order: int = eqx.field(static=True)

    @property
    def sample(self):
        return None

    def risk(self, state):
        return super().risk(state) + 0.5 * self.problem.noise**2 * self.problem.neuron.outputs

    def error(self, state):
        """The larger difference from two coarser rules (of a neuron's own means too), and rounding."""
        here = self.risk(state)
        coarse = [
            ByQuadrature(self.problem, self.problem.quadrature(n), n).risk(_coarser_neuron(state, n))
            for n in coarser(self.order)
        ]
        rounding = 8 * jnp.finfo(here.dtype).eps * abs(here)
        return float(max(abs(here - other) for other in coarse) + rounding)

    @property
    def way(self):
        return f"Gauss quadrature of order {self.order} ({self.nodes.m} points)"


def _coarser_neuron(state: Any, order: int) -> Any:
    if not isinstance(state, Particles):
        return state
    return eqx.tree_at(lambda p: p.neuron, state, state.neuron.with_order(order))


class ByPairs(AbstractExpectation):
    """E in closed form, as a sum over pairs of neurons."""

    pairs: Pairs

    @property
    def sample(self):
        return None

    def risk(self, state):
        return self.pairs.value(state)

    def potential(self, parts, particles):
        return self.pairs.potential(parts, particles)

    def v(self, parts):
        return self.pairs.v(parts)

    def u(self, parts, others):
        return self.pairs.u(parts, others)

    def drift(self, particles, scale=1.0):
        return self.pairs.drift(particles, scale)

    def handles(self, state):
        if not (isinstance(state, Particles) and state.n <= MOST_PAIRED):
            return False
        mine, its = self.pairs.problem.neuron, state.neuron
        same = isinstance(its, Neuron) and its.activation == mine.activation
        return same and not its.bias and its.outputs == 1

    def error(self, state):
        """Rounding of the three terms whose sum the risk is, which grows with |w| (variances and
        covariances of long weights cancel), and the difference from two lower orders where a dual is
        not in closed form."""
        longest = jnp.sqrt(jnp.max(jnp.sum(state.parts.w**2, axis=0)))
        scale = 8 * (1 + longest / 64) * self.pairs.magnitude(state)
        rounding = float(jnp.finfo(state.dtype).eps * scale)
        if not self.pairs.without_dual():
            return rounding
        here = self.pairs.value(state)
        coarse = [Pairs(self.pairs.problem, n).value(state) for n in coarser(self.pairs.order)]
        return rounding + max(abs(float(here - other)) for other in coarse)

    @property
    def way(self):
        numeric = self.pairs.without_dual()
        by = f"; {', '.join(numeric)} to order {self.pairs.order}" if numeric else ""
        return f"closed form (dual activations{by})"


@eqx.filter_jit
def _overlap(neuron: AbstractNeuron, parts: Any, nodes: Nodes, signal: Array) -> Float[Array, " k"]:
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
def _gram(neuron: AbstractNeuron, parts: Any, others: Any, nodes: Nodes) -> Float[Array, "k l"]:
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
    activation that has none is taken too, its dual by so many terms of its Hermite series (nodes
    between two kinks, if it has some): 64 are eight digits for tanh and weights of length 1."""

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
    """Ask for a product Gauss rule of the given order (d ≤ 3)."""

    order: int | None = None

    def __post_init__(self):
        if self.order is not None:
            count("Quadrature(order)", self.order)

    def bind(self, problem):
        noisy = float(problem.noise) > 0
        if noisy and not isinstance(problem.loss, Squared):
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
    """Ask for a fixed sample of m points, drawn from `seed`."""

    m: int = DEFAULT_SAMPLE
    seed: int = 0

    def __post_init__(self):
        count("Sample(m)", self.m)
        count("Sample(seed)", self.seed, least=0)

    def bind(self, problem):
        nodes = problem.fixed_sample(self.m, jax.random.key(self.seed))
        return (OnSample(traced(problem), nodes),)


@dataclass(frozen=True)
class Data:
    """Ask for the sum over a data set."""

    def bind(self, problem):
        data = problem.x
        if not isinstance(data, Dataset):
            raise ValueError(f"wf.Data() needs x=wf.Dataset(X, y), got {type(data).__name__}.")
        return (OnData(traced(problem), Nodes(data.x, data.y, data.weights)),)


@dataclass(frozen=True)
class Auto:
    """The most exact way that is affordable: the data set itself; else the closed form, with nodes
    behind it for what the closed form cannot take; else Gauss quadrature; else a fixed sample."""

    def bind(self, problem):
        if isinstance(problem.x, Dataset):
            return Data().bind(problem)
        exact = ClosedForm().bind(problem) if why_not(problem) is None else ()
        quiet = float(problem.noise) == 0 or isinstance(problem.loss, Squared)
        if quiet and problem.x.default_order() is not None:
            return exact + Quadrature().bind(problem)
        return exact + Sample().bind(problem)
