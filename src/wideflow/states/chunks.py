"""Cutting data into chunks of rows that stay in cache."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array


def chunk_rows(n: int, d: int, dtype: Any) -> int:
    """Rows of data to take at once against n neurons in R^d."""
    bytes_per_row = n * jnp.dtype(dtype).itemsize
    rows = (8 if d <= 256 else 32) * 2**20 // bytes_per_row
    return int(min(max(rows // 64 * 64, 16), 2048))


def chunked(array: Array, rows: int) -> Array:
    """Rows of `array` in chunks (k, rows, …), padded with zeros."""
    m = array.shape[0]
    k = -(-m // rows)
    padded = jnp.pad(array, [(0, k * rows - m)] + [(0, 0)] * (array.ndim - 1))
    return padded.reshape(k, rows, *array.shape[1:])


def map_rows(fn: Callable[[Array], Array], x: Array, rows: int) -> Array:
    """fn(x), a function of rows, one chunk at a time."""
    if x.shape[0] <= rows:
        return fn(x)
    out = jax.lax.map(fn, chunked(x, rows))
    return out.reshape(-1, *out.shape[2:])[: x.shape[0]]
