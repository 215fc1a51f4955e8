"""Laws, clouds and functions as densities on a grid."""

import itertools
import math
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .._checks import count, fits
from .._shown import shown
from ..problems.gauss import gauss_legendre
from ..problems.neurons import AbstractNeuron
from .grid import MOST_AXES, GridDensity, box
from .particles import Particles, is_cloud
from .starts import Law, is_law

_LOST = 1e-6  # mass outside the box that is worth a warning
_WITHIN = 4  # Gauss nodes in a cell, along each axis


def on_grid(
    source: object,
    low: ArrayLike,
    high: ArrayLike,
    cells: ArrayLike,
    *,
    neuron: AbstractNeuron | None = None,
    alpha: float | None = None,
) -> GridDensity:
    """`source` as a density on `cells` cells between the corners `low` and `high` (numbers or one for each
    axis): a `wf.Law` by its distribution functions, exactly; `wf.Particles` as a histogram; or a function
    ρ(θ) of one θ ∈ R^D (any factor; it needs `neuron`), integrated over each cell by Gauss nodes. What lies
    outside the box is left out, with a warning, and the rest divided by its sum.

    >>> rho = wf.on_grid(wf.init(line, theta=1.0), -6.0, 6.0, cells=16)
    >>> rho.weights.shape, float(rho.weights.sum().round(12))
    ((16,), 1.0)"""
    neuron = getattr(source, "neuron", None) if neuron is None else neuron
    D = getattr(source, "D", None) or max(np.size(low), np.size(high), np.size(cells))
    if not isinstance(D, int) or D > MOST_AXES:
        raise ValueError(
            f"A grid takes θ of at most {MOST_AXES} coordinates, got D = {D}. Try problem.reduced()."
        )
    low, high = box(low, high, D)
    shape = tuple(count("on_grid(cells)", v, least=2) for v in np.broadcast_to(cells, (D,)))
    fits(f"A grid of {shape} cells", 64.0 * math.prod(shape), "Use fewer cells.")
    edges = [np.linspace(a, b, n + 1) for a, b, n in zip(low, high, shape, strict=True)]
    if is_law(source):
        mass = _of_law(source, edges)
    elif is_cloud(source):
        mass = _of_particles(source, edges)
    elif callable(source):
        mass = _of_function(source, edges)
    else:
        raise ValueError(
            f"on_grid(source) must be a wf.Law, wf.Particles or a density function, got {shown(source)}."
        )
    total, known = mass.sum(), not callable(source) or is_cloud(source)
    if not total > 0 or not np.isfinite(total):
        raise ValueError(f"There is no mass in the box from {low} to {high}: choose another one.")
    if known and total < 0.5:
        raise ValueError(
            f"Only {total:.2g} of the mass lies in the box from {low} to {high}: choose a larger one."
        )
    if known and 1 - total > _LOST:
        warnings.warn(
            f"{1 - total:.2g} of the mass lies outside the grid from {low} to {high} and is left out.",
            stacklevel=2,
        )
    alpha = getattr(source, "alpha", 1.0) if alpha is None else alpha
    return GridDensity(mass / total, low, high, neuron=neuron, alpha=alpha)


def _of_law(law: Law, edges: list[np.ndarray]) -> np.ndarray:
    mass = np.ones(())
    for (marginal, _, width), ends in zip(law.coordinates(), edges, strict=True):
        below, above = marginal.cdf(ends, width), marginal.tail(ends, width)
        # on either side of the median the difference of two small numbers
        along = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
        mass = np.multiply.outer(mass, along)
    return mass


def _of_particles(rho: Particles, edges: list[np.ndarray]) -> np.ndarray:
    return np.histogramdd(np.asarray(rho.theta), edges, weights=np.asarray(rho.weights))[0]


def _of_function(fn: Callable, edges: list[np.ndarray]) -> np.ndarray:
    """Means over the cells, by a product rule within each."""
    nodes, weights = gauss_legendre(_WITHIN)
    shape = tuple(len(e) - 1 for e in edges)
    mass, at = np.zeros(shape), jax.jit(jax.vmap(fn))
    for places in itertools.product(range(_WITHIN), repeat=len(edges)):
        ends = zip(edges, places, strict=True)
        axes = [e[:-1] + np.diff(e) * 0.5 * (1 + nodes[i]) for e, i in ends]
        theta = np.stack([v.ravel() for v in np.meshgrid(*axes, indexing="ij")], axis=1)
        values = np.asarray(at(jnp.asarray(theta)))
        if values.shape != (len(theta),):
            raise ValueError(f"The density must map one θ to one number, got shape {values.shape[1:]}.")
        if not np.isfinite(values).all() or (values < 0).any():
            raise ValueError(f"The density must be finite and >= 0, got {values.min()} to {values.max()}.")
        mass += math.prod(weights[i] for i in places) * values.reshape(shape)
    cell = math.prod(float(e[1] - e[0]) / 2 for e in edges)
    return mass * cell
