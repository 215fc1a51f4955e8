"""Tables of covariances of an infinitely wide network, one layer after the other.

`states.layers.covariance` says what they hold, and each layer what it does to them; here are the constants
of the weight layers, the duals of φ, and where the walk begins."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...problems.activations import Activation
from ...states.family import Family
from ...states.layers import AbstractRecursion, Forward, Tables
from ...states.layers.covariance import diagonal
from .duals import Dual
from .limits import Limit, first_weighted

Stack = tuple[Tables, ...]


class Side(NamedTuple):
    """Of samples that enter φ: labels (1, m, positions…), equal where the samples are, and the dual's table
    (k, m, positions…), variances first."""

    labels: Array
    table: Array


@dataclass(frozen=True)
class Recursion(AbstractRecursion):
    """What the step `index` of a limit may ask for. A φ needs its dual, and the samples on either side."""

    limit: Limit
    index: int
    lead: int
    dual: Dual | None = None
    sides: tuple[Side, Side] | None = None

    def affine(self, tables: Tables, mean: Callable[[Array], Array]) -> Tables:
        limit, family = self.limit, self.limit.family
        row = sum(step.as_weighted() is not None for step in family.steps[: self.index])
        last, gain2 = row == family.depth, family.gain**2
        variance, bias = (family.bias or 0.0) ** 2, limit.biases
        if last:
            bias = 0.0 if family.bias is None else 1.0
        own = Tables(mean(tables.sigma), mean(tables.theta + limit.own[row] * tables.sigma))
        prior = limit.prior if last else 1.0
        return Tables(prior * gain2 * own.sigma + variance, gain2 * own.theta + bias)

    def activated(self, phi: Activation, tables: Tables) -> Tables:
        assert self.dual is not None and self.sides is not None
        (label1, table1), (label2, table2) = self.sides
        label1 = jnp.where(table1[:1] > 0, label1, -1)  # what has no variance has no correlation
        spread = partial(_spread, axes=tables.sigma.ndim, lead=self.lead)
        same = spread(label1, second=False)[0] == spread(label2, second=True)[0]
        left, right = spread(table1, second=False), spread(table2, second=True)
        # the variance itself, but with the derivatives of the covariance
        sigma = tables.sigma + jax.lax.stop_gradient(jnp.where(same, left[0] - tables.sigma, 0.0))
        value, slope = self.dual.pair(left, right, sigma, same)
        return Tables(value, tables.theta * slope)


@lru_cache(maxsize=256)
def activations(family: Family) -> tuple[int, ...]:
    """Indices of the steps φ behind the first weight layer."""
    first = first_weighted(family)
    return tuple(i for i, step in enumerate(family.steps) if step.phi is not None and i > first)


@lru_cache(maxsize=4096)
def paired(family: Family, i: int) -> bool:
    """Whether all pairs of positions are needed behind step i: an average over positions comes later."""
    later = list(zip(family.steps, family.shapes(1), strict=False))[i + 1 :]
    return any(step.averages for step, shape in later if len(shape) == 3)


def largest(family: Family) -> int:
    """Entries that a pair of samples has in the largest table."""
    sizes = [
        math.prod(shape[:-1]) ** (2 if paired(family, i) else 1)
        for i, shape in enumerate(family.shapes(1)[1:])
    ]
    return max(sizes[first_weighted(family) :])


def before_weights(family: Family, x: Array) -> Array:
    """x behind the layers in front of the first weights."""
    stack: tuple[Array, ...] = (x,)
    for step in family.steps[: first_weighted(family)]:
        stack = step.pass_values(stack, Forward((), (), ()))
    return stack[-1]


def begin(limit: Limit, x1: Array, x2: Array | None) -> Stack:
    """Σ and Θ of the first weight layer and what follows it up to φ; of x1 with itself if there is no x2."""
    family = limit.family
    i, layer = first_weighted(family), family.sites(1)[0].layer
    x1, x2 = before_weights(family, x1), None if x2 is None else before_weights(family, x2)
    gram = layer.gram(x1, x2, paired(family, i))
    constant = family.constants()[0] ** 2
    front = 1.0 if family.input_scale == "start" else constant
    variance = (family.bias or 0.0) ** 2
    tables = Tables(constant * gram + variance, limit.own[0] * front * gram + limit.biases)
    return between(limit, i + 1, (tables,), 1 if x2 is None else 2)


def between(limit: Limit, start: int, stack: Stack, lead: int) -> Stack:
    """All steps from `start` to the next φ, or to the end. `lead` axes are of samples."""
    for i, step in enumerate(limit.family.steps[start:], start):
        if step.phi is not None:
            break
        stack = _reduced(limit.family, i, step.pass_covariances(stack, Recursion(limit, i, lead)), lead)
    return stack


def from_activation(
    limit: Limit, i: int, dual: Dual, sides: tuple[Side, Side], stack: Stack, lead: int
) -> Stack:
    """φ at step i, and all steps from there to the next φ, or to the end."""
    at = Recursion(limit, i, lead, dual, sides)
    return between(limit, i + 1, limit.family.steps[i].pass_covariances(stack, at), lead)


def _reduced(family: Family, i: int, stack: Stack, lead: int) -> Stack:
    """Behind step i, without the pairs of positions that nothing later asks for."""
    if paired(family, i):
        return stack
    pairs = lambda tables: tables.sigma.ndim == lead + 4
    return tuple(Tables(*map(diagonal, tables)) if pairs(tables) else tables for tables in stack)


def _spread(values: Array, axes: int, lead: int, second: bool) -> Array:
    """Values (k, m, positions…) of single samples as rows of a table with this many axes, or as its
    columns."""
    k, m, *positions = values.shape
    samples = (m,) if lead == 1 else (1, m) if second else (m, 1)
    if axes == lead + 4:
        positions = [1, 1, *positions] if second else [*positions, 1, 1]
    return values.reshape(k, *samples, *positions)
