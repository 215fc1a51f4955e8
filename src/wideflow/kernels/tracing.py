"""Whether numbers can be looked at, or only shapes."""

import jax
import jax.numpy as jnp


def is_traced(*trees: object) -> bool:
    """Whether an operation on these arrays (pytrees of them) would be traced: one of them is inside jit, grad
    or vmap, or all operations are, as in a function that jit compiles. Then no choice may depend on numbers,
    and nothing can be checked but shapes."""
    leaves = jax.tree.leaves(trees)
    return any(isinstance(leaf, jax.core.Tracer) for leaf in (*leaves, jnp.zeros(())))
