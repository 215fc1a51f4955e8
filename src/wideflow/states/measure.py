"""A measure of neurons: points θ with weights, and what its coordinates stand for."""

import abc
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._typing import Abstract, DType, TypeIs
from ..problems.neurons import AbstractNeuron
from .state import AbstractState
from .trainable import half_square


class EntropyEstimate(NamedTuple):
    """An entropy and one standard error of it."""

    value: float
    error: float


class AbstractMeasure(AbstractState):
    """ρ on R^D as `theta` (n, D) with `weights` (n,), and the network f(x; ρ) = α∫σ*(x; θ)ρ(dθ).

    Coordinates may stand for more than themselves: a reduced particle is a sphere of neurons in R^d. The
    neuron knows the density of that reference measure (`neuron.log_reference`); in coordinates that are the
    neuron's own it is Lebesgue's."""

    alpha: Abstract[Float[Array, "*r"]]
    neuron: Abstract[AbstractNeuron]
    weights: Abstract[Float[Array, "*r n"]]
    theta: Abstract[Float[Array, "*r n D"]]
    parts: Abstract[PyTree]
    dtype: Abstract[DType]

    @property
    @abc.abstractmethod
    def D(self) -> int:  # noqa: N802 (theory's name)
        """Dimension of θ."""

    @property
    def is_reduced(self) -> bool:
        return not self.neuron.is_flat

    def preactivations(self, x):
        return self.neuron.preactivations(self.parts, x.astype(self.dtype))

    @property
    @abc.abstractmethod
    def has_density(self) -> bool:
        """Whether ρ has a density, and so an entropy."""

    @abc.abstractmethod
    def with_weights(self, weights: Float[Array, " n"]) -> Self:
        """The same points with other weights; nothing is checked again."""

    @abc.abstractmethod
    def log_density(self, theta: Float[Array, "k D"]) -> Float[Array, " k"]:
        """log ρ at points θ, with respect to dθ."""

    @abc.abstractmethod
    def coordinate_entropy(self, neighbours: int | None) -> Float[Array, ""]:
        """−∫ρ log ρ dθ: exact for a density, an estimate by that many neighbours for a cloud."""

    @abc.abstractmethod
    def entropy_estimate(self, neighbours: int | None) -> EntropyEstimate:
        """The same with one standard error."""

    def log_reference(self) -> Float[Array, ""]:
        """∫log m dρ, m the density of the reference measure in these coordinates."""
        return jnp.sum(self.weights * self.neuron.log_reference(self.parts)) + self.neuron.log_area

    def second_moment(self) -> Float[Array, ""]:
        """½∫|θ|²dρ over the trained coordinates."""
        each = lambda parts: half_square(parts, self.neuron.trained(parts))
        return jnp.sum(self.weights * jax.vmap(each, in_axes=-1)(self.parts))


def is_measure(state: object) -> TypeIs[AbstractMeasure]:
    """Whether a state is a measure of neurons."""
    return isinstance(state, AbstractMeasure)
