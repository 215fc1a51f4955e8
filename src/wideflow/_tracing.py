"""Small helpers at the door of compiled functions."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def traced(tree: PyTree) -> PyTree:
    """Python floats as arrays, so that another step size or temperature does not recompile."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, tree)
