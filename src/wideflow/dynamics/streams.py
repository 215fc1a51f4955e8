"""Random streams: each use of randomness has a key of its own, a function of (key, stream, step).

A key is either the parent of other keys or drawn from, never both: `split` and `fold_in` of one key
can give the same child."""

import jax
from jaxtyping import Array

_DATA, _NOISE, _ORDER, _EVENTS, _ACROSS = 0, 1, 2, 3, 4


def data_key(key: Array, step: Array) -> Array:
    """Draws the batch of a step."""
    return jax.random.fold_in(jax.random.fold_in(key, _DATA), step)


def noise_key(key: Array, step: Array) -> Array:
    """Draws the Langevin noise of a step."""
    return jax.random.fold_in(jax.random.fold_in(key, _NOISE), step)


def order_key(key: Array) -> Array:
    """Draws the order in which a data set is read once."""
    return jax.random.fold_in(jax.random.fold_in(key, _ORDER), 0)


def event_key(key: Array, step: Array) -> Array:
    """Draws which particles die and are copied in a step."""
    return jax.random.fold_in(jax.random.fold_in(key, _EVENTS), step)


def across_key(key: Array, step: Array) -> Array:
    """The parent of the keys, one for each block, that draw the noise of a step across reduced radii."""
    return jax.random.fold_in(jax.random.fold_in(key, _ACROSS), step)
