"""The risk R(ρ) = E ℓ(f(x; ρ), y)."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..problems.losses import Squared
from ..problems.nodes import Nodes
from ..problems.problem import Problem
from ..states.particles import Particles
from .base import AbstractFunctional
from .expectations import AbstractExpectation, Auto, ByNodes


class Risk(AbstractFunctional):
    """R(ρ) = E ℓ(f(x; ρ), y), ½E(y − f)² for the squared loss.

    `expectation` says how E is taken: `wf.ClosedForm()`, `wf.Quadrature(order)`, `wf.Sample(m)`,
    `wf.Data()`; by default the most exact way that is affordable. `risk.way(state)` tells which one
    a state gets and `risk.error(state)` estimates its error."""

    problem: Problem
    ways: tuple[AbstractExpectation, ...]

    def __init__(self, problem: Problem, expectation: Any = None):
        if not isinstance(problem, Problem):
            raise ValueError(f"Risk needs a wf.Problem, got {problem!r}.")
        expectation = Auto() if expectation is None else expectation
        if not hasattr(expectation, "bind"):
            raise ValueError(
                "Risk(expectation) must be wf.ClosedForm(), wf.Quadrature(order), wf.Sample(m) or "
                f"wf.Data(), got {expectation!r}."
            )
        self.problem = problem
        self.ways = expectation.bind(problem)

    def expectation(self, state: Any) -> AbstractExpectation:
        """The most exact way that this state can afford."""
        for way in self.ways:
            if way.handles(state):
                return way
        raise ValueError(
            f"A state of {getattr(state, 'n', '?')} neurons is too wide for the {self.ways[0].way}; "
            "use wf.Risk(problem) or wf.Risk(problem, expectation=wf.Sample(m))."
        )

    @property
    def nodes(self) -> Nodes | None:
        return self.ways[-1].nodes

    def way(self, state: Any) -> str:
        """How E is taken for this state, in words."""
        return self.expectation(state).way

    def error(self, state: Any) -> float:
        """Estimated absolute error of the risk of this state."""
        return self.expectation(state).error(state)

    def value(self, state):
        return self.expectation(state).risk(state)

    def energy(self, particles):
        """R/α²: what the flow dissipates."""
        return self.value(particles) / particles.alpha**2

    def potential(self, theta, particles):
        """Ψ/α, the first variation of R/α²."""
        return self.psi(theta, particles) / particles.alpha

    def psi(self, theta: Float[Array, "k D"], particles: Particles) -> Float[Array, " k"]:
        """Ψ(θ; ρ) = −E[u(x)σ*(x; θ)], u = y − f for the squared loss."""
        parts = particles.neuron.unpack(jnp.asarray(theta, particles.dtype))
        return self.expectation(particles).potential(parts, particles)

    def drift(self, particles):
        return self.expectation(particles).drift(particles)

    def on(self, nodes):
        batch = object.__new__(Risk)
        object.__setattr__(batch, "problem", self.problem)
        object.__setattr__(batch, "ways", (ByNodes(self.problem, nodes),))
        return batch

    def V(self, theta: Float[Array, "k D"]) -> Float[Array, " k"]:  # noqa: N802 (theory's name)
        """V(θ) = −E[y σ*(x; θ)]; the split R = ½E[y²] + ∫V + ½∬U needs the squared loss."""
        return self._split().v(self.problem.neuron.unpack(jnp.asarray(theta)))

    def U(self, theta: Float[Array, "k D"], other: Float[Array, "l D"]) -> Float[Array, "k l"]:  # noqa: N802
        """U(θ, θ') = E[σ*(x; θ)σ*(x; θ')]."""
        unpack = self.problem.neuron.unpack
        return self._split().u(unpack(jnp.asarray(theta)), unpack(jnp.asarray(other)))

    def _split(self) -> AbstractExpectation:
        if not isinstance(self.problem.loss, Squared):
            name = type(self.problem.loss).__name__
            raise ValueError(f"V and U exist for the squared loss alone, this one is {name}; use psi.")
        return self.ways[0]

    def info(self, state):
        way = self.expectation(state)
        return {"expectation": way.way, "expectation_error": way.error(state)}
