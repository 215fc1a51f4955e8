"""The Gram matrix of a kernel, filled and checked in tiles; sums of kernels over rows of data."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..._checks import finite, fits, positive
from ..._typing import DType

Kernel = Callable[..., PyTree]  # K(x, x') of rows, an array

TILE = 1024  # rows and columns: 8 MB of values; larger tiles are no faster, smaller ones pay for the calls
_SLACK = 1e4  # units of rounding by which K may miss Kᵀ and |K_ij| exceed √(K_ii K_jj): long sums differ so


def tile_rows(memory: float | None) -> int:
    """Rows of a tile whose values take at most `memory` bytes."""
    return TILE if memory is None else max(1, math.isqrt(int(positive("memory", memory) / 8)))


def gram_matrix(kernel: Kernel, x: np.ndarray, rows: int) -> tuple[np.ndarray, float]:
    """K (m, m) of K_ij = K(x_i, x_j) in float64 and the unit of rounding of what the kernel returned.

    Only tiles on and below the diagonal are asked for, all of one shape (a kernel is compiled once)."""
    m, rows = len(x), min(rows, len(x))
    room(m, rows)
    out = np.empty((m, m), order="F")
    unit = 0.0
    for i in range(0, m, rows):
        for j in range(0, i + 1, rows):
            tile, rounding = _tile(kernel, x, x, i, j, rows)
            out[i : i + rows, j : j + rows] = tile
            if j < i:
                out[j : j + rows, i : i + rows] = tile.T
            unit = max(unit, rounding)
    return _symmetric("kernel", out, unit, rows), unit


def given_gram(gram: ArrayLike, m: int, rows: int) -> tuple[np.ndarray, float]:
    """A copy of a Gram matrix (m, m) in float64 and its unit of rounding."""
    values = finite("gram", gram)
    if values.shape != (m, m):
        raise ValueError(f"gram must be the matrix K(x_i, x_j) of shape {(m, m)}, got shape {values.shape}.")
    room(m, rows)
    unit = _unit(values.dtype)
    return _symmetric("gram", np.array(values, np.float64, order="F"), unit, rows), unit


def kernel_sum(kernel: Kernel, x: np.ndarray, centres: np.ndarray, c: np.ndarray, rows: int) -> np.ndarray:
    """Σ_i K(x, x_i) c_i, (k,) or (k, O) on k rows x, one tile at a time."""
    out = np.zeros((len(x), *c.shape[1:]))
    for i in range(0, len(x), rows):
        for j in range(0, len(centres), rows):
            tile, _ = _tile(kernel, x, centres, i, j, rows)
            out[i : i + rows] += tile @ c[j : j + rows]
    return out


def room(m: int, rows: int, matrices: int = 1) -> None:
    """Refuse what does not fit: `matrices` m × m matrices, and a tile with the kernel's own working space."""
    fits(
        f"A Gram matrix of {m} rows",
        8.0 * (matrices * m * m + 4 * min(rows, m) ** 2),
        "Take fewer rows, or a solver that only multiplies by the kernel.",
    )


def _tile(
    kernel: Kernel, left: np.ndarray, right: np.ndarray, i: int, j: int, rows: int
) -> tuple[np.ndarray, float]:
    """The kernel on a block of rows of each side, and its unit of rounding."""
    one, other = _block(left, i, rows), _block(right, j, rows)
    with jax.enable_x64(True):
        values = np.asarray(kernel(jnp.asarray(one), jnp.asarray(other)))
    if values.shape != (len(one), len(other)) or values.dtype.kind not in "fiub":
        raise ValueError(
            f"The kernel must return real numbers of shape {(len(one), len(other))} for {len(one)} and "
            f"{len(other)} rows, got shape {values.shape} and dtype {values.dtype}."
        )
    unit = _unit(values.dtype)
    values = values[: len(left) - i, : len(right) - j].astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        a, b = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"The kernel must be finite, but K(x_{i + a}, x'_{j + b}) = {values[a, b]} (rows {i + a} and "
            f"{j + b} of its two arguments). Look at those rows, or at the kernel's formula there."
        )
    return values, unit


def _block(x: np.ndarray, i: int, rows: int) -> np.ndarray:
    """Rows i to i + rows; where there is more than one block, the last is padded with its last row."""
    block = x[i : i + rows]
    short = rows - len(block)
    if len(x) <= rows or not short:
        return block
    return np.concatenate([block, np.repeat(block[-1:], short, axis=0)])


def _unit(dtype: DType) -> float:
    return float(np.finfo(dtype if np.dtype(dtype).kind == "f" else np.float64).eps)


def _symmetric(name: str, gram: np.ndarray, unit: float, rows: int) -> np.ndarray:
    """K = `gram`, if K = Kᵀ and |K_ij| ≤ √(K_ii K_jj) to rounding, as for every kernel."""
    diagonal = np.diag(gram).copy()
    if (diagonal < 0).any():
        i = int(np.argmin(diagonal))
        raise ValueError(
            f"The {name} is not positive semi-definite: K(x_{i}, x_{i}) = {diagonal[i]:.6g} < 0."
        )
    root, least = np.sqrt(diagonal), unit * diagonal.max()
    for i in range(0, len(gram), rows):
        for j in range(0, i + 1, rows):
            tile, mirror = gram[i : i + rows, j : j + rows], gram[j : j + rows, i : i + rows].T
            scale = root[i : i + rows, None] * root[None, j : j + rows]
            slack = _SLACK * unit * scale + least
            if (apart := np.abs(tile - mirror) > slack).any():
                a, b = np.argwhere(apart)[0] + (i, j)
                raise ValueError(
                    f"The {name} is not symmetric: K(x_{a}, x_{b}) = {gram[a, b]:.17g} but K(x_{b}, x_{a}) = "
                    f"{gram[b, a]:.17g}. Try the mean of both."
                )
            if (above := np.abs(tile) > scale + slack).any():
                a, b = np.argwhere(above)[0] + (i, j)
                raise ValueError(
                    f"The {name} is not positive semi-definite: |K(x_{a}, x_{b})| = {abs(gram[a, b]):.17g} "
                    f"is more than √(K(x_{a}, x_{a}) K(x_{b}, x_{b})) = {root[a] * root[b]:.17g}."
                )
    return gram


def traced_sum(kernel: Kernel, x: ArrayLike, centres: ArrayLike, c: ArrayLike) -> Array:
    """Σ_i K(x, x_i) c_i inside a transformation of JAX, in the dtype of x."""
    dtype = jnp.result_type(x, jnp.float32)
    return kernel(jnp.asarray(x, dtype), jnp.asarray(centres, dtype)) @ jnp.asarray(c, dtype)
