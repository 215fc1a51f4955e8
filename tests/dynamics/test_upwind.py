"""Fluxes of transport on a grid."""

import jax.numpy as jnp
import numpy as np

from wideflow.dynamics.grid.upwind import flux


def test_no_face_value_is_negative_where_mass_falls_fast():
    """Tails that fall by five to thirty powers of ten from cell to cell: the limited slope is minus twice the
    mass there, and rounding must not make a face value negative, as then no step keeps masses positive."""
    falls = np.random.default_rng(0).uniform(5, 30, size=(8, 200))
    mass = jnp.asarray(10.0 ** -np.cumsum(falls, axis=0))
    assert float(jnp.min(flux(mass, jnp.ones((7, 200))))) >= 0
    assert float(jnp.max(flux(mass[::-1], -jnp.ones((7, 200))))) <= 0
