"""One pass of data through a network."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxtyping import Array, Float, PyTree

from ...store.registry import recorded


@recorded
class Weights(NamedTuple):
    """W (fan-in, units), or (window, window, channels in, channels) of a convolution; the bias or None. Also
    what there is one of for each of them, such as their rates."""

    w: PyTree
    b: PyTree


Scale = float | Float[Array, ""]


class Forward:
    """Hands each weight layer its weights, in the order of the layers, and keeps what entered and left it.

    Layer l is h = multiplier_l · W x (+ bias_multiplier_l · b) (+ nudge_l): the derivative of f in a nudge
    at 0 is the backward signal ∂f/∂h_l."""

    def __init__(
        self,
        parts: Sequence[Weights],
        multipliers: Sequence[Scale],
        bias_multipliers: Sequence[Scale],
        nudges: Sequence[Array] | None = None,
    ):
        self._parts, self._nudges = parts, nudges
        self._multipliers, self._bias_multipliers = multipliers, bias_multipliers
        self.inputs: list[Array] = []
        self.features: list[Array] = []

    def affine(self, product: Callable[[Array, Array], Array], x: Array) -> Array:
        """h of the next weight layer, whose `product(W, x)` is linear in both."""
        i = len(self.inputs)
        self.inputs.append(x)
        w, b = self._parts[i]
        h = self._multipliers[i] * product(w, x)
        if b is not None:
            h = h + self._bias_multipliers[i] * b
        if self._nudges is not None:
            h = h + self._nudges[i]
        self.features.append(h)
        return h
