"""Kernels of infinitely wide networks: the covariance Σ of f(0) (NNGP) and the tangent kernel Θ (NTK)."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._checks import count, finite, fits
from ..parametrisations import Parametrisation, named
from ..states.family import Family
from ..states.layers import Elementwise
from .infinite_duals import Dual, dual_of, resolved
from .infinite_labels import labels_of, moved_labels, traced_labels
from .infinite_limits import Limit, limit_of
from .infinite_tables import Tables, activations, begin, between, diagonal, first_weighted, paired, spread
from .tiles import is_traced

_TILE = 2**21  # bytes of one table: a few of them stay in the cache


class Kernels(NamedTuple):
    """Σ(x, x') = Cov(f(x), f(x')) at the start and Θ(x, x'), both (m1, m2), of one output of the network."""

    nngp: Any
    ntk: Any


def infinite_kernels(
    family: Family,
    x1: Any,
    x2: Any = None,
    *,
    parametrisation: str | Parametrisation = "ntk",
    rows: int | None = None,
) -> Kernels:
    """Σ and Θ of the networks `family.sample(key, n, parametrisation)` at n = ∞, between samples x1 (m1, …) and
    x2 (m2, …), or x1 itself; NumPy arrays in float64, whatever JAX is set to.

        Σ^1 = g²⟨x, x'⟩/d + σ_b²,   Σ^{l+1} = g² E φ(u)φ(v) + σ_b²,   (u, v) ~ N(0, Σ^l on {x, x'}),
        Θ^{l+1} = own^{l+1} + g² Θ^l ∘ E φ'(u)φ'(v),   own^{l+1} = g² E φ(u)φ(v) + 1 (with biases),

    and own^1 = ⟨x, x'⟩, times g²/d with input_scale="front" (+ 1). Outputs are independent: of several, this is the
    kernel of each. The parametrisation decides which parts are there: a layer whose part vanishes as n grows is
    left out (the first one under "standard"), Σ is 0 but for the output's bias where f(0) → 0 (mean field), and
    one that diverges is an error. Θ is K at the start. It stays so during training in the kernel regime alone,
    `parametrisation.regime()`; where features are learnt it moves (theory of two layers: K_ρ0).

    E φφ' is in closed form where one is known, else by a Hermite series as long as the variances ask for
    (smooth φ, 1e-12 of E φ²) or by quadrature cut at the kinks that φ states. Equal rows have correlation 1
    exactly; of rows that are 1e-8 apart relative to their length relu's Θ has 8 digits. `rows` is the side of a tile of
    samples (chosen if None); nothing but the results and some tiles is held."""
    limit = limit_of(family, parametrisation)
    one = _samples(family, "x1", x1)
    other = None if x2 is None else _samples(family, "x2", x2)
    m1, m2 = len(one), len(one if other is None else other)
    fits("The kernels", 16.0 * m1 * m2, "Take fewer samples at a time.")
    with jax.enable_x64(True):
        data = _prepared(limit, one if other is None else np.concatenate([one, other]), _rows(limit, rows))
        return _filled(limit, data, m1, None if other is None else m2, _rows(limit, rows))


@dataclass(frozen=True)
class InfiniteKernel:
    """k(x1, x2) → (m1, m2): Θ (`which="ntk"`) or Σ ("nngp") of `infinite_kernels` as a function that can be
    handed on and compared. `k.nngp` is the other one. Called with NumPy or JAX arrays it is in float64; inside jit,
    grad or vmap it has the dtype of what is traced, is not cut into tiles, and a smooth φ without closed form has
    a Hermite series of 128 terms that is not checked."""

    family: Family
    parametrisation: str | Parametrisation = "ntk"
    which: str = "ntk"

    def __post_init__(self):
        if self.which not in ("nngp", "ntk"):
            raise ValueError(f'which must be "ntk" or "nngp", got {self.which!r}.')
        limit = limit_of(self.family, self.parametrisation, nngp=self.which == "nngp")
        object.__setattr__(self, "parametrisation", named(self.parametrisation, limit.family.depth))

    @property
    def nngp(self) -> "InfiniteKernel":
        return InfiniteKernel(self.family, self.parametrisation, "nngp")

    @property
    def ntk(self) -> "InfiniteKernel":
        return InfiniteKernel(self.family, self.parametrisation, "ntk")

    @property
    def frozen(self) -> bool:
        """Whether Θ stays what it is during training."""
        assert isinstance(self.parametrisation, Parametrisation)
        return self.parametrisation.regime().verdict == "kernel"

    def __call__(self, x1: Any, x2: Any = None) -> Any:
        if is_traced(x1, x2):
            limit = limit_of(self.family, self.parametrisation, nngp=self.which == "nngp")
            return getattr(_traced(limit, x1, x1 if x2 is None else x2), self.which)
        return getattr(
            infinite_kernels(self.family, x1, x2, parametrisation=self.parametrisation), self.which
        )


def _samples(family: Family, name: str, x: Any) -> np.ndarray:
    values = finite(name, x)
    return values.astype(np.float64).reshape(_shape(family, name, values.shape))


def _shape(family: Family, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) < 2 or shape[0] == 0 or math.prod(shape[1:]) != family.d:
        raise ValueError(f"{name} must have one or more rows of shape {family.inputs}, got shape {shape}.")
    return (shape[0], *family.inputs)


# --- samples one by one: the variances of every layer, and what φ's dual needs of them ------------


class _Data(NamedTuple):
    """Samples, and for every φ the labels (1, m, positions…) and the table (k, m, positions…) of its dual."""

    x: Any
    labels: tuple[Any, ...]
    tables: tuple[Any, ...]
    duals: tuple[Dual, ...]


def _rows(limit: Limit, rows: int | None) -> int:
    """Samples on the side of a tile."""
    if rows is not None:
        return count("rows", rows)
    family, shapes = limit.family, limit.family.shapes(1)
    first = first_weighted(family)
    sizes = [
        math.prod(shape[:-1]) ** (2 if paired(family, i) else 1)
        for i, shape in enumerate(shapes[1:])
        if i >= first
    ]
    return max(1, math.isqrt(_TILE // (8 * max(sizes))))


def _prepared(limit: Limit, x: np.ndarray, rows: int) -> _Data:
    family, at = limit.family, activations(limit.family)
    labels = _labels(limit, x)
    asked = [dual_of(family.layers[i].activation) for i in at]  # type: ignore[union-attr]
    chunk = rows * rows  # single samples: as many as pairs in a tile
    variances: list[list[np.ndarray]] = [[] for _ in at]
    duals: list[list[Dual]] = [[] for _ in at]
    for i in range(0, len(x), chunk):
        sigma = _begun(limit, jnp.asarray(x[i : i + chunk]))
        for k, layer in enumerate(at):
            q = np.asarray(_variances(sigma))
            variances[k].append(q)
            duals[k].append(resolved(asked[k], q))
            sigma = _stepped(limit, layer, duals[k][-1], sigma, labels[k][i : i + chunk])
    found = [max(made, key=lambda dual: getattr(dual, "order", 0)) for made in duals]
    # equal labels, equal variances: sums of equal numbers may be rounded in two ways
    q = [np.concatenate(parts).ravel()[label] for parts, label in zip(variances, labels, strict=True)]
    tables = tuple(np.asarray(_table(dual, jnp.asarray(v))) for dual, v in zip(found, q, strict=True))
    return _Data(x, tuple(label[None] for label in labels), tables, tuple(found))


def _labels(limit: Limit, x: np.ndarray) -> list[np.ndarray]:
    """Of what enters each φ: (m, positions…)."""
    family, first, found = limit.family, first_weighted(limit.family), []
    label = _first_labels(limit, x)
    for layer in family.layers[first + 1 :]:
        if isinstance(layer, Elementwise):
            found.append(label)
        else:
            label = moved_labels(layer, label)
    return found


def _first_labels(limit: Limit, x: np.ndarray) -> np.ndarray:
    family, first = limit.family, first_weighted(limit.family)
    values: Any = x
    for layer in family.layers[:first]:
        values = layer.apply(values)  # type: ignore[call-arg, arg-type]
    shape = family.shapes(1)[first + 1][:-1]
    patches = np.asarray(family.layers[first].patches(jnp.asarray(values)))  # type: ignore[union-attr]
    return labels_of(patches).reshape(len(x), *shape)


@partial(jax.jit, static_argnums=0)
def _begun(limit: Limit, x: Array) -> Array:
    return begin(limit, x, None).sigma


@jax.jit
def _variances(sigma: Array) -> Array:
    return diagonal(sigma) if sigma.ndim == 5 else sigma


@partial(jax.jit, static_argnums=(0, 1, 2))
def _stepped(limit: Limit, layer: int, dual: Dual, sigma: Array, label: Array) -> Array:
    """Σ of single samples behind φ and what follows it."""
    table = dual.table(_variances(sigma))
    moved = _activated(dual, label[None], table, label[None], table, Tables(sigma, sigma), 1)
    return between(limit, layer + 1, moved, 1).sigma


@partial(jax.jit, static_argnums=0)
def _table(dual: Dual, q: Array) -> Array:
    return dual.table(q)


# --- pairs of samples ---------------------------------------------------------------------------


def _activated(dual: Dual, label1, table1, label2, table2, tables: Tables, lead: int) -> Tables:
    """Σ ← E φ(u)φ(v), Θ ← Θ ∘ E φ'(u)φ'(v)."""
    axes = tables.sigma.ndim
    label1 = jnp.where(table1[:1] > 0, label1, -1)  # of variance 0 there is no correlation
    one, other = spread(table1, axes, lead, False), spread(table2, axes, lead, True)
    same = spread(label1, axes, lead, False)[0] == spread(label2, axes, lead, True)[0]
    off = jnp.where(same, one[0] - tables.sigma, 0.0)
    sigma = tables.sigma + jax.lax.stop_gradient(off)
    value, slope = dual.pair(one, other, sigma, same)
    return Tables(value, tables.theta * slope)


@partial(jax.jit, static_argnums=0)
def _first(limit: Limit, x1: Array, x2: Array) -> Tables:
    return begin(limit, x1, x2)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _next(limit: Limit, layer: int, dual: Dual, sides: Any, tables: Tables) -> Tables:
    return between(limit, layer + 1, _activated(dual, *sides, tables, 2), 2)


def _pairs(limit: Limit, one: _Data, other: _Data) -> Kernels:
    """A program for each layer: of one for all, XLA makes loops that compute a layer anew for each use."""
    tables = _first(limit, one.x, other.x)
    for k, layer in enumerate(activations(limit.family)):
        sides = one.labels[k], one.tables[k], other.labels[k], other.tables[k]
        tables = _next(limit, layer, one.duals[k], sides, tables)
    return Kernels(*tables)


def _filled(limit: Limit, data: _Data, m1: int, m2: int | None, rows: int) -> Kernels:
    """All tiles, or those on and above the diagonal where there is no x2; one in each thread, as XLA runs
    elementwise loops of this size in one."""
    columns = m1 if m2 is None else m2
    out = Kernels(np.empty((m1, columns)), np.empty((m1, columns)))
    tall, wide = _even(m1, rows), _even(columns, rows)
    left = {i: _part(data, i, tall, m1) for i in range(0, m1, tall)}
    right = left if m2 is None else {j: _part(data, m1 + j, wide, m1 + m2) for j in range(0, m2, wide)}

    def fill(corner: tuple[int, int]) -> None:
        i, j = corner
        with jax.enable_x64(True):  # a setting of the thread
            found = _pairs(limit, left[i], right[j])
        for kernel, tile in zip(out, found, strict=True):
            _write(kernel, np.asarray(tile), i, j, m2 is None)

    with ThreadPoolExecutor(_cores()) as pool:
        for _ in pool.map(fill, [(i, j) for i in left for j in right if m2 is not None or j >= i]):
            pass  # raises what a tile raised
    return out


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _part(data: _Data, start: int, size: int, end: int) -> _Data:
    """So many samples, the last one again and again beyond the end: all tiles have one shape."""
    at = np.minimum(np.arange(start, start + size), end - 1)
    cut = lambda values: tuple(jnp.asarray(v[:, at]) for v in values)
    return _Data(jnp.asarray(data.x[at]), cut(data.labels), cut(data.tables), data.duals)


def _write(kernel: np.ndarray, tile: np.ndarray, i: int, j: int, symmetric: bool) -> None:
    block = kernel[i : i + tile.shape[0], j : j + tile.shape[1]]
    block[...] = tile[: block.shape[0], : block.shape[1]]
    if symmetric and i != j:
        kernel[j : j + block.shape[1], i : i + block.shape[0]] = block.T
    if symmetric and i == j:
        for k in range(1, len(block)):
            block[k, :k] = block[:k, k]


def _even(m: int, rows: int) -> int:
    """The side of tiles of one shape that cover m."""
    return -(-m // -(-m // rows))


def _traced(limit: Limit, x1: Array, x2: Array) -> Kernels:
    """The same inside a transformation, all pairs at once."""
    family, at = limit.family, activations(limit.family)
    dtype = jnp.result_type(x1, x2, jnp.float32)
    one, other = (
        jnp.asarray(x, dtype).reshape(_shape(family, name, x.shape)) for name, x in (("x1", x1), ("x2", x2))
    )
    x, m1 = jnp.concatenate([one, other]), len(one)
    duals = tuple(dual_of(family.layers[i].activation) for i in at)  # type: ignore[union-attr]
    sigma, labels, tables = _begun(limit, x), [], []
    for dual, layer in zip(duals, at, strict=True):
        q = _variances(sigma)
        label = traced_labels(jax.lax.stop_gradient(x), q.shape[1:])
        labels.append(label[None])
        tables.append(dual.table(q))
        sigma = _stepped(limit, layer, dual, sigma, label)
    cut = lambda part: _Data(
        x[part], tuple(v[:, part] for v in labels), tuple(v[:, part] for v in tables), duals
    )
    return _pairs(limit, cut(slice(None, m1)), cut(slice(m1, None)))
