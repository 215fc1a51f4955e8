"""Measures whose masses move: log weights in, weights out."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..states.measure import AbstractMeasure

MEASURES = "moves the masses of wf.Particles or of a wf.GridDensity"


def log_weights(state: AbstractMeasure) -> Float[Array, " n"]:
    """log ω; −inf where there is no mass, nor will there be any."""
    return jnp.log(state.weights)


def with_log_weights(
    state: AbstractMeasure, logs: Float[Array, " n"]
) -> tuple[AbstractMeasure, Float[Array, " n"]]:
    """The state with weights e^logs/Z, and log ω: kept as such, a mass too small to be written as a number
    is not lost and can grow again."""
    logs = jax.nn.log_softmax(logs)
    return state.with_weights(jnp.exp(logs)), logs
