"""Tables of covariances of an infinitely wide network, one layer after the other.

Σ holds Cov(h(x, p), h(x', p')) of the Gaussian h, Θ the tangent kernel of h, for samples x, x' and, in
images, positions p, p'. Axes: the samples, (m1, m2) for all pairs or (m,) for a sample with itself; then
none for a vector, (height, width) where only p = p' is needed, (height, width, height, width) for all
pairs of positions. Weight layers are linear in Σ and Θ:

    Σ ← g² mean Σ + σ_b²,    Θ ← g² mean(Θ + own Σ) + own_b,

the mean over the window of a convolution, moved along with (p, p'), and own = 1 where the layer has a part in
the limit of the kernel."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...states.family import Family
from ...states.layers import AveragePool, Conv, Dense, Elementwise, Flatten, GlobalAverage, Layer
from .duals import Dual
from .limits import Limit


class Tables(NamedTuple):
    sigma: Array
    theta: Array


def activations(family: Family) -> list[int]:
    """Indices of the layers φ behind the first weight layer."""
    first = first_weighted(family)
    return [i for i, layer in enumerate(family.layers) if isinstance(layer, Elementwise) and i > first]


def first_weighted(family: Family) -> int:
    return next(i for i, layer in enumerate(family.layers) if isinstance(layer, Dense | Conv))


def paired(family: Family, i: int) -> bool:
    """Whether all pairs of positions are needed behind layer i: an average over positions comes later."""
    shapes = family.shapes(1)
    later = [layer for layer, shape in zip(family.layers, shapes, strict=False) if len(shape) == 3]
    images = sum(len(shape) == 3 for shape in shapes[: i + 1])
    return any(isinstance(layer, AveragePool | GlobalAverage) for layer in later[images:])


def largest(family: Family) -> int:
    """Entries that a pair of samples has in the largest table."""
    sizes = [
        math.prod(shape[:-1]) ** (2 if paired(family, i) else 1)
        for i, shape in enumerate(family.shapes(1)[1:])
    ]
    return max(sizes[first_weighted(family) :])


def pads(layer: Conv | AveragePool, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Zeros around an image."""
    if isinstance(layer, AveragePool):
        return [(0, 0), (0, 0)]
    return jax.lax.padtype_to_pads(shape[:2], (layer.window,) * 2, (layer.stride,) * 2, layer.padding)


def begin(limit: Limit, x1: Array, x2: Array | None) -> Tables:
    """Σ and Θ of the first weight layer and what follows it up to φ; of x1 with itself if there is no x2."""
    family = limit.family
    i = first_weighted(family)
    for layer in family.layers[:i]:
        x1, x2 = layer.apply(x1), None if x2 is None else layer.apply(x2)  # type: ignore[call-arg]
    layer = family.layers[i]
    assert isinstance(layer, Dense | Conv)
    gram = _gram(layer, x1, x2, paired(family, i), family.shapes(1)[i + 1])
    constant = family.constants()[0] ** 2
    front = 1.0 if family.input_scale == "start" else constant
    variance = (family.bias or 0.0) ** 2
    tables = Tables(constant * gram + variance, limit.own[0] * front * gram + limit.biases)
    return between(limit, i + 1, tables, 1 if x2 is None else 2)


def _gram(layer: Dense | Conv, x1: Array, x2: Array | None, pairs: bool, shape: tuple[int, ...]) -> Array:
    """Σ_q ⟨x(p + q), x'(p' + q)⟩."""
    if isinstance(layer, Dense):
        return jnp.sum(x1 * x1, axis=1) if x2 is None else jnp.matmul(x1, x2.T, precision="highest")
    one = layer.patches(x1)
    other = one if x2 is None else layer.patches(x2)
    a, b = ("a", "a") if x2 is None else ("a", "b")
    p, q = ("p", "q") if pairs else ("p", "p")
    out = "".join(dict.fromkeys(a + b + p + q))
    gram = jnp.einsum(f"{a}{p}k,{b}{q}k->{out}", one, other, precision="highest")
    lead = gram.shape[: 1 if x2 is None else 2]
    return gram.reshape(*lead, *(shape[:-1] * (2 if pairs else 1)))


def between(limit: Limit, start: int, tables: Tables, lead: int) -> Tables:
    """All layers from `start` to the next φ, or to the end. `lead` axes are of samples."""
    family = limit.family
    for i in range(start, len(family.layers)):
        layer = family.layers[i]
        if isinstance(layer, Elementwise):
            break
        if isinstance(layer, Dense | Conv):
            tables = _weighted(limit, i, tables, lead)
        else:
            tables = Tables(*(_averaged(layer, table, lead) for table in tables))
        if tables.sigma.ndim == lead + 4 and not paired(family, i):
            tables = Tables(*(diagonal(table) for table in tables))
    return tables


def _weighted(limit: Limit, i: int, tables: Tables, lead: int) -> Tables:
    family, layer = limit.family, limit.family.layers[i]
    index = sum(isinstance(before, Dense | Conv) for before in family.layers[:i])
    last, gain2 = index == family.depth, family.gain**2
    variance, bias = (family.bias or 0.0) ** 2, limit.biases
    if last:
        bias = 0.0 if family.bias is None else 1.0
    own = Tables(tables.sigma, tables.theta + limit.own[index] * tables.sigma)
    if isinstance(layer, Conv):
        own = Tables(*(_convolved(layer, table, lead) for table in own))
    prior = limit.prior if last else 1.0
    return Tables(prior * gain2 * own.sigma + variance, gain2 * own.theta + bias)


def _convolved(layer: Conv, table: Array, lead: int) -> Array:
    """The mean over q in the window of a table at (p·stride + q, p'·stride + q), one direction at a time."""
    pairs = table.ndim == lead + 4
    sizes = table.shape[lead : lead + 2]
    for direction, pad in enumerate(pads(layer, sizes)):
        axes = [lead + direction, lead + direction + 2][: 2 if pairs else 1]
        around = [pad if axis in axes else (0, 0) for axis in range(table.ndim)]
        padded = jnp.pad(table, around)
        size = (padded.shape[axes[0]] - layer.window) // layer.stride + 1
        total: Any = 0.0
        for q in range(layer.window):
            cut = slice(q, q + (size - 1) * layer.stride + 1, layer.stride)
            total = total + padded[tuple(cut if axis in axes else slice(None) for axis in range(table.ndim))]
        table = total / layer.window
    return table


def _averaged(layer: Layer, table: Array, lead: int) -> Array:
    """Means over positions: of p and p' each, or where an image is flattened, of p = p'."""
    if isinstance(layer, Flatten):
        table = diagonal(table) if table.ndim == lead + 4 else table
        return table.mean(tuple(range(lead, table.ndim)))
    if isinstance(layer, GlobalAverage):
        return table.mean(tuple(range(lead, table.ndim)))
    if not isinstance(layer, AveragePool):
        raise ValueError(f"{layer!r} has no rule for the kernel at n = ∞; Dense, Conv, φ and averages have.")
    shape = list(table.shape[:lead])
    for side in table.shape[lead:]:
        shape += [side // layer.window, layer.window]
    return table.reshape(shape).mean(tuple(range(lead + 1, len(shape), 2)))


def diagonal(table: Array) -> Array:
    """The entries p = p' of a table (…, height, width, height, width)."""
    return jnp.einsum("...hwhw->...hw", table)


def activated(dual: Dual, one: Any, other: Any, tables: Tables, lead: int) -> Tables:
    """Σ ← E φ(u)φ(v), Θ ← Θ ∘ E φ'(u)φ'(v), with (labels, table) of the samples on either side."""
    (label1, table1), (label2, table2) = one, other
    label1 = jnp.where(table1[:1] > 0, label1, -1)  # what has no variance has no correlation
    first, second = (partial(_spread, axes=tables.sigma.ndim, lead=lead, second=k) for k in (False, True))
    same = first(label1)[0] == second(label2)[0]
    left, right = first(table1), second(table2)
    # the variance itself, but with the derivatives of the covariance
    sigma = tables.sigma + jax.lax.stop_gradient(jnp.where(same, left[0] - tables.sigma, 0.0))
    value, slope = dual.pair(left, right, sigma, same)
    return Tables(value, tables.theta * slope)


def _spread(values: Array, axes: int, lead: int, second: bool) -> Array:
    """Values (k, m, positions…) of single samples as rows of a table with so many axes, or as its columns."""
    k, m, *positions = values.shape
    samples = (m,) if lead == 1 else (1, m) if second else (m, 1)
    if axes == lead + 4:
        positions = [1, 1, *positions] if second else [*positions, 1, 1]
    return values.reshape(k, *samples, *positions)
