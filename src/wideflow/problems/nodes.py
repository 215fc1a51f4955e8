"""Weighted data sets, the common currency of every expectation."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from .._checks import finite, is_traced


class Nodes(eqx.Module):
    """E[q(x, y)] = Σ_i weights_i q(x_i, y_i), weights summing to 1."""

    x: Float[Array, "m d"] = eqx.field(converter=lambda v: _array("Nodes(x)", v))
    y: Array = eqx.field(converter=lambda v: _array("Nodes(y)", v))
    weights: Float[Array, " m"] = eqx.field(converter=lambda v: _array("Nodes(weights)", v))

    def __check_init__(self):
        x, y, weights = self.x.shape, self.y.shape, self.weights.shape
        if len(x) != 2 or x[0] < 1 or y[:1] != x[:1] or weights != x[:1]:
            raise ValueError(
                f"Nodes need x of shape (m, d), y (m,) or (m, outputs) and weights (m,), m >= 1, got {x}, "
                f"{y} and {weights}."
            )
        if is_traced(self.weights):
            return  # under jit there are no values to check
        omega = np.asarray(self.weights)
        # 1e-4: m float32 weights are rounded in the seventh digit, their sum in the fifth
        if (omega < 0).any() or not np.isclose(omega.sum(), 1.0, atol=1e-4):
            raise ValueError(
                f"Nodes(weights) must be >= 0 and sum to 1; the sum is {omega.sum()}, the least "
                f"{omega.min()}. Try weights / weights.sum()."
            )

    @property
    def m(self) -> int:
        return self.x.shape[0]

    def astype(self, dtype: DTypeLike) -> "Nodes":
        """The same data with all its floats of one type; class numbers stay whole."""
        cast = lambda v: v.astype(dtype) if jnp.issubdtype(v.dtype, jnp.floating) else v
        return Nodes(self.x.astype(dtype), cast(self.y), self.weights.astype(dtype))


def _array(name: str, values: Any) -> Array:
    if is_traced(values):
        return values
    checked = finite(name, values)
    return values if isinstance(values, jax.Array) else jnp.asarray(checked)


def uniform(x: Array, y: Array) -> Nodes:
    """The data set (x, y) with equal weights."""
    m = x.shape[0]
    return Nodes(x, y, jnp.full(m, 1.0 / m, x.dtype))
