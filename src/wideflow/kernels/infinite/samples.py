"""Samples one by one: their variances in every layer, and what the duals need of them, before any pair."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...states.layers import Tables
from ...states.layers.covariance import diagonal
from ...states.layers.equality import labels_of
from ..function import Batch
from .duals import Dual, dual_of
from .equality import traced_labels
from .limits import Limit, first_weighted
from .recursion import Side, activations, before_weights, begin, from_activation
from .resolution import finest, resolved


class Samples(NamedTuple):
    """x (m, …), and for every φ its dual, labels (1, m, positions…) of what enters it, equal where that is
    equal, and the dual's table (k, m, positions…)."""

    x: Batch
    labels: tuple[Batch, ...]
    tables: tuple[Batch, ...]
    duals: tuple[Dual, ...]

    def part(self, at: slice | np.ndarray) -> "Samples":
        cut = lambda values: tuple(jnp.asarray(v[:, at]) for v in values)
        return Samples(jnp.asarray(self.x[at]), cut(self.labels), cut(self.tables), self.duals)

    def side(self, k: int) -> Side:
        """What enters the k-th φ."""
        return Side(jnp.asarray(self.labels[k]), jnp.asarray(self.tables[k]))


def prepared(limit: Limit, x: np.ndarray, chunk: int) -> Samples:
    """All samples, `chunk` of them at a time; NumPy arrays."""
    at, labels = activations(limit.family), _labels(limit, x)
    variances: list[list[np.ndarray]] = [[] for _ in at]
    duals: list[list[Dual]] = [[] for _ in at]
    for i in range(0, len(x), chunk):
        sigmas = _begun(limit, jnp.asarray(x[i : i + chunk]))
        for k, (layer, dual) in enumerate(zip(at, _duals(limit), strict=True)):
            q = np.asarray(_variances(sigmas[-1]))
            variances[k].append(q)
            duals[k].append(resolved(dual, q))
            sigmas = _stepped(limit, layer, duals[k][-1], sigmas, labels[k][i : i + chunk])
    chosen = tuple(finest(options) for options in duals)
    # Equal labels, equal variances: two sums of the same numbers may be rounded in two ways.
    q_of = [np.concatenate(parts).ravel()[label] for parts, label in zip(variances, labels, strict=True)]
    tables = tuple(np.asarray(_table(dual, q)) for dual, q in zip(chosen, q_of, strict=True))
    return Samples(x, tuple(label[None] for label in labels), tables, chosen)


def prepared_traced(limit: Limit, x: Array) -> Samples:
    """The same inside a transformation of JAX: no choice depends on numbers."""
    duals, labels, tables = _duals(limit), [], []
    sigmas = _begun(limit, x)
    for dual, layer in zip(duals, activations(limit.family), strict=True):
        q = _variances(sigmas[-1])
        label = traced_labels(x, q.shape[1:])
        labels.append(label[None])
        tables.append(dual.table(q))
        sigmas = _stepped(limit, layer, dual, sigmas, label)
    return Samples(x, tuple(labels), tuple(tables), duals)


def _duals(limit: Limit) -> tuple[Dual, ...]:
    phis = (limit.family.steps[i].phi for i in activations(limit.family))
    return tuple(dual_of(phi) for phi in phis if phi is not None)


def _labels(limit: Limit, x: np.ndarray) -> list[np.ndarray]:
    """Of what enters each φ: (m, positions…)."""
    family, first = limit.family, first_weighted(limit.family)
    site = family.sites(1)[0]
    patches = np.asarray(site.layer.patches(before_weights(family, jnp.asarray(x))))
    stack: tuple[np.ndarray, ...] = (labels_of(patches).reshape(len(x), *site.outputs[:-1]),)
    entering = []
    for step in family.steps[first + 1 :]:
        if step.phi is not None:
            entering.append(stack[-1])
        stack = step.pass_labels(stack)
    return entering


Sigmas = tuple[Array, ...]


@partial(jax.jit, static_argnums=0)
def _begun(limit: Limit, x: Array) -> Sigmas:
    return tuple(tables.sigma for tables in begin(limit, x, None))


@jax.jit
def _variances(sigma: Array) -> Array:
    return diagonal(sigma) if sigma.ndim == 5 else sigma


@partial(jax.jit, static_argnums=(0, 1, 2))
def _stepped(limit: Limit, layer: int, dual: Dual, sigmas: Sigmas, label: Array) -> Sigmas:
    """Σ of single samples behind φ and what follows it."""
    side = Side(label[None], dual.table(_variances(sigmas[-1])))
    stack = tuple(Tables(sigma, sigma) for sigma in sigmas)
    return tuple(t.sigma for t in from_activation(limit, layer, dual, (side, side), stack, 1))


@partial(jax.jit, static_argnums=0)
def _table(dual: Dual, q: Array) -> Array:
    return dual.table(q)
