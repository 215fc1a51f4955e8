"""Weighted data sets, the common currency of every expectation, and the Gauss rules behind some."""

import functools
import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import finite


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
        if isinstance(self.weights, jax.core.Tracer):
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

    def astype(self, dtype: Any) -> "Nodes":
        """The same data with all its floats of one type; class numbers stay whole."""
        cast = lambda v: v.astype(dtype) if jnp.issubdtype(v.dtype, jnp.floating) else v
        return Nodes(self.x.astype(dtype), cast(self.y), self.weights.astype(dtype))


def _array(name: str, values: Any) -> Array:
    if isinstance(values, jax.core.Tracer):
        return values
    checked = finite(name, values)
    return values if isinstance(values, jax.Array) else jnp.asarray(checked)


def uniform(x: Array, y: Array) -> Nodes:
    """The data set (x, y) with equal weights."""
    m = x.shape[0]
    return Nodes(x, y, jnp.full(m, 1.0 / m, x.dtype))


@functools.lru_cache(maxsize=64)
def gauss_hermite(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of E q(z), z ~ N(0, 1); exact for polynomials of degree < 2·order."""
    from scipy.special import roots_hermitenorm

    z, w = roots_hermitenorm(order)
    return z, w / w.sum()


def product(rules: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The product of one-dimensional rules: points (Π m_i, dim) and weights."""
    points = np.array(list(itertools.product(*(z for z, _ in rules))))
    weights = functools.reduce(np.multiply.outer, (w for _, w in rules)).ravel()
    return points, weights


def gaussian_rule(d: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Product Gauss–Hermite rule of N(0, I_d)."""
    return product([gauss_hermite(order)] * d)


def sphere_rule(d: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Rule of the uniform law on the unit sphere of R², R³: equispaced angles (spectral for smooth
    periodic functions), times Gauss–Legendre in the height for d = 3; exact for polynomials of
    degree < order."""
    angles = 2 * np.pi * (np.arange(order) + 0.5) / order
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if d == 2:
        return circle, np.full(order, 1 / order)
    height, w = np.polynomial.legendre.leggauss((order + 1) // 2)
    radius = np.sqrt(1 - height**2)
    points = np.concatenate(
        [np.column_stack([r * circle, np.full(order, z)]) for r, z in zip(radius, height, strict=True)]
    )
    return points, np.repeat(w / 2, order) / order
