"""Weighted data sets, the common currency of every expectation, and the Gauss rules behind some."""

import functools
import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class Nodes(eqx.Module):
    """E[q(x, y)] = Σ_i weights_i q(x_i, y_i), weights summing to 1."""

    x: Float[Array, "m d"]
    y: Array
    weights: Float[Array, " m"]

    @property
    def m(self) -> int:
        return self.x.shape[0]


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
    periodic functions), times Gauss–Legendre in the height for d = 3."""
    angles = 2 * np.pi * (np.arange(order) + 0.5) / order
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if d == 2:
        return circle, np.full(order, 1 / order)
    height, w = np.polynomial.legendre.leggauss(order // 2)
    radius = np.sqrt(1 - height**2)
    points = np.concatenate(
        [np.column_stack([r * circle, np.full(order, z)]) for r, z in zip(radius, height, strict=True)]
    )
    return points, np.repeat(w / 2, order) / order
