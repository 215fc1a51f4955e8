"""Samples one by one: their variances in every layer, and what the duals need of them, before any pair."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...states.layers import Elementwise
from .duals import Dual, dual_of
from .equality import labels_of, moved_labels, traced_labels
from .limits import Limit
from .recursion import Tables, activated, activations, begin, between, diagonal, first_weighted
from .resolution import finest, resolved


class Samples(NamedTuple):
    """x (m, …), and for every φ its dual, labels (1, m, positions…) of what enters it, equal where that is
    equal, and the dual's table (k, m, positions…)."""

    x: Any
    labels: tuple[Any, ...]
    tables: tuple[Any, ...]
    duals: tuple[Dual, ...]

    def part(self, at: Any) -> "Samples":
        cut = lambda values: tuple(jnp.asarray(v[:, at]) for v in values)
        return Samples(jnp.asarray(self.x[at]), cut(self.labels), cut(self.tables), self.duals)


def prepared(limit: Limit, x: np.ndarray, chunk: int) -> Samples:
    """All samples, so many at a time; NumPy arrays."""
    at, labels = activations(limit.family), _labels(limit, x)
    variances: list[list[np.ndarray]] = [[] for _ in at]
    duals: list[list[Dual]] = [[] for _ in at]
    for i in range(0, len(x), chunk):
        sigma = _begun(limit, jnp.asarray(x[i : i + chunk]))
        for k, (layer, asked) in enumerate(zip(at, _duals(limit), strict=True)):
            q = np.asarray(_variances(sigma))
            variances[k].append(q)
            duals[k].append(resolved(asked, q))
            sigma = _stepped(limit, layer, duals[k][-1], sigma, labels[k][i : i + chunk])
    found = tuple(finest(made) for made in duals)
    # Equal labels, equal variances: two sums of the same numbers may be rounded in two ways.
    q_of = [np.concatenate(parts).ravel()[label] for parts, label in zip(variances, labels, strict=True)]
    tables = tuple(np.asarray(_table(dual, q)) for dual, q in zip(found, q_of, strict=True))
    return Samples(x, tuple(label[None] for label in labels), tables, found)


def prepared_traced(limit: Limit, x: Array) -> Samples:
    """The same inside a transformation of JAX: no choice depends on numbers."""
    duals, labels, tables = _duals(limit), [], []
    sigma = _begun(limit, x)
    for dual, layer in zip(duals, activations(limit.family), strict=True):
        q = _variances(sigma)
        label = traced_labels(x, q.shape[1:])
        labels.append(label[None])
        tables.append(dual.table(q))
        sigma = _stepped(limit, layer, dual, sigma, label)
    return Samples(x, tuple(labels), tuple(tables), duals)


def _duals(limit: Limit) -> tuple[Dual, ...]:
    layers = [limit.family.layers[i] for i in activations(limit.family)]
    return tuple(dual_of(layer.activation) for layer in layers if isinstance(layer, Elementwise))


def _labels(limit: Limit, x: np.ndarray) -> list[np.ndarray]:
    """Of what enters each φ: (m, positions…)."""
    family, first, found = limit.family, first_weighted(limit.family), []
    values: Any = x
    for layer in family.layers[:first]:
        values = layer.apply(values)  # type: ignore[call-arg]
    patches = np.asarray(family.layers[first].patches(jnp.asarray(values)))  # type: ignore[union-attr]
    label = labels_of(patches).reshape(len(x), *family.shapes(1)[first + 1][:-1])
    for layer in family.layers[first + 1 :]:
        if isinstance(layer, Elementwise):
            found.append(label)
        label = moved_labels(layer, label)
    return found


@partial(jax.jit, static_argnums=0)
def _begun(limit: Limit, x: Array) -> Array:
    return begin(limit, x, None).sigma


@jax.jit
def _variances(sigma: Array) -> Array:
    return diagonal(sigma) if sigma.ndim == 5 else sigma


@partial(jax.jit, static_argnums=(0, 1, 2))
def _stepped(limit: Limit, layer: int, dual: Dual, sigma: Array, label: Array) -> Array:
    """Σ of single samples behind φ and what follows it."""
    side = label[None], dual.table(_variances(sigma))
    return between(limit, layer + 1, activated(dual, side, side, Tables(sigma, sigma), 1), 1).sigma


@partial(jax.jit, static_argnums=0)
def _table(dual: Dual, q: Array) -> Array:
    return dual.table(q)
