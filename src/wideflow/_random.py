"""Draws outside of compiled code. As single operations JAX compiles them at LLVM's highest level, which takes
seconds for each shape; here they are programs that compile in a tenth of it, with the same draws."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, DTypeLike

from ._tracing import jit_once


def normal(key: Array, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> Array:
    """Independent N(0, 1), in JAX's own float if none is said."""
    return _normal(key, shape, jnp.result_type(float if dtype is None else dtype))


@jit_once
def _normal(key: Array, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    return jax.random.normal(key, shape, dtype)
