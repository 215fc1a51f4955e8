"""The layer-by-layer kernel as one program, for jit, grad and vmap: all is planned from shapes."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...states.network import Network
from ..function import Batch
from .plan import even
from .signals import blocks, diagonal, sample_bytes, signals


def tile_size(network: Network, m: int, block: int, budget: int) -> int:
    """Samples at a time: signals of two tiles and the kernel between them, twice, within the budget."""
    one, square = 2.0 * sample_bytes(network), 2.0 * block * network.dtype.itemsize
    return even(m, (math.sqrt(one**2 + 4 * square * budget) - one) / (2 * square))


def traced_kernels(
    network: Network, x1: Batch, x2: Batch | None, form: str, budget: int, per_layer: bool
) -> list[Array]:
    """The kernel or, `per_layer`, its terms: (m1, m2, O, O), (m1, m2) of the trace, (m, O, O) diagonal."""
    if form == "diagonal":
        tiles = _tiles(x1, even(len(x1), budget / (2 * sample_bytes(network))))
        stacks = jax.lax.map(lambda rows: diagonal(signals(network, rows), per_layer), tiles)
        return [stack.reshape(-1, *stack.shape[2:])[: len(x1)] for stack in stacks]
    trace, columns = form == "trace", x1 if x2 is None else x2
    copies, o = len(network.parts) if per_layer else 1, 1 if trace else network.outputs
    size = tile_size(network, max(len(x1), len(columns)), copies * o * o, budget)
    left, right = (_tiles(x, min(size, len(x))) for x in (x1, columns))

    def strip(rows: Array) -> list[Array]:
        first = signals(network, rows)
        return jax.lax.map(lambda others: blocks(first, signals(network, others), trace, per_layer), right)

    return [_joined(stack, len(x1), len(columns), trace) for stack in jax.lax.map(strip, left)]


def _tiles(x: Batch, size: int) -> Array:
    """Rows in tiles (n, size, …), the last filled up with copies of the last row."""
    last = np.minimum(np.arange(-(-len(x) // size) * size), len(x) - 1)
    return jnp.asarray(x[last]).reshape(-1, size, *x.shape[1:])


def _joined(stack: Array, m1: int, m2: int, trace: bool) -> Array:
    """Tiles (strips, tiles, rows, columns, O, O) as one kernel."""
    kernel = jnp.moveaxis(stack, 1, 2)
    kernel = kernel.reshape(-1, kernel.shape[2] * kernel.shape[3], *kernel.shape[4:])[:m1, :m2]
    return kernel[..., 0, 0] if trace else kernel
