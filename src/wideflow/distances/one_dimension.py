"""W2 on the line, where sorting is optimal."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def w2_line(
    x: Float[Array, " n"],
    y: Float[Array, " m"],
    x_weights: Float[Array, " n"] | None = None,
    y_weights: Float[Array, " m"] | None = None,
) -> Float[Array, ""]:
    """W2(μ, ν) = (∫₀¹ |F_μ⁻¹(q) − F_ν⁻¹(q)|² dq)^½ of two weighted clouds on the line, exactly: both
    quantile functions are steps, and the integral is the sum over their joint steps."""
    x, y = jnp.asarray(x), jnp.asarray(y)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"w2_line takes points on the line, (n,) and (m,): {x.shape}, {y.shape}.")
    sorted_x, levels_x = _quantiles(x, x_weights)
    sorted_y, levels_y = _quantiles(y, y_weights)
    levels = jnp.sort(jnp.concatenate([levels_x, levels_y]))
    widths = jnp.diff(levels, prepend=0.0)
    middles = levels - widths / 2
    at = lambda points, steps: points[jnp.minimum(jnp.searchsorted(steps, middles), points.shape[0] - 1)]
    gap = at(sorted_x, levels_x) - at(sorted_y, levels_y)
    return jnp.sqrt(jnp.sum(widths * gap**2))


def _quantiles(points: Array, weights: Array | None) -> tuple[Array, Array]:
    mass = jnp.ones(points.shape) if weights is None else jnp.asarray(weights)
    if mass.shape != points.shape:
        raise ValueError(f"weights must have the shape of the points, {points.shape}, got {mass.shape}.")
    order = jnp.argsort(points)
    levels = jnp.cumsum(mass[order])
    return points[order], levels / levels[-1]
