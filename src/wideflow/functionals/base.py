"""The interface of functionals, and sums of them."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._checks import is_traced, number, positive
from .._data import Data
from .._tracing import jit, traced
from .._typing import Abstract, Scalar, TypeIs
from ..problems.nodes import Nodes
from ..problems.problem import Problem
from ..states.measure import AbstractMeasure
from ..states.particles import Particles
from ..states.state import AbstractState
from ..states.trainable import AbstractTrainable


class AbstractFunctional(eqx.Module):
    """F: State → R, closed under `+` and scalar `*`.

    Three numbers must be told apart when α ≠ 1: `value` is F itself; `energy` is what its flow
    dissipates (R/α² for a risk, F for a penalty on ρ); `potential` is the first variation of the
    energy, so that the velocity is −∇potential and d(energy)/dt = −∫|velocity|²dρ along the flow."""

    problem: Abstract[Problem | None]  # behind the expectation; None for a pure penalty
    sample: Abstract[Nodes | None]  # finite data behind it, to be drawn from, if any

    @property
    def label(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @abc.abstractmethod
    def value(self, state: AbstractState) -> Float[Array, ""]:
        """F(state)."""

    @abc.abstractmethod
    def energy(self, particles: AbstractMeasure) -> Float[Array, ""]:
        """The functional whose Wasserstein gradient flow has this velocity."""

    @abc.abstractmethod
    def potential(self, theta: Float[Array, "k D"], particles: AbstractMeasure) -> Float[Array, " k"]:
        """First variation of the energy at the points θ: Ψ/α for a risk."""

    @abc.abstractmethod
    def drift(self, state: AbstractTrainable, scale: Scalar = 1.0) -> PyTree:
        """scale · (−∇potential) at every particle, in the state's parts. A step η is best passed
        as the scale: it then multiplies rows of data rather than coordinates of θ."""

    @abc.abstractmethod
    def on(self, nodes: Nodes) -> "AbstractFunctional":
        """The same functional with its expectation over a batch."""

    def on_cells(self, state: AbstractMeasure) -> "AbstractFunctional":
        """The same functional, for densities on the grid of `state` alone: what costs more to take again than
        to read is kept."""
        return self

    def risks(self) -> int:
        """How many terms with an expectation there are."""
        return int(self.problem is not None)

    def summands(self) -> "tuple[AbstractFunctional, ...]":
        """The terms that it is a sum of, with their factors."""
        return (self,)

    def points(self, state: AbstractState) -> Nodes | None:
        """The weighted data that E is a sum over for this state; None in closed form or without E."""
        return None

    def velocity(self, state: AbstractTrainable) -> PyTree:
        """−∇potential at every particle, joined to (n, D); for a network a tree like its parts."""
        return state.joined(_drift(traced(self), state))

    def gradient(self, particles: Particles) -> Float[Array, "n D"]:
        """∇_θj of the energy at finite width: −weights_j · velocity_j."""
        return -particles.weights[:, None] * self.velocity(particles)

    def dissipation(self, particles: Particles) -> Float[Array, ""]:
        """∫|velocity|²dρ, the rate at which the plain flow lowers the energy."""
        return jnp.sum(particles.weights * jnp.sum(self.velocity(particles) ** 2, axis=-1))

    def observed(self, state: AbstractState) -> dict[str, Array]:
        """What every run records."""
        return {"risk": self.value(state)}

    def info(self, state: AbstractState) -> Data:
        """How the expectation was taken for this state, with its error estimate."""
        return {}

    def __add__(self, other: "AbstractFunctional") -> "AbstractFunctional":
        if not is_functional(other):
            return NotImplemented
        return Sum((self, other))

    def entropic_split(self) -> tuple["AbstractFunctional | None", PyTree]:
        """(G, c) with F = G + c S, S the entropy: what moves by a velocity, and what is noise."""
        return self, 0.0

    def decay_split(self) -> tuple["AbstractFunctional | None", PyTree]:
        """(G, λ) with F = G + (λ/2)∫|θ|²dρ."""
        return self, 0.0

    def has_decay(self) -> bool:
        """Whether ½∫|θ|²dρ is among the terms."""
        decay = self.decay_split()[1]
        return is_traced(decay) or decay != 0

    def __neg__(self) -> "AbstractFunctional":
        return Scaled(-1.0, self)

    def __sub__(self, other: "AbstractFunctional") -> "AbstractFunctional":
        return self + (-other) if is_functional(other) else NotImplemented

    def __truediv__(self, divisor: Scalar) -> "AbstractFunctional":
        if is_traced(divisor):
            return Scaled(1 / divisor, self)
        return Scaled(1 / positive("The divisor of a functional", divisor, infinite=True), self)

    def __mul__(self, factor: Scalar) -> "AbstractFunctional":
        return Scaled(number("The factor of a functional", factor), self)

    __rmul__ = __mul__


_drift = jit(lambda functional, particles: functional.drift(particles))


class Scaled(AbstractFunctional):
    """factor · F."""

    factor: Scalar
    term: AbstractFunctional

    @property
    def label(self) -> str:
        return self.term.label

    def value(self, state):
        return self.factor * self.term.value(state)

    def energy(self, particles):
        return self.factor * self.term.energy(particles)

    def potential(self, theta, particles):
        return self.factor * self.term.potential(theta, particles)

    def drift(self, particles, scale=1.0):
        return self.term.drift(particles, scale * self.factor)

    def on(self, nodes):
        return Scaled(self.factor, self.term.on(nodes))

    def on_cells(self, state):
        return Scaled(self.factor, self.term.on_cells(state))

    @property
    def problem(self):  # type: ignore[override]
        return self.term.problem

    @property
    def sample(self):  # type: ignore[override]
        return self.term.sample

    def info(self, state):
        return self.term.info(state)

    def observed(self, state):
        return self.term.observed(state)

    def risks(self):
        return self.term.risks()

    def summands(self):
        return tuple(Scaled(self.factor, term) for term in self.term.summands())

    def points(self, state):
        return self.term.points(state)

    def _scaled(
        self, split: tuple[AbstractFunctional | None, PyTree]
    ) -> tuple[AbstractFunctional | None, PyTree]:
        rest, amount = split
        if rest is self.term:
            return self, 0.0
        return None if rest is None else Scaled(self.factor, rest), self.factor * amount

    def entropic_split(self):
        return self._scaled(self.term.entropic_split())

    def decay_split(self):
        return self._scaled(self.term.decay_split())


class Sum(AbstractFunctional):
    """F₁ + F₂ + …; the risk that a run records is that of the term with an expectation."""

    terms: tuple[AbstractFunctional, ...]

    def value(self, state):
        return sum(term.value(state) for term in self.terms)

    def energy(self, particles):
        return sum(term.energy(particles) for term in self.terms)

    def potential(self, theta, particles):
        return sum(term.potential(theta, particles) for term in self.terms)

    def drift(self, particles, scale=1.0):
        drifts = [term.drift(particles, scale) for term in self.terms]
        return jax.tree.map(lambda *v: sum(v), *drifts)

    def on(self, nodes):
        return Sum(tuple(term.on(nodes) for term in self.terms))

    def on_cells(self, state):
        return Sum(tuple(term.on_cells(state) for term in self.terms))

    def _with_problem(self) -> AbstractFunctional | None:
        return next((term for term in self.terms if term.problem is not None), None)

    @property
    def problem(self):  # type: ignore[override]
        term = self._with_problem()
        return None if term is None else term.problem

    @property
    def sample(self):  # type: ignore[override]
        term = self._with_problem()
        return None if term is None else term.sample

    def info(self, state):
        return {k: v for term in self.terms for k, v in term.info(state).items()}

    def observed(self, state):
        term = self._with_problem()
        risk = {"risk": self.value(state)} if term is None else term.observed(state)
        return risk | {"energy": self.energy(state)}

    def risks(self):
        return sum(term.risks() for term in self.terms)

    def summands(self):
        return tuple(summand for term in self.terms for summand in term.summands())

    def points(self, state):
        term = self._with_problem()
        return None if term is None else term.points(state)

    def _joined(self, splits: list[tuple[AbstractFunctional | None, PyTree]]) -> PyTree:
        """What is left of the terms, and the sum of what was taken out of them."""
        if not any(is_traced(amount) or amount for _, amount in splits):
            return self, 0.0
        kept = tuple(rest for rest, _ in splits if rest is not None)
        whole = None if not kept else kept[0] if len(kept) == 1 else Sum(kept)
        return whole, sum(amount for _, amount in splits)

    def entropic_split(self):
        return self._joined([term.entropic_split() for term in self.terms])

    def decay_split(self):
        return self._joined([term.decay_split() for term in self.terms])


def is_functional(value: object) -> TypeIs[AbstractFunctional]:
    """Whether something is a functional."""
    return isinstance(value, AbstractFunctional)
