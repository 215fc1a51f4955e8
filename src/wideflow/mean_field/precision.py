"""Trees of arrays from single to double precision and back."""

from typing import Any

import jax
import jax.numpy as jnp


def _cast(tree: Any, of: Any, to: Any) -> Any:
    return jax.tree.map(lambda v: v.astype(to) if getattr(v, "dtype", None) == of else v, tree)


def double(tree: Any) -> Any:
    """Float32 arrays as float64 (under `jax.enable_x64`)."""
    return _cast(tree, jnp.float32, jnp.float64)


def single(tree: Any) -> Any:
    """Float64 arrays as float32."""
    return _cast(tree, jnp.float64, jnp.float32)
