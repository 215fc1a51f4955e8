"""Elementary functions with the derivatives and the speed that dual activations need."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array


def sqrt0(x: Array) -> Array:
    """√x with derivative 0, not ∞, at x ≤ 0."""
    return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)


def ratio(x: ArrayLike, y: Array) -> Array:
    """x/y, and 0 where y = 0."""
    return jnp.where(y == 0, 0.0, x / jnp.where(y == 0, 1.0, y))


def common(*arrays: ArrayLike) -> list[Array]:
    """Broadcast to one shape and one float dtype."""
    dtype = jnp.result_type(float, *arrays)
    return jnp.broadcast_arrays(*(jnp.asarray(a, dtype) for a in arrays))


@functools.cache
def _coefficients() -> np.ndarray:
    """asin(s)/s as a polynomial in z = s² on [0, ¼]: its power series, economised by Chebyshev
    polynomials. The nearest singularity, z = 1, makes degree 13 exact to 1e-16."""
    series = np.ones(40)
    for k in range(1, 40):
        series[k] = series[k - 1] * (2 * k - 1) / (2 * k)
    series /= 2 * np.arange(40) + 1
    power, chebyshev = np.polynomial.Polynomial, np.polynomial.Chebyshev
    short = power(series).convert(kind=chebyshev, domain=[0, 0.25]).truncate(14)
    return short.convert(kind=power).coef


def _arcsin(s: Array) -> Array:
    """asin s for 0 ≤ s ≤ 1: by the polynomial up to ½, by π/2 − 2 asin √((1 − s)/2) beyond."""
    far, angle = _folded(s)
    return jnp.where(far, np.pi / 2 - 2 * angle, angle)


def _folded(s: Array) -> tuple[Array, Array]:
    """Whether s > ½, and the asin of √((1 − s)/2) there, of s elsewhere, for 0 ≤ s ≤ 1."""
    far = s > 0.5
    near = jnp.where(far, jnp.sqrt(jnp.maximum(0.5 * (1 - s), 0.0)), s)
    z, total = near * near, jnp.zeros_like(s)
    for c in _coefficients()[::-1]:
        total = total * z + jnp.asarray(c, s.dtype)
    return far, near * total


@jax.custom_jvp
def arccos(c: Array) -> Array:
    """The angle in [0, π] whose cosine is c, −1 ≤ c ≤ 1, elementwise and vectorised as `arctan2`; near
    c = 1 as exact as 1 − c is. Its derivative at ±1, which is infinite, is reported as 0."""
    far, angle = _folded(jnp.abs(c))
    angle = jnp.where(far, 2 * angle, np.pi / 2 - angle)
    return jnp.where(c < 0, np.pi - angle, angle)


@arccos.defjvp
def _arccos_jvp(primals, tangents):
    (c,), (dc,) = primals, tangents
    return arccos(c), -ratio(dc, sqrt0((1 - c) * (1 + c)))


@jax.custom_jvp
def arctan2(y: Array, x: Array) -> Array:
    """The angle of (x, y) in [−π, π], elementwise; 0 at the origin.

    XLA calls a scalar routine for each entry, which makes up most of the cost of a table of dual
    activations; this one the compiler can vectorise, and it is ten times faster."""
    long, short = jnp.maximum(jnp.abs(x), jnp.abs(y)), jnp.minimum(jnp.abs(x), jnp.abs(y))
    slope = short / jnp.where(long > 0, long, 1.0)  # before squaring, which could overflow
    angle = _arcsin(slope * jax.lax.rsqrt(1 + slope * slope))
    angle = jnp.where(jnp.abs(y) > jnp.abs(x), np.pi / 2 - angle, angle)
    angle = jnp.where(x < 0, np.pi - angle, angle)
    return jnp.where(y < 0, -angle, angle)


@arctan2.defjvp
def _arctan2_jvp(primals, tangents):
    (y, x), (dy, dx) = primals, tangents
    square = x * x + y * y
    return arctan2(y, x), (x * dy - y * dx) / jnp.where(square > 0, square, 1.0)
