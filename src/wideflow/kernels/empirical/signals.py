"""What enters each layer of a network and what comes back to it, and kernels made of both. Compiled."""

import math
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..._tracing import jit
from ...parametrisations import Parametrisation
from ...states.family import Family
from ...states.network import Network

_CHUNK = 2**25  # bytes of gradients of weights to hold at once
# Of a symmetric kernel halving covers (1 + 2^−k)/2; products with fewer rows are slow, and each is compiled.
_LEAST = 32


class Signals(NamedTuple):
    """Of one layer with P positions (1 if dense): `a` (m, P, fan-in), what enters it, times multiplier and
    √rate, with the bias as a constant input; `b` (m, O, P, units) = ∂f_o/∂h, or None for I, the output's."""

    a: Array
    b: PyTree


Tile = tuple[Signals, ...]


def sample_bytes(network: Network) -> int:
    """Bytes of the signals of one sample."""
    return _numbers(network.family, network.n) * network.dtype.itemsize


@lru_cache(maxsize=256)
def _numbers(family: Family, n: int) -> int:
    total = 0
    for (_, _, outputs), weights in zip(family.sites(n), family.weight_shapes(n), strict=True):
        positions = math.prod(outputs[:-1])
        total += positions * (math.prod(weights[:-1]) + family.outputs * weights[-1])
    return total


def bare(network: Network) -> Network:
    """The network without what its kernel does not depend on, centre and names, which would recompile."""
    zeros = (0.0,) * len(network.parts)
    unnamed = jax.tree.structure(Parametrisation(zeros, zeros, zeros))
    exponents = jax.tree.unflatten(unnamed, jax.tree.leaves(network.parametrisation))
    parts = lambda n: (n.parametrisation, n.centre)
    return eqx.tree_at(parts, network, (exponents, None), is_leaf=lambda v: v is None)


@jit
def signals(network: Network, x: Array) -> Tile:
    """Of every weight layer, on samples x."""
    sites = network.family.sites(network.n)
    inputs, back = jax.vmap(lambda row: _one(network, row))(x)
    tile = []
    for i, (site, entered) in enumerate(zip(sites, inputs, strict=True)):
        a = _entering(network, i, site.layer.patches(entered[:, 0]))
        b = back[i].reshape(x.shape[0], network.outputs, a.shape[1], -1)
        tile.append(Signals(a, None if i + 1 == len(sites) else b))
    return tuple(tile)


def _one(network: Network, x: Array) -> tuple[PyTree, PyTree]:
    """The inputs of all layers, and ∂f_o/∂h_l of all outputs o, at one sample. Under vmap over samples the
    rows of all outputs lie side by side: each layer is one product of (m·O, units) with its weights."""
    features = jax.eval_shape(lambda: network.trace(x[None])).features
    nudges = [jnp.zeros(h.shape, h.dtype) for h in features]

    def run(nudges: PyTree) -> tuple[Array, PyTree]:
        trace = network.trace(x[None], nudges)
        return trace.f[0], trace.inputs

    f, vjp, inputs = jax.vjp(run, nudges, has_aux=True)
    return inputs, jax.vmap(lambda unit: vjp(unit)[0])(jnp.eye(f.size, dtype=f.dtype))


def _entering(network: Network, i: int, patches: Array) -> Array:
    rates, n = network.rates()[i], network.n
    a = patches * (network.multipliers()[i] * rates.w**0.5)
    if network.parts[i].b is None:
        return a
    constant = network.parametrisation.bias_multiplier(i, n) * rates.b**0.5
    return jnp.concatenate([a, jnp.full((*a.shape[:2], 1), constant, a.dtype)], axis=2)


# --- kernels of them -------------------------------------------------------------------------------

Corner = tuple[slice, slice]


@jit
def blocks(first: Tile, second: Tile, trace: bool, per_layer: bool) -> list[Float[Array, "m k O O"]]:
    """The kernel between two tiles of samples, or its terms; of `trace` the mean over outputs of K_oo."""
    one, other = (_as_one_output(tile) if trace else tile for tile in (first, second))
    return _corners(one, other, [(slice(None), slice(None))], per_layer)[0]


def _as_one_output(tile: Tile) -> Tile:
    """The outputs as one with O times the units, b/√O: Σ_o B_o B_oᵀ/O is one product."""
    return tuple(Signals(s.a, None if s.b is None else _joined(s.b)) for s in tile)


def _joined(b: Float[Array, "m O P u"]) -> Float[Array, "m 1 P Ou"]:
    m, o, p, u = b.shape
    return (b / math.sqrt(o)).swapaxes(1, 2).reshape(m, 1, p, o * u)


def triangle(tile: Tile, trace: bool, per_layer: bool) -> list[tuple[int, int, list[Array]]]:
    """The kernel of a tile with itself, on and above the diagonal: corners that begin at (row, column)."""
    places = [(rows.start, columns.start) for rows, columns in _halves(0, _samples_of(tile))]
    return [(*place, terms) for place, terms in zip(places, _triangle(tile, trace, per_layer), strict=True)]


def _halves(start: int, end: int) -> list[Corner]:
    """One half of the samples against the other, then each half against itself in the same way."""
    if end - start < 2 * _LEAST:
        return [(slice(start, end), slice(start, end))]
    middle = (start + end) // 2
    return [(slice(start, middle), slice(middle, end)), *_halves(start, middle), *_halves(middle, end)]


def _samples_of(tile: Tile) -> int:
    return tile[0].a.shape[0]


@jit
def _triangle(tile: Tile, trace: bool, per_layer: bool) -> list[list[Array]]:
    tile = _as_one_output(tile) if trace else tile
    return _corners(tile, tile, _halves(0, _samples_of(tile)), per_layer)


@jit
def diagonal(tile: Tile, per_layer: bool) -> list[Float[Array, "m O O"]]:
    """K(x_i, x_i), or its terms."""

    def one(sample: Tile) -> list[Array]:
        rows = jax.tree.map(lambda v: v[None], sample)
        return [kernel[0, 0] for kernel in _corners(rows, rows, [(slice(None), slice(None))], per_layer)[0]]

    return jax.vmap(one)(tile)


def _corners(first: Tile, second: Tile, corners: list[Corner], per_layer: bool) -> list[list[Array]]:
    """For each corner (rows, columns) of the kernel its terms (rows, columns, O, O), or their sum."""
    outputs = first[0].b.shape[1]
    terms = [_term(one, other, corners, outputs) for one, other in zip(first, second, strict=True)]
    corner_terms = [list(layers) for layers in zip(*terms, strict=True)]
    return corner_terms if per_layer else [[sum(layers[1:], layers[0])] for layers in corner_terms]


def _term(one: Signals, other: Signals, corners: list[Corner], outputs: int) -> list[Array]:
    if one.b is None:
        eye = jnp.eye(outputs, dtype=one.a.dtype)
        return [_inner(one.a[r, 0], other.a[c, 0])[:, :, None, None] * eye for r, c in corners]
    if one.a.shape[1] == 1:
        return [_dense(one.a[r, 0], one.b[r, :, 0], other.a[c, 0], other.b[c, :, 0]) for r, c in corners]
    way = _by_positions if positions_are_cheaper(one.a, one.b) else _by_weights
    return way(one, other, corners)


def positions_are_cheaper(a: Float[Array, "m P f"], b: Float[Array, "m O P u"]) -> bool:
    """Operations for a pair of samples: P²(f + O²u) by pairs of positions, O²fu by weights."""
    (_, p, fan), (_, o, _, units) = a.shape, b.shape
    return p * p * (fan + o * o * units) < o * o * fan * units


def _inner(a: Array, b: Array) -> Array:
    """Σ over the last axis: all other axes of a, then those of b. One flat product, for which the compiler
    has a fast routine; of arrays with more axes it makes loops of its own."""
    flat = a.reshape(-1, a.shape[-1]) @ b.reshape(-1, b.shape[-1]).T
    return flat.reshape(*a.shape[:-1], *b.shape[:-1])


def _dense(a1: Array, b1: Array, a2: Array, b2: Array) -> Float[Array, "m k O O"]:
    """(A Aᵀ) ∘ (B Bᵀ) of a (m, fan-in) and b (m, O, units)."""
    return _inner(a1, a2)[:, :, None, None] * _inner(b1, b2).transpose(0, 2, 1, 3)


def _by_positions(one: Signals, other: Signals, corners: list[Corner]) -> list[Array]:
    """Σ_pp' (A_p·A_p')(B_p·B_p'), a pair of positions at a time."""
    positions = one.a.shape[1]

    def add(pair: Array, total: list[Array]) -> list[Array]:
        a1, a2 = one.a[:, pair // positions], other.a[:, pair % positions]
        b1, b2 = one.b[:, :, pair // positions], other.b[:, :, pair % positions]
        return [t + _dense(a1[r], b1[r], a2[c], b2[c]) for t, (r, c) in zip(total, corners, strict=True)]

    return jax.lax.fori_loop(0, positions**2, add, _zeros(one, other, corners))


def _by_weights(one: Signals, other: Signals, corners: list[Corner]) -> list[Array]:
    """⟨J, J'⟩ with the gradient J = Σ_p A_p ⊗ B_p of the weights, some units at a time."""
    (m, _, fan), (_, o, _, units) = one.a.shape, one.b.shape
    rows = m + other.a.shape[0]
    most = max(1, _CHUNK // (rows * o * fan * one.a.dtype.itemsize))
    size = -(-units // -(-units // min(units, most)))
    chunks = -(-units // size)

    def gradient(s: Signals, k: Array) -> Array:
        b = jnp.pad(s.b, [(0, 0)] * 3 + [(0, chunks * size - units)])
        b = jax.lax.dynamic_slice_in_dim(b, k * size, size, 3)
        return jnp.einsum("ipf,iopu->iofu", s.a, b).reshape(s.a.shape[0], o, -1)

    def add(k: Array, total: list[Array]) -> list[Array]:
        first = gradient(one, k)
        second = first if other is one else gradient(other, k)
        pairs = zip(total, corners, strict=True)
        return [t + _inner(first[r], second[c]).transpose(0, 2, 1, 3) for t, (r, c) in pairs]

    return jax.lax.fori_loop(0, chunks, add, _zeros(one, other, corners))


def _zeros(one: Signals, other: Signals, corners: list[Corner]) -> list[Array]:
    o, dtype = one.b.shape[1], one.a.dtype
    ends = (one.a.shape[0], other.a.shape[0])
    sides = [[len(range(end)[s]) for s, end in zip(corner, ends, strict=True)] for corner in corners]
    return [jnp.zeros((r, c, o, o), dtype) for r, c in sides]
