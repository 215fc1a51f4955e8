"""Layers of a network, as values without numbers in them: what is computed, from what shape to what shape.

The width n is not in a layer: a layer of `None` units has n of them, so that one family has every width."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._checks import count
from ..problems.activations import Activation

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Dense:
    """h = W x, W (fan-in, units): every unit sees all of x."""

    units: int | None = None

    def __post_init__(self):
        if self.units is not None:
            count("Dense(units)", self.units)

    def shape(self, inputs: Shape, n: int) -> Shape:
        if len(inputs) != 1:
            raise ValueError(
                f"Dense needs a vector, got an image of shape {inputs}: put Flatten or GlobalAverage first."
            )
        return (self.units or n,)

    def __str__(self) -> str:
        return f"Dense({self.units or 'n'})"

    def weight_shape(self, inputs: Shape, n: int) -> Shape:
        return (inputs[0], self.units or n)

    def patches(self, x: Array) -> Array:
        """What each row of h is a product of: (m, 1, fan-in)."""
        return x[:, None, :]

    def apply(self, w: Array, x: Array) -> Array:
        return x @ w


@dataclass(frozen=True)
class Conv:
    """h(p) = Σ_q W(q) x(p·stride + q), W (window, window, channels in, channels): images (m, H, W, C)."""

    window: int = 3
    channels: int | None = None
    stride: int = 1
    padding: str = "SAME"

    def __post_init__(self):
        count("Conv(window)", self.window)
        count("Conv(stride)", self.stride)
        if self.channels is not None:
            count("Conv(channels)", self.channels)
        if self.padding not in ("SAME", "VALID"):
            raise ValueError(f'Conv(padding) must be "SAME" or "VALID", got {self.padding!r}.')

    def shape(self, inputs: Shape, n: int) -> Shape:
        if len(inputs) != 3:
            raise ValueError(f"Conv needs an image (height, width, channels), got the shape {inputs}.")
        one = jax.ShapeDtypeStruct((1, *inputs), jnp.float32)
        kernel = jax.ShapeDtypeStruct(self.weight_shape(inputs, n), jnp.float32)
        out = jax.eval_shape(self.apply, kernel, one).shape[1:]
        if min(out) < 1:
            raise ValueError(f"Conv(window={self.window}) does not fit into an image of shape {inputs}.")
        return out

    def __str__(self) -> str:
        more = f", stride {self.stride}" * (self.stride > 1) + f", {self.padding}" * (self.padding != "SAME")
        return f"Conv({self.channels or 'n'}, {self.window}×{self.window}{more})"

    def weight_shape(self, inputs: Shape, n: int) -> Shape:
        return (self.window, self.window, inputs[-1], self.channels or n)

    def patches(self, x: Array) -> Array:
        """What each position of h is a product of: (m, positions, window² · channels in), in the order
        of the weights' first three axes."""
        found = jax.lax.conv_general_dilated_patches(
            x,
            (self.window, self.window),
            (self.stride, self.stride),
            self.padding,
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        m, channels = x.shape[0], x.shape[-1]
        found = found.reshape(m, -1, channels, self.window**2)  # the channels come first there
        return jnp.swapaxes(found, 2, 3).reshape(m, -1, self.window**2 * channels)

    def apply(self, w: Array, x: Array) -> Array:
        return jax.lax.conv_general_dilated(
            x, w, (self.stride, self.stride), self.padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )


@dataclass(frozen=True)
class Elementwise:
    """x = φ(h)."""

    activation: Activation

    def __str__(self) -> str:
        return self.activation.name

    def shape(self, inputs: Shape, n: int) -> Shape:
        return inputs

    def apply(self, x: Array) -> Array:
        return self.activation(x)


@dataclass(frozen=True)
class AveragePool:
    """The mean over windows that do not overlap."""

    window: int = 2

    def __post_init__(self):
        count("AveragePool(window)", self.window)

    def shape(self, inputs: Shape, n: int) -> Shape:
        fits = len(inputs) == 3 and inputs[0] % self.window == 0 and inputs[1] % self.window == 0
        if not fits:
            raise ValueError(
                f"AveragePool({self.window}) needs an image whose sides {self.window} divides, got {inputs}."
            )
        return (inputs[0] // self.window, inputs[1] // self.window, inputs[2])

    def apply(self, x: Array) -> Array:
        m, h, w, c = x.shape
        tiles = x.reshape(m, h // self.window, self.window, w // self.window, self.window, c)
        return tiles.mean((2, 4))


@dataclass(frozen=True)
class GlobalAverage:
    """The mean over all positions of an image."""

    def shape(self, inputs: Shape, n: int) -> Shape:
        if len(inputs) != 3:
            raise ValueError(f"GlobalAverage needs an image (height, width, channels), got {inputs}.")
        return (inputs[-1],)

    def apply(self, x: Array) -> Array:
        return x.mean((1, 2))


@dataclass(frozen=True)
class Flatten:
    """All positions of an image side by side."""

    def shape(self, inputs: Shape, n: int) -> Shape:
        return (math.prod(inputs),)

    def apply(self, x: Array) -> Array:
        return x.reshape(x.shape[0], -1)


Layer = Dense | Conv | Elementwise | AveragePool | GlobalAverage | Flatten
