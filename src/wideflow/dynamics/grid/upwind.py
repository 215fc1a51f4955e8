"""Transport on a grid: upwind fluxes with limited slopes, of second order and more where ρ is smooth."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def half_slope(upwind: Array, downwind: Array) -> Array:
    """Koren's limited rise from the centre of a cell to a face: (δ₋ + 2δ₊)/6 of the differences to the cells
    before and after it in the flow, at most as large as each, and 0 where their signs differ (an extremum).
    So no face value is negative or above twice the mass."""
    size = jnp.minimum(jnp.minimum(jnp.abs(upwind), jnp.abs(downwind)), jnp.abs(upwind + 2 * downwind) / 6)
    return jnp.where(upwind * downwind > 0, jnp.sign(upwind) * size, 0.0)


def flux(mass: Float[Array, "N ..."], speed: Float[Array, "N-1 ..."]) -> Float[Array, "N-1 ..."]:
    """Mass per unit time across each inner face, for a speed in cells per unit time: taken from the cell
    that the flow comes from, at the face."""
    step, none = jnp.diff(mass, axis=0), jnp.zeros_like(mass[:1])
    below, above = jnp.concatenate([none, step]), jnp.concatenate([step, none])
    faces = (mass + half_slope(below, above))[:-1], (mass - half_slope(above, below))[1:]
    # where ρ falls by many powers of ten from cell to cell the face value is 0, and rounded it may be below
    from_left, from_right = (jnp.maximum(v, 0) for v in faces)
    return jnp.where(speed > 0, speed * from_left, speed * from_right)
