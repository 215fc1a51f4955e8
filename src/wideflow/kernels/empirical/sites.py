"""The tangent kernel of any JAX function leaf by leaf: from what enters and comes back at its products with
parameters (`structure`), and from gradients of each row for the leaves that are used otherwise."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from ..._tracing import jit
from ..function import Model
from .host_products import lookup_kernel, position_kernel
from .signals import Signals, triangle
from .structure import Entry, Site, Walk

_BYTES = 2**28  # of what came back in several passes at once


class Structure(NamedTuple):
    """Sites of the leaves that are used in no other way, in the program's order, and the other leaves."""

    sites: tuple[Site, ...]
    generic: tuple[int, ...]


def structure(model: Model, x: PyTree) -> Structure:
    """Of f at one row of x; nothing is computed."""
    found: list[Site] = []

    def at(entry: Entry, h: Array) -> Array:
        found.append(entry.site)
        return h

    walk = Walk(at)
    closed = _program(model, x[0])
    jax.eval_shape(lambda leaves, row: walk.run(closed, leaves, row), model.leaves, jnp.asarray(x[0]))
    ways: dict[int, set] = {}
    for site in found:
        ways.setdefault(site.leaf, set()).add((site.view, site.lookup))
    known = {leaf for leaf, views in ways.items() if len(views) == 1 and leaf not in walk.spoiled}
    others = (i for i in range(len(model.leaves)) if i not in known)
    return Structure(tuple(site for site in found if site.leaf in known), tuple(others))


def _program(model: Model, row: Array) -> PyTree:
    rebuilt = lambda leaves: jax.tree.unflatten(jax.tree.structure(model.moving), leaves)
    return jax.make_jaxpr(lambda leaves, row: model.row(rebuilt(leaves), row))(model.leaves, jnp.asarray(row))


def _walked(model: Model, known: Structure, x: Array, nudges: list, offsets: list) -> tuple:
    """f of all rows, and (a, h) of each site, with nudges (m, T, units) added to h and offsets (m, …) to the
    other leaves."""
    closed, leaves = _program(model, x[0]), {site.leaf for site in known.sites}

    def row(nudges: list, offsets: list, x: Array) -> tuple:
        moved, met, added = list(model.leaves), [], iter(nudges)
        for i, offset in zip(known.generic, offsets, strict=True):
            moved[i] = moved[i] + offset

        def at(entry: Entry, h: Array) -> Array:
            if entry.site.leaf not in leaves:
                return h
            met.append((entry.a, entry.flat(h)))
            return h + entry.back(next(added)).astype(h.dtype)

        (f,) = Walk(at).run(closed, moved, x)
        return f, met

    return jax.vmap(row)(nudges, offsets, x)


def _zeros(model: Model, known: Structure, m: int) -> tuple[list, list]:
    leaves = model.leaves
    nudges = [jnp.zeros((m, s.positions, s.units), leaves[s.leaf].dtype) for s in known.sites]
    return nudges, [jnp.zeros((m, *leaves[i].shape), leaves[i].dtype) for i in known.generic]


@jit
def hidden(model: Model, known: Structure, x: Array) -> list[Array]:
    """h (m, T, units) of each site, on rows x."""
    return [h for _, h in _walked(model, known, x, *_zeros(model, known, x.shape[0]))[1]]


@jit
def _forward(model: Model, known: Structure, x: Array) -> tuple[list[Array], PyTree]:
    """What enters each site, and the way back."""

    def run(nudges: list, offsets: list) -> tuple[Array, list]:
        f, met = _walked(model, known, x, nudges, offsets)
        return f, [a for a, _ in met]

    _, vjp, entering = jax.vjp(run, *_zeros(model, known, x.shape[0]), has_aux=True)
    return entering, vjp


@jit
def _back(vjp: PyTree, v: Array, m: int) -> tuple[list[Array], list[Array]]:
    """For vectors v (k, O) of outputs: b (m, k, T, units) of each site, and gradients (m, k, size)."""
    sites, others = jax.vmap(lambda one: vjp(jnp.broadcast_to(one, (m, one.size))), out_axes=1)(v)
    return list(sites), [g.reshape(m, len(v), -1) for g in others]


class LeafKernels(NamedTuple):
    """By leaf (m, m), and the terms (groups, m, m) of their sum."""

    parts: list[np.ndarray]
    terms: np.ndarray


def site_kernels(
    model: Model,
    known: Structure,
    x: np.ndarray,
    groups: list[np.ndarray],
    rates: np.ndarray,
    done: Callable[[], None],
) -> LeafKernels:
    """K = Σ_k rate (J v_k)(J v_k)ᵀ of each leaf on rows x, over groups of vectors v_k of outputs."""
    m, count = len(x), len(model.leaves)
    entering, vjp = _forward(model, known, jnp.asarray(x))
    size = sum(site.positions * site.units for site in known.sites)
    size += sum(model.leaves[i].size for i in known.generic)
    most = max(1, int(_BYTES // max(1, m * size * model.dtype.itemsize)))
    parts = [np.zeros((m, m)) for _ in range(count)]
    terms = np.zeros((len(groups), m, m))
    for term, group in zip(terms, groups, strict=True):
        for start in range(0, len(group), most):
            some = group[start : start + most]
            back, gradients = _back(vjp, jnp.asarray(some, model.dtype), m)
            for leaf, K in _leaf_kernels(known, entering, back, gradients):
                K = rates[leaf] * K
                parts[leaf] += K
                term += K
            for _ in some:
                done()
    return LeafKernels(parts, terms)


def _leaf_kernels(known: Structure, entering: list, back: list, gradients: list):
    """(leaf, K) of every leaf, its sites joined as more positions of one."""
    for leaf in dict.fromkeys(site.leaf for site in known.sites):
        which = [i for i, site in enumerate(known.sites) if site.leaf == leaf]
        a, b = (_joined([v[i] for i in which], axis) for v, axis in ((entering, 1), (back, 2)))
        if known.sites[which[0]].lookup:
            m, k, positions, units = b.shape
            joined = np.asarray(b.swapaxes(1, 2)).reshape(m, positions, k * units)
            yield leaf, lookup_kernel(np.asarray(a), joined).astype(float)
        else:
            yield leaf, _product(a, b)
    for leaf, g in zip(known.generic, gradients, strict=True):
        yield leaf, np.asarray(_gram(g.reshape(len(g), -1)), float)


def _joined(parts: list, axis: int) -> Array:
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis)


@jit
def _gram(g: Array) -> Array:
    return jnp.matmul(g, g.T, precision="highest")


def _product(a: Array, b: Array) -> np.ndarray:
    """Σ_k over outputs: `triangle` gives the mean over them."""
    m, k, positions, units = b.shape
    if positions > 1 and jax.default_backend() == "cpu":
        joined = np.asarray(b.swapaxes(1, 2)).reshape(m, positions, k * units)
        return position_kernel(np.asarray(a), joined).astype(float)
    out = np.zeros((m, m))
    for row, column, (tile,) in triangle((Signals(a, b),), True, True):
        block = k * np.asarray(tile, float)[:, :, 0, 0]
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        out[column : column + block.shape[1], row : row + block.shape[0]] = block.T
    return out
