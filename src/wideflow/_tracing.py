"""Small helpers at the door of compiled functions."""

from typing import Any

import jax
import jax.numpy as jnp


def traced(tree: Any) -> Any:
    """Python floats as arrays, so that another step size or temperature does not recompile."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, tree)
