"""The risk R(ρ) = E ℓ(f(x; ρ), y)."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from .._shown import shown
from .._typing import DType
from ..problems.neurons import AbstractNeuron
from ..problems.nodes import Nodes
from ..problems.problem import Problem, is_problem
from ..states.measure import AbstractMeasure
from ..states.particles import is_cloud
from ..states.state import AbstractState
from ..states.trainable import is_trainable
from . import expectations
from .base import AbstractFunctional
from .expectations import AbstractExpectation, Auto, OnData
from .kept import on_cells


def _parts(theta: ArrayLike, neuron: AbstractNeuron, D: int, dtype: DType | None = None) -> PyTree:  # noqa: N803
    """Points θ, one per row, in the neuron's parts."""
    points = jnp.asarray(theta)
    points = points.astype(jnp.result_type(points, float) if dtype is None else dtype)
    if points.ndim != 2 or points.shape[1] != D:
        raise ValueError(f"theta must have shape (k, D), D = {D}, got {points.shape}. Try theta[None].")
    return neuron.unpack(points)


class Risk(AbstractFunctional):
    """R(ρ) = E ℓ(f(x; ρ), y), ½E(y − f)² for the squared loss.

    `expectation` says how E is taken: `wf.ClosedForm()`, `wf.Quadrature(order)`, `wf.Sample(m)`,
    `wf.Data()`; by default the most exact way that is affordable. `risk.way(state)` says which one
    a state gets and `risk.error(state)` estimates its error, rounding included. On `wf.Sample(m)` the risk
    is that of the sample, which training fits; the error is against the law of (x, y), by fresh data.

    >>> R = wf.Risk(problem)
    >>> R.way(net)
    'closed form (dual activations)'
    >>> round(float(R.value(net)), 3), float(R.error(net)) < 1e-6
    (0.235, True)"""

    problem: Problem
    ways: tuple[AbstractExpectation, ...]

    def __init__(self, problem: Problem, expectation: Any = None):
        if not is_problem(problem):
            raise ValueError(f"Risk(problem) must be a wf.Problem, got {shown(problem)}.")
        expectation = Auto() if expectation is None else expectation
        if isinstance(expectation, type) or not hasattr(expectation, "bind"):
            raise ValueError(
                "Risk(expectation) must be wf.ClosedForm(), wf.Quadrature(order), wf.Sample(m) or "
                f"wf.Data(), got {shown(expectation)}."
            )
        self.problem = problem
        self.ways = expectation.bind(problem)

    def expectation(self, state: AbstractState) -> AbstractExpectation:
        """The most exact way that this state can afford."""
        self._check(state)
        for way in self.ways:
            if way.handles(state):
                return way
        description = f"{state.n} neurons of {shown(state.neuron)}" if is_cloud(state) else repr(state)
        raise ValueError(
            f"The {self.ways[0].way} takes at most {expectations.MOST_PAIRED} neurons of the problem's own "
            f"kind, {shown(self.problem.neuron)}, got {description}. Use wf.Risk(problem) or "
            "wf.Risk(problem, expectation=wf.Sample(m))."
        )

    def _check(self, state: AbstractState) -> None:
        if not callable(state):
            raise ValueError(f"A state must predict, state(x), such as wf.Particles, got {shown(state)}.")
        if not is_cloud(state):
            self._check_outputs(state)
            return
        d, outputs, neuron = self.problem.d, self.problem.neuron.outputs, state.neuron
        if neuron.size(d) != state.D or neuron.outputs != outputs:
            raise ValueError(
                f"The problem has x in R^{d} and {outputs} output(s), so its particles must be in "
                f"R^{neuron.size(d)}, got particles in R^{state.D} with {neuron.outputs} output(s)."
            )

    def _check_outputs(self, state: AbstractState) -> None:
        if not is_trainable(state):
            return
        x = jax.ShapeDtypeStruct((2, self.problem.d), state.dtype)
        shape = jax.eval_shape(lambda x: state(x), x).shape[1:]  # raises if x does not fit
        self.problem.check_outputs(math.prod(shape))

    @property
    def sample(self) -> Nodes | None:  # type: ignore[override]
        return self.ways[-1].sample

    def way(self, state: AbstractState) -> str:
        """How E is taken for this state, in words."""
        return self.expectation(state).way

    def error(self, state: AbstractState) -> float:
        """Estimated absolute error of the risk of this state: for a data set that of its sum alone, else
        relative to the risk under the law of (x, y)."""
        return self.expectation(state).error(state)

    def value(self, state):
        return self.expectation(state).risk(state)

    def points(self, state):
        return self.expectation(state).points()

    def observed(self, state):
        """The risk, and on a fixed sample what fresh data say about it (`wf.Sample`)."""
        return {"risk": self.value(state)} | self.expectation(state).observed(state)

    def energy(self, particles):
        """R/α²: what the flow dissipates."""
        return self.value(particles) / particles.alpha**2

    def potential(self, theta, particles):
        """Ψ/α, the first variation of R/α²."""
        return self.psi(theta, particles) / particles.alpha

    def psi(self, theta: Float[Array, "k D"], particles: AbstractMeasure) -> Float[Array, " k"]:
        """Ψ(θ; ρ) = −E[u(x)σ*(x; θ)], u = y − f for the squared loss."""
        parts = _parts(theta, particles.neuron, particles.D, particles.dtype)
        return self.expectation(particles).potential(parts, particles)

    def drift(self, particles, scale=1.0):
        return self.expectation(particles).drift(particles, scale)

    def on(self, nodes):
        if not isinstance(nodes, Nodes):
            raise ValueError(f"Risk.on(nodes) must be wf.types.Nodes(x, y, weights), got {shown(nodes)}.")
        return self._by(OnData(self.problem, nodes))

    def on_cells(self, state):
        return self._by(on_cells(self.expectation(state), state))

    def _by(self, way: AbstractExpectation) -> "Risk":
        """The risk with this way alone."""
        other = object.__new__(Risk)
        object.__setattr__(other, "problem", self.problem)
        object.__setattr__(other, "ways", (way,))
        return other

    def V(self, theta: Float[Array, "k D"]) -> Float[Array, " k"]:  # noqa: N802 (theory's name)
        """V(θ) = −E[y σ*(x; θ)]; the split R = ½E[y²] + ∫V + ½∬U needs the squared loss."""
        return self._split().v(_parts(theta, self.problem.neuron, self.problem.D))

    def U(self, theta: Float[Array, "k D"], other: Float[Array, "l D"]) -> Float[Array, "k l"]:  # noqa: N802
        """U(θ, θ') = E[σ*(x; θ)σ*(x; θ')]."""
        parts = [_parts(t, self.problem.neuron, self.problem.D) for t in (theta, other)]
        return self._split().u(*parts)

    def _split(self) -> AbstractExpectation:
        if not self.problem.loss.is_squared:
            name = type(self.problem.loss).__name__
            raise ValueError(f"V and U exist for the squared loss alone, this one is {name}; use psi.")
        return self.ways[0]

    def info(self, state):
        way = self.expectation(state)
        return {"expectation": way.way, "expectation_error": way.error(state)}
