"""What a functional answers, and sums of functionals."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import number
from .._tracing import traced
from .._typing import Abstract
from ..problems.nodes import Nodes
from ..problems.problem import Problem
from ..states.grid import Measure
from ..states.particles import Particles
from ..states.trainable import AbstractTrainable


class AbstractFunctional(eqx.Module):
    """F: State → R, closed under `+` and scalar `*`.

    Three numbers must be told apart when α ≠ 1: `value` is F itself; `energy` is what its flow
    dissipates (R/α² for a risk, F for a penalty on ρ); `potential` is the first variation of the
    energy, so that the velocity is −∇potential and d(energy)/dt = −∫|velocity|²dρ along the flow."""

    problem: Abstract[Problem | None]  # behind the expectation; None for a pure penalty
    sample: Abstract[Nodes | None]  # finite data behind it, to be drawn from, if it has some

    @abc.abstractmethod
    def value(self, state: Any) -> Float[Array, ""]:
        """F(state)."""

    @abc.abstractmethod
    def energy(self, particles: Measure) -> Float[Array, ""]:
        """The functional whose Wasserstein gradient flow has this velocity."""

    @abc.abstractmethod
    def potential(self, theta: Float[Array, "k D"], particles: Measure) -> Float[Array, " k"]:
        """First variation of the energy at the points θ: Ψ/α for a risk."""

    @abc.abstractmethod
    def drift(self, state: AbstractTrainable, scale: Any = 1.0) -> Any:
        """scale · (−∇potential) at every particle, in the state's parts. A step η is best given here
        as the scale: it then multiplies rows of data rather than coordinates of θ."""

    @abc.abstractmethod
    def on(self, nodes: Nodes) -> "AbstractFunctional":
        """The same functional with its expectation over a batch."""

    def risks(self) -> int:
        """How many terms with an expectation there are."""
        return int(self.problem is not None)

    def velocity(self, state: AbstractTrainable) -> Any:
        """−∇potential at every particle, joined to (n, D); for a network a tree as its parts."""
        return state.joined(_drift(traced(self), state))

    def gradient(self, particles: Particles) -> Float[Array, "n D"]:
        """∇_θj of the energy at finite width: −weights_j · velocity_j."""
        return -particles.weights[:, None] * self.velocity(particles)

    def dissipation(self, particles: Particles) -> Float[Array, ""]:
        """∫|velocity|²dρ, the rate at which the plain flow lowers the energy."""
        return jnp.sum(particles.weights * jnp.sum(self.velocity(particles) ** 2, axis=-1))

    def observed(self, state: Any) -> dict[str, Array]:
        """What every run records."""
        return {"risk": self.value(state)}

    def info(self, state: Any) -> dict[str, Any]:
        """How the expectation was taken for this state, with its error estimate."""
        return {}

    def __add__(self, other: "AbstractFunctional") -> "AbstractFunctional":
        if not isinstance(other, AbstractFunctional):
            return NotImplemented
        return Sum((self, other))

    def __mul__(self, factor: Any) -> "AbstractFunctional":
        if isinstance(factor, jax.core.Tracer):
            return Scaled(factor, self)
        return Scaled(number("The factor of a functional", factor), self)

    __rmul__ = __mul__


_drift = eqx.filter_jit(lambda functional, particles: functional.drift(particles))


class Scaled(AbstractFunctional):
    """factor · F."""

    factor: Any
    term: AbstractFunctional

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

    @property
    def problem(self):
        return self.term.problem

    @property
    def sample(self):
        return self.term.sample

    def info(self, state):
        return self.term.info(state)

    def observed(self, state):
        return self.term.observed(state)

    def risks(self):
        return self.term.risks()


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

    def _with_problem(self) -> AbstractFunctional | None:
        return next((term for term in self.terms if term.problem is not None), None)

    @property
    def problem(self):
        term = self._with_problem()
        return None if term is None else term.problem

    @property
    def sample(self):
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
