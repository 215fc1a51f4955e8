"""Measures whose masses move: log weights in, weights out."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..states.grid import GridDensity
from ..states.particles import Particles

MEASURES = "moves the masses of wf.Particles or of a wf.GridDensity"


def is_measure(state: Any) -> bool:
    """Whether the state is one measure with masses: particles (no batch of them) or a density on a grid."""
    return isinstance(state, GridDensity) or (isinstance(state, Particles) and state.weights.ndim == 1)


def log_weights(state: Any) -> Float[Array, " n"]:
    """log ω; −inf where there is no mass, and there stays none."""
    return jnp.log(state.weights)


def with_log_weights(state: Any, logs: Float[Array, " n"]) -> tuple[Any, Float[Array, " n"]]:
    """The state with weights e^logs/Z, and log ω: kept as such, a mass too small to be written as a number
    is not lost and can grow again."""
    logs = jax.nn.log_softmax(logs)
    weights = jnp.exp(logs)
    if isinstance(state, GridDensity):
        return state.with_mass(weights.reshape(state.mass.shape)), logs
    return eqx.tree_at(lambda rho: rho.weights, state, weights), logs
