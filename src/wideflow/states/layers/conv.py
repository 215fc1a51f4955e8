"""Convolutions of images."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..._checks import count
from ..._shown import shown
from ...store.registry import recorded
from .base import AbstractWeighted, Shape
from .equality import window_labels

_AXES = ("NHWC", "HWIO", "NHWC")


@dataclass(frozen=True)
class Conv(AbstractWeighted):
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
            raise ValueError(f'Conv(padding) must be "SAME" or "VALID", got {shown(self.padding)}.')

    def __str__(self) -> str:
        more = f", stride {self.stride}" * (self.stride > 1) + f", {self.padding}" * (self.padding != "SAME")
        return f"Conv({self.channels or 'n'}, {self.window}×{self.window}{more})"

    @property
    def units_or_none(self):
        return self.channels

    def shape(self, inputs, n):
        if len(inputs) != 3:
            raise ValueError(f"Conv needs an image (height, width, channels), got the shape {inputs}.")
        one = jax.ShapeDtypeStruct((1, *inputs), jnp.float32)
        kernel = jax.ShapeDtypeStruct(self.weight_shape(inputs, n), jnp.float32)
        out = jax.eval_shape(self.apply, kernel, one).shape[1:]
        if min(out) < 1:
            raise ValueError(f"Conv(window={self.window}) does not fit into an image of shape {inputs}.")
        return out

    def weight_shape(self, inputs, n):
        return (self.window, self.window, inputs[-1], self.channels or n)

    def apply(self, w, x):
        return jax.lax.conv_general_dilated(
            x, w, (self.stride, self.stride), self.padding, dimension_numbers=_AXES
        )

    def patches(self, x):
        patches = jax.lax.conv_general_dilated_patches(
            x,
            (self.window, self.window),
            (self.stride, self.stride),
            self.padding,
            dimension_numbers=_AXES,
        )
        m, channels = x.shape[0], x.shape[-1]
        patches = patches.reshape(m, -1, channels, self.window**2)  # the channels come first there
        return jnp.swapaxes(patches, 2, 3).reshape(m, -1, self.window**2 * channels)

    def gram(self, x1, x2, pairs):
        one = self.patches(x1)
        other = one if x2 is None else self.patches(x2)
        a, b = ("a", "a") if x2 is None else ("a", "b")
        p, q = ("p", "q") if pairs else ("p", "p")
        out = "".join(dict.fromkeys(a + b + p + q))
        gram = jnp.einsum(f"{a}{p}k,{b}{q}k->{out}", one, other, precision="highest")
        lead = gram.shape[: 1 if x2 is None else 2]
        return gram.reshape(*lead, *(self.shape(x1.shape[1:], 1)[:-1] * (2 if pairs else 1)))

    def covariance(self, tables, at):
        return at.affine(tables, lambda table: self._mean(table, at.lead))

    def label(self, label):
        return window_labels(label, self.window, self.stride, self._pads(label.shape[1:]))

    def _pads(self, sides: Shape) -> list[tuple[int, int]]:
        """Zeros around an image."""
        return jax.lax.padtype_to_pads(sides, (self.window,) * 2, (self.stride,) * 2, self.padding)

    def _mean(self, table: Array, lead: int) -> Array:
        """The mean over q in the window of a table at (p·stride + q, p'·stride + q), one direction at a
        time."""
        pairs = table.ndim == lead + 4
        for direction, pad in enumerate(self._pads(table.shape[lead : lead + 2])):
            axes = [lead + direction, lead + direction + 2][: 2 if pairs else 1]
            padded = jnp.pad(table, [pad if axis in axes else (0, 0) for axis in range(table.ndim)])
            size = (padded.shape[axes[0]] - self.window) // self.stride + 1
            cuts = [slice(q, q + (size - 1) * self.stride + 1, self.stride) for q in range(self.window)]
            windows = [padded[_along(cut, axes, table.ndim)] for cut in cuts]
            table = sum(windows[1:], windows[0]) / self.window
        return table


def _along(cut: slice, axes: list[int], ndim: int) -> tuple[slice, ...]:
    return tuple(cut if axis in axes else slice(None) for axis in range(ndim))


recorded(Conv)
