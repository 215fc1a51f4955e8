"""Cutting data into chunks of rows, and neurons into blocks, that stay in cache."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from ..problems.nodes import Nodes

# Measured on two cores with 2 MB of cache each: a hidden layer of about 8 MB keeps both matrix
# products busy; long rows need more rows per chunk, to pay for adding up an (n, d) velocity.
_HIDDEN, _MOST_HIDDEN = 2**23, 2**26
_ROWS, _LONG_ROWS, _MOST_ROWS = 64, 512, 1024
NEURONS = 8192  # a block of neurons, where even _ROWS rows of all of them are too much


def chunk_rows(m: int, n: int, d: int, dtype: DTypeLike) -> int:
    """Rows of m to take at once against n neurons in R^d, in equal chunks."""
    row = n * jnp.dtype(dtype).itemsize
    least = _ROWS if d < 512 else _LONG_ROWS
    rows = min(max(_HIDDEN // row, least), _MOST_ROWS, max(_MOST_HIDDEN // row, 8))
    chunks = max(1, math.ceil(m / rows))
    return min(m, 8 * math.ceil(m / chunks / 8))


def is_wide(n: int, dtype: DTypeLike) -> bool:
    """Whether this many neurons must be taken in blocks."""
    return n * _ROWS * jnp.dtype(dtype).itemsize > _MOST_HIDDEN


def chunked(array: Array, rows: int, pad: str = "edge") -> Array:
    """Rows of `array` in chunks (k, rows, …), padded with copies of the last row, at which
    everything is defined (at x = 0 a neuron need not be), or with zeros by pad="constant"."""
    m = array.shape[0]
    k = -(-m // rows)
    padded = jnp.pad(array, [(0, k * rows - m)] + [(0, 0)] * (array.ndim - 1), mode=pad)
    return padded.reshape(k, rows, *array.shape[1:])


def in_chunks(nodes: Nodes, rows: int) -> Nodes:
    """Weighted data in chunks, padded with rows of weight 0."""
    weights = chunked(nodes.weights, rows, pad="constant")
    chunks = jax.tree.map(lambda v: chunked(v, rows), nodes)
    return eqx.tree_at(lambda n: n.weights, chunks, weights)


def map_rows(fn: Callable[[Array], Array], x: Array, rows: int) -> Array:
    """fn(x), a function of rows, one chunk at a time."""
    if x.shape[0] <= rows:
        return fn(x)
    out = jax.lax.map(fn, chunked(x, rows))
    return out.reshape(-1, *out.shape[2:])[: x.shape[0]]


def in_blocks(part: Array, size: int) -> Array:
    """Neurons (…, n) in blocks (k, …, size), padded with copies of the last neuron, at which
    everything is defined (at θ = 0 a derivative need not be)."""
    n = part.shape[-1]
    k = -(-n // size)
    padded = jnp.pad(part, [(0, 0)] * (part.ndim - 1) + [(0, k * size - n)], mode="edge")
    return jnp.moveaxis(padded.reshape(*part.shape[:-1], k, size), -2, 0)


def joined(blocks: Array, n: int) -> Array:
    """The inverse of `in_blocks`: (k, …, size) to (…, n)."""
    rows = jnp.moveaxis(blocks, 0, -2)
    return rows.reshape(*rows.shape[:-2], -1)[..., :n]
