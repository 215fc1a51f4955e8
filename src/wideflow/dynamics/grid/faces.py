"""Sums over the faces of cells, for any number of axes."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

_MOST = 0.999  # of a cell's mass: rounding must not take the rest


def inflow(fluxes: Sequence[Array | None], mass: Float[Array, "..."]) -> Float[Array, "..."]:
    """What each cell gains when `fluxes[i]` crosses its faces along axis i (None where none does). Nothing
    crosses the boundary, so that the sum over cells is 0."""
    total = jnp.zeros_like(mass)
    for i, flux in enumerate(fluxes):
        if flux is not None:
            pads = [(1, 1) if j == i else (0, 0) for j in range(mass.ndim)]
            total = total - jnp.diff(jnp.pad(flux, pads), axis=i)
    return total


def limited(mass: Array, fluxes: Sequence[Array | None]) -> list[Array | None]:
    """The fluxes, each reduced by one factor for all that leaves a cell, so that no cell loses more than its
    mass (flux-corrected transport with the lower bound 0)."""
    leaving = jnp.zeros_like(mass)
    for i, flux in enumerate(fluxes):
        if flux is not None:
            ahead = [(0, 1) if j == i else (0, 0) for j in range(mass.ndim)]
            behind = [(1, 0) if j == i else (0, 0) for j in range(mass.ndim)]
            leaving = leaving + jnp.pad(jnp.maximum(flux, 0), ahead) + jnp.pad(jnp.maximum(-flux, 0), behind)
    share = jnp.where(leaving > _MOST * mass, _MOST * mass / jnp.where(leaving > 0, leaving, 1.0), 1.0)
    kept: list[Array | None] = []
    for i, flux in enumerate(fluxes):
        along = jnp.moveaxis(share, i, 0)
        ends = jnp.moveaxis(along[:-1], 0, i), jnp.moveaxis(along[1:], 0, i)
        kept.append(None if flux is None else flux * jnp.where(flux > 0, *ends))
    return kept
