"""The tangent kernel of a network, layer by layer: K = Σ_l (A_l A_lᵀ) ∘ (B_l B_lᵀ).

A_l is what enters layer l, times its multiplier and the root of its rate; B_l = ∂f/∂h_l is what comes back.
No gradient of a weight is formed where that would be larger than its two factors."""

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from ..._checks import count, fits, nearest
from ..._shown import shown
from ...states.network import Network
from ..function import Batch, samples
from ..tracing import is_traced
from .layerwise_traced import tile_size, traced_kernels
from .ntk import FORMS
from .plan import even
from .signals import Tile, bare, blocks, diagonal, sample_bytes, signals, triangle

BUDGET = 2**28  # bytes: 256 MiB
_ALIGNMENT = 64


def layerwise_ntk(
    network: Network,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    form: str = "full",
    memory: int | None = None,
) -> Array:
    """K(x, x') = Σ_l rate_l ⟨∂f(x)/∂W_l, ∂f(x')/∂W_l⟩ between samples x1 (m1, …) and x2 (m2, …), or x1
    itself, with the rates n^−c_l of the network. α cancels (F = αf moves at rate/α²); a centre does not move.

    - form "full": (m1, m2, O, O), or (m1, m2) for one output;
      "trace": (m1, m2), the *mean* over outputs of K_oo;
      "diagonal": K(x_i, x_i), (m, O, O), or (m,) for one output.
    - memory: bytes beside the kernel, 256 MiB by default: it sets how many samples are taken at once.

    It follows the dtype of the network. Other weights, rates and multipliers do not recompile. Inside jit,
    grad and vmap it is planned from shapes alone, all of a symmetric kernel is computed, and only shapes are
    checked."""
    return _kernels(network, x1, x2, form, memory, per_layer=False)[0]


def layerwise_kernels(
    network: Network,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    form: str = "full",
    memory: int | None = None,
) -> tuple[Array, ...]:
    """The terms of `layerwise_ntk`, one for each weight layer (with its biases): their sum is the kernel."""
    return _kernels(network, x1, x2, form, memory, per_layer=True)


def _kernels(
    network: Network, x1: ArrayLike, x2: ArrayLike | None, form: str, memory: int | None, per_layer: bool
) -> tuple[Array, ...]:
    if form not in FORMS:
        raise ValueError(f"form must be one of {FORMS}, got {shown(form)}.{nearest(form, FORMS)}")
    if form == "diagonal" and x2 is not None:
        raise ValueError("form='diagonal' is K(x_i, x_i) of x1 alone, got an x2. Try form='full' or no x2.")
    network = bare(network)
    budget = BUDGET if memory is None else count("memory", memory)
    rows = _samples("x1", x1, network)
    columns = None if x2 is None else _samples("x2", x2, network)
    copies = len(network.parts) if per_layer else 1
    o = 1 if form == "trace" else network.outputs
    m2 = 1 if form == "diagonal" else len(rows if columns is None else columns)
    entries = copies * len(rows) * m2 * o * o
    hint = "Try form='trace', fewer samples at a time, or a wf.kernels.KernelOperator, which holds no kernel."
    fits("The kernel", 1.5 * entries * network.dtype.itemsize, hint)
    if isinstance(rows, np.ndarray) and (columns is None or isinstance(columns, np.ndarray)):
        kernels = _on_host(network, rows, columns, form, budget, copies)
    else:
        kernels = traced_kernels(network, rows, columns, form, budget, per_layer)
    if form != "trace":
        return tuple(kernel[..., 0, 0] if network.outputs == 1 else kernel for kernel in kernels)
    return tuple(kernels)


def _on_host(
    network: Network, x1: np.ndarray, x2: np.ndarray | None, form: str, budget: int, copies: int
) -> list[Array]:
    """Tile by tile into arrays of the host, and checked."""
    if form == "diagonal":
        kernels = _diagonal(network, x1, budget, copies)
    else:
        kernels = _matrix(network, x1, x2, form == "trace", budget, copies)
    _check_finite(kernels, form, x2 is None)
    return [_handed_over(kernel) for kernel in kernels]


def _samples(name: str, x: ArrayLike, network: Network) -> Batch:
    """Rows of x in the dtype of the network, of the shape that it takes; on the host unless traced."""
    rows, family = samples(name, x), network.family
    if rows.ndim < 2 or math.prod(rows.shape[1:]) != family.d:
        raise ValueError(f"{name} must have rows of shape {family.inputs}, got {rows.shape}.")
    rows = jnp.asarray(rows) if is_traced(network) else rows
    rows = rows if rows.dtype == network.dtype else rows.astype(network.dtype)
    return rows.reshape(len(rows), *family.inputs)


def _tiles(x: np.ndarray, size: int) -> Iterator[tuple[int, Array]]:
    """Rows in tiles of one size; the last is filled up with copies of its last row."""
    for i in range(0, len(x), size):
        rows = x[i : i + size]
        padding = [(0, size - len(rows))] + [(0, 0)] * (x.ndim - 1)
        yield i, jnp.asarray(np.pad(rows, padding, mode="edge") if len(rows) < size else rows)


def _matrix(
    network: Network, x1: np.ndarray, x2: np.ndarray | None, trace: bool, budget: int, copies: int
) -> list[np.ndarray]:
    """Pairs of tiles; without x2 those on and above the diagonal, and their mirrors."""
    o = 1 if trace else network.outputs
    columns = x1 if x2 is None else x2
    size = tile_size(network, max(len(x1), len(columns)), copies * o * o, budget)
    shape = (len(x1), len(columns)) if trace else (len(x1), len(columns), o, o)
    out = [_aligned(shape, network.dtype) for _ in range(copies)]
    for i, rows in _tiles(x1, min(size, len(x1))):
        first = signals(network, rows)
        if x2 is None:
            _write_triangle(out, first, i, trace, copies > 1)
        for j, others in _tiles(columns, min(size, len(columns))):
            if x2 is not None or j > i:
                second = signals(network, others)
                for kernel, tile in zip(out, blocks(first, second, trace, copies > 1), strict=True):
                    _write(kernel, np.asarray(tile), i, j, mirror=x2 is None)
    return out


def _write_triangle(out: list[np.ndarray], first: Tile, i: int, trace: bool, per_layer: bool) -> None:
    for row, column, tiles in triangle(first, trace, per_layer):
        for kernel, tile in zip(out, tiles, strict=True):
            _write(kernel, np.asarray(tile), i + row, i + column, mirror=True)


def _write(kernel: np.ndarray, tile: np.ndarray, i: int, j: int, mirror: bool) -> None:
    """A tile at (i, j) without the copies that filled it up, and K(x', x) = K(x, x')ᵀ at (j, i)."""
    part = kernel[i : i + tile.shape[0], j : j + tile.shape[1]]
    tile = tile.reshape(*tile.shape[:2], *kernel.shape[2:])[: part.shape[0], : part.shape[1]]
    part[...] = tile
    if mirror:
        rest = max(i + len(part) - j, 0)  # a square on the diagonal holds its own mirror
        turned = (1, 0, 3, 2) if tile.ndim == 4 else (1, 0)
        kernel[j + rest : j + part.shape[1], i : i + len(part)] = tile[:, rest:].transpose(turned)


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array aligned as JAX aligns its own, so that JAX can take it over."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    first = -raw.ctypes.data % _ALIGNMENT
    return raw[first : first + size].view(dtype).reshape(shape)


def _handed_over(kernel: np.ndarray) -> Array:
    """As a JAX array; without a copy where its memory is that of the host."""
    shared = jax.default_backend() == "cpu" and kernel.flags.c_contiguous
    return jnp.from_dlpack(kernel) if shared else jnp.asarray(kernel)


def _diagonal(network: Network, x: np.ndarray, budget: int, copies: int) -> list[np.ndarray]:
    o = network.outputs
    size = even(len(x), budget / (2 * sample_bytes(network)))
    out = [np.empty((len(x), o, o), network.dtype) for _ in range(copies)]
    for i, rows in _tiles(x, size):
        for kernel, tile in zip(out, diagonal(signals(network, rows), copies > 1), strict=True):
            part = kernel[i : i + size]
            part[...] = np.asarray(tile)[: len(part)]
    return out


def _check_finite(kernels: list[np.ndarray], form: str, symmetric: bool) -> None:
    """For a symmetric kernel the diagonal is enough, as |K_ij|² ≤ K_ii K_jj."""
    for kernel in kernels:
        if symmetric and form != "diagonal":
            kernel = kernel[np.arange(len(kernel)), np.arange(len(kernel))]
        if np.isfinite(kernel).all():
            continue
        finite = np.isfinite(kernel).reshape(*kernel.shape[: 1 if symmetric else 2], -1).all(-1)
        # A sample at fault spoils its whole row or column.
        rows = ~finite if symmetric else ~finite.any(1)
        name, bad = ("x1", rows) if rows.any() else ("x2", ~finite.any(0))
        raise ValueError(
            f"The kernel must be finite, but for {int(bad.sum())} of {len(bad)} samples {name} it is not; "
            f"the first is {name}[{int(np.argmax(bad))}]. Are the weights finite and not too large?"
        )
