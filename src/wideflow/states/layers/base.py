"""The interface of a layer. The width n is not in a layer: one of `None` units has n of them, so that one
family has every width.

A family is walked step by step: shapes, data, covariances at n = ∞ and more flow along its layers in the same
way, on a stack whose top is what flows. Nearly all layers act on the top alone (`AbstractUnary`); a block
such as `Residual` keeps an earlier value below it."""

import abc
import math
from typing import ClassVar

import numpy as np
from jaxtyping import Array, Float

from ..._shown import shown
from ...problems.activations import Activation
from .covariance import AbstractRecursion, Randomness, Tables
from .forward import Forward

Shape = tuple[int, ...]


class AbstractLayer(abc.ABC):
    """A layer or a block of layers, as a value that can be compared and hashed (a frozen dataclass). To be
    loaded from a file it is registered by `store.registry.recorded` next to its class."""

    @abc.abstractmethod
    def steps(self) -> "tuple[AbstractStep, ...]":
        """What it does, one after the other."""

    @property
    def outputs(self) -> int | None:
        """How many values a network has that ends with this layer; None if none can."""
        return None


class AbstractStep(AbstractLayer):
    """One step, on stacks of what flows."""

    averages: ClassVar[bool] = False  # whether Σ between different positions of an image enters it

    def steps(self):
        return (self,)

    def as_weighted(self) -> "AbstractWeighted | None":
        """The step itself, where it has weights."""
        return None

    @property
    def phi(self) -> Activation | None:
        """The activation, where the step is one."""
        return None

    @property
    def homogeneous(self) -> bool:
        """Whether c > 0 times the input is c times the output (without biases)."""
        return True

    @abc.abstractmethod
    def pass_shapes(self, stack: tuple[Shape, ...], n: int) -> tuple[Shape, ...]:
        """Shapes of one sample, at width n; an error where the layer does not fit."""

    @abc.abstractmethod
    def pass_values(self, stack: tuple[Array, ...], forward: Forward) -> tuple[Array, ...]:
        """Data (m, …), at finite width; a weight layer asks `forward` for its weights."""

    @abc.abstractmethod
    def pass_covariances(self, stack: tuple[Tables, ...], at: AbstractRecursion) -> tuple[Tables, ...]:
        """Σ and Θ at n = ∞."""

    @abc.abstractmethod
    def pass_labels(self, stack: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """Labels (m, positions…), equal where all that enters is."""

    @abc.abstractmethod
    def pass_randomness(self, stack: tuple[Randomness, ...]) -> tuple[Randomness, ...]:
        """What values are at n = ∞; an error where there is no such limit."""


class AbstractUnary(AbstractStep):
    """A step that acts on the top of the stack."""

    @abc.abstractmethod
    def shape(self, inputs: Shape, n: int) -> Shape:
        """The shape of the output, from that of the input."""

    @abc.abstractmethod
    def value(self, x: Array, forward: Forward) -> Array:
        """The output on data x (m, …)."""

    @abc.abstractmethod
    def covariance(self, tables: Tables, at: AbstractRecursion) -> Tables:
        """Σ and Θ of the output."""

    def label(self, label: np.ndarray) -> np.ndarray:
        return label

    def randomness(self, entering: Randomness) -> Randomness:
        return entering

    def pass_shapes(self, stack, n):
        return (*stack[:-1], self.shape(stack[-1], n))

    def pass_values(self, stack, forward):
        return (*stack[:-1], self.value(stack[-1], forward))

    def pass_covariances(self, stack, at):
        return (*stack[:-1], self.covariance(stack[-1], at))

    def pass_labels(self, stack):
        return (*stack[:-1], self.label(stack[-1]))

    def pass_randomness(self, stack):
        return (*stack[:-1], self.randomness(stack[-1]))


class AbstractUnweighted(AbstractUnary):
    """A function of its input alone."""

    @abc.abstractmethod
    def apply(self, x: Array) -> Array:
        """The output on data x (m, …)."""

    def value(self, x, forward):
        return self.apply(x)


class AbstractWeighted(AbstractUnary):
    """h(p) = W · patch(p): linear in its input and in its weights W (…, units), whose row of the
    parametrisation is its place among the weight layers."""

    def as_weighted(self):
        return self

    @property
    @abc.abstractmethod
    def units_or_none(self) -> int | None:
        """How many units; None where they are n."""

    @abc.abstractmethod
    def weight_shape(self, inputs: Shape, n: int) -> Shape:
        """The shape of W; its last axis is that of the units."""

    def fan_in(self, inputs: Shape, n: int) -> int:
        """How many inputs each unit sums over."""
        return math.prod(self.weight_shape(inputs, n)[:-1])

    @abc.abstractmethod
    def apply(self, w: Array, x: Array) -> Array:
        """W x."""

    @abc.abstractmethod
    def patches(self, x: Array) -> Float[Array, "m positions fan_in"]:
        """What each position of h is a product of, in the order of the first axes of W: the gradient of f in
        W is Σ_p patch(p) ⊗ ∂f/∂h(p)."""

    @abc.abstractmethod
    def gram(self, x1: Array, x2: Array | None, pairs: bool) -> Array:
        """⟨patch(x, p), patch(x', p')⟩ between samples x1 and x2, or of each x1 with itself; for all `pairs`
        of positions or for p = p'. Axes as in `covariance`."""

    def value(self, x, forward):
        return forward.affine(self.apply, x)

    def randomness(self, entering):
        if self.units_or_none is not None:
            raise ValueError(
                f"{shown(self)} keeps its width as n grows, so the network has no Gaussian limit. Leave "
                "the width open: Dense(), Conv(window)."
            )
        return Randomness(gaussian=True, fresh=True)
