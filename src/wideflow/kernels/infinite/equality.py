"""Which samples, or patches of images, are equal to the last bit.

Rounding makes the correlation of x with itself 1 − 1e-16, and relu's angle of that is 1e-8. Equal things have
equal labels, and a pair with equal labels has correlation 1."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ...states.layers import AveragePool, Conv, Dense, Elementwise
from .recursion import pads


def labels_of(things: np.ndarray) -> np.ndarray:
    """For things (…, k) an integer (…): the flat index of the first one that is equal."""
    rows = things.reshape(-1, things.shape[-1])
    rows = rows + 0.0 if rows.dtype.kind == "f" else np.ascontiguousarray(rows)  # −0 is 0
    first: dict[bytes, int] = {}
    found = (first.setdefault(row.tobytes(), i) for i, row in enumerate(rows))
    return np.fromiter(found, np.int64, len(rows)).reshape(things.shape[:-1])


def moved_labels(layer: Any, label: np.ndarray) -> np.ndarray:
    """Labels (m, positions…) behind a layer: equal where all that enters is."""
    if isinstance(layer, Dense | Elementwise):
        return label
    if not isinstance(layer, Conv | AveragePool):
        return labels_of(label.reshape(len(label), -1))
    stride = layer.stride if isinstance(layer, Conv) else layer.window
    around = [(0, 0), *pads(layer, label.shape[1:])]
    padded = np.pad(label, around, constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (layer.window,) * 2, axis=(1, 2))
    windows = windows[:, ::stride, ::stride]
    return labels_of(windows.reshape(*windows.shape[:3], -1))


def traced_labels(x: Array, shape: tuple[int, ...]) -> Array:
    """Inside a transformation: equal whole samples, at the same position, (m, *shape)."""
    flat = x.reshape(len(x), -1)
    first = jnp.argmax(jnp.all(flat[:, None] == flat[None], axis=-1), axis=1)
    size = int(np.prod(shape))
    return first.reshape(-1, *[1] * len(shape)) * size + jnp.arange(size).reshape(shape)
