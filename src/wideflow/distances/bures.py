"""W2 between Gaussians."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def w2_gaussian(
    mean1: Float[Array, " D"],
    cov1: Float[Array, "D D"],
    mean2: Float[Array, " D"],
    cov2: Float[Array, "D D"],
) -> Float[Array, ""]:
    """W2² = |m₁ − m₂|² + tr(C₁ + C₂ − 2(C₁^½ C₂ C₁^½)^½), the Bures–Wasserstein distance."""
    mean1, cov1, mean2, cov2 = (jnp.atleast_1d(jnp.asarray(v)) for v in (mean1, cov1, mean2, cov2))
    if cov1.ndim != 2 or cov1.shape != cov2.shape or mean1.shape != mean2.shape:
        raise ValueError(
            f"w2_gaussian needs means (D,) and covariances (D, D), got {mean1.shape}, {cov1.shape}, "
            f"{mean2.shape}, {cov2.shape}."
        )
    root = _root(cov1)
    cross = _root(root @ cov2 @ root)
    square = jnp.sum((mean1 - mean2) ** 2) + jnp.trace(cov1 + cov2 - 2 * cross)
    return jnp.sqrt(jnp.maximum(square, 0.0))


def _root(matrix: Array) -> Array:
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))) @ vectors.T
