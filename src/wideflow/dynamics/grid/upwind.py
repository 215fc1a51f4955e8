"""Transport on a grid: upwind fluxes with limited slopes, of second order where ρ is smooth."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def slopes(mass: Float[Array, "N ..."]) -> Float[Array, "N ..."]:
    """Van Leer's slope of each cell, the harmonic mean of the differences to both sides where they have one
    sign and 0 elsewhere: |slope| ≤ 2 min(m₊ − m, m − m₋), so that no face value is negative."""
    step = jnp.diff(mass, axis=0)
    none = jnp.zeros_like(mass[:1])
    below, above = jnp.concatenate([none, step]), jnp.concatenate([step, none])
    product = below * above
    total = below + above
    return jnp.where(product > 0, 2 * product / jnp.where(product > 0, total, 1.0), 0.0)


def flux(mass: Float[Array, "N ..."], speed: Float[Array, "N-1 ..."]) -> Float[Array, "N-1 ..."]:
    """Mass per unit time across each inner face, for a speed in cells per unit time: taken from the cell
    that the flow comes from, at the face."""
    half = slopes(mass) / 2
    # where ρ falls by many powers of ten from cell to cell the face value is 0, and rounded it may be below
    from_left, from_right = (jnp.maximum(v, 0) for v in ((mass + half)[:-1], (mass - half)[1:]))
    return jnp.where(speed > 0, speed * from_left, speed * from_right)
