"""Trees of arrays from single to double precision and back."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .._tracing import on_device
from .._typing import DType


def _cast(tree: PyTree, of: DType, to: DType) -> PyTree:
    cast = lambda v: on_device(np.asarray(v).astype(to)) if getattr(v, "dtype", None) == of else v
    return jax.tree.map(cast, tree)


def double(tree: PyTree) -> PyTree:
    """Float32 arrays as float64 (under `jax.enable_x64`)."""
    return _cast(tree, jnp.float32, jnp.float64)


def single(tree: PyTree) -> PyTree:
    """Float64 arrays as float32."""
    return _cast(tree, jnp.float64, jnp.float32)
