"""Gaussian expectations of activations in closed form.

(u, v) is centred Gaussian with variances q1, q2 and covariance q12. All functions act elementwise
on broadcastable arrays, follow their dtype, and are differentiable forwards and backwards.

Derivatives rest on Price's theorem, which needs no derivative of a square root or an arccosine:

    ∂/∂q12 E φ1(u)φ2(v) = E φ1'(u)φ2'(v),    ∂/∂q1 E φ1(u)φ2(v) = ½ E φ1''(u)φ2(v),

so that they are right on the diagonal q12 = √(q1 q2), where autodiff of the formulas is not.
"""

import math
from collections.abc import Callable
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .activations import Activation, Function, activation, is_named
from .elementwise import arctan2, common, ratio

Spec = str | Activation | Function
Dual = Callable[[ArrayLike, ArrayLike, ArrayLike], Array]
Mean = Callable[[ArrayLike, ArrayLike], Array]


def closed_dual(phi1: Spec, phi2: Spec) -> Dual | None:
    """The function (q1, q2, q12) ↦ E φ1(u)φ2(v) in closed form, or None if none is known here.

    Known, in either order: erf–erf; relu and leaky_relu with one another; gelu–gelu; sin and cos
    with one another; identity, square and hermite with one another; and identity with any
    activation but tanh, sigmoid and softplus; and an activation with itself that brings its own `dual`.

    Where q12² exceeds q1 q2 by rounding, the correlation counts as ±1. At q1 = 0 the derivatives
    for relu are infinite in q1 (reported: 0) and depend on the way there in q12 (reported: the one
    at correlation 1, which is the right one along q1 = q12 and for steepest ascent from w = 0).
    """
    return _find_dual(activation(phi1), activation(phi2))


def closed_mean(phi: Spec) -> Mean | None:
    """The function (μ, v) ↦ E φ(μ + √v z), z ~ N(0, 1), in closed form, or None if unknown.

    Known for all named activations but tanh, sigmoid and softplus, and where φ brings its own `mean`. At
    v = 0 it is φ(μ); at v = 0 on a kink, where the derivative in v is infinite, it is reported as 0.
    """
    return _find_mean(activation(phi))


# --- E φ1(u)φ2(v) ------------------------------------------------------------------------------


@cache  # one object per pair, so that it too can be a static argument of jit
def _find_dual(phi1: Activation, phi2: Activation) -> Dual | None:
    if phi1 == phi2 and phi1.dual is not None:
        return _elementwise(phi1.dual)
    if not (is_named(phi1) and is_named(phi2)):
        return None
    series1, series2 = _hermite_series(phi1), _hermite_series(phi2)
    if series1 and series2:
        return _elementwise(partial(_polynomial_dual, series1, series2))
    slope1, slope2 = _left_slope(phi1), _left_slope(phi2)
    if slope1 is not None and slope2 is not None:
        return _elementwise(partial(_leaky_dual, slope1, slope2))
    if (phi1.name, phi2.name) in _DUALS:
        return _elementwise(_DUALS[phi1.name, phi2.name])
    if phi1.name == "identity" and (mean_slope := _mean_slope(phi2)):
        return _elementwise(partial(_stein_dual, mean_slope, 1))
    if phi2.name == "identity" and (mean_slope := _mean_slope(phi1)):
        return _elementwise(partial(_stein_dual, mean_slope, 0))
    return None


def _hermite_series(phi: Activation) -> tuple[tuple[int, float], ...] | None:
    """φ = Σ c_k He_k/√k! as pairs (k, c_k)."""
    series = {"identity": ((1, 1.0),), "square": ((0, 1.0), (2, math.sqrt(2)))}
    return ((phi.options[0][1], 1.0),) if phi.name == "hermite" else series.get(phi.name)


def _polynomial_dual(series1, series2, q1: Array, q2: Array, q12: Array) -> Array:
    """From E exp(su − s²/2 + tv − t²/2) = exp(s²(q1−1)/2 + t²(q2−1)/2 + st q12):

    E He_m(u)He_n(v) = Σ m! n!/(k! i! j!) q12^k ((q1−1)/2)^i ((q2−1)/2)^j, k + 2i = m, k + 2j = n.
    """
    total = jnp.zeros_like(q12)
    for m, c1 in series1:
        for n, c2 in series2:
            for k in range(min(m, n), -1, -2) if (m - n) % 2 == 0 else ():
                i, j = (m - k) // 2, (n - k) // 2
                below = math.prod(map(math.factorial, (k, i, j))) * 2 ** (i + j)
                c = math.sqrt(math.factorial(m) * math.factorial(n) / below**2)
                total = total + c1 * c2 * c * q12**k * (q1 - 1) ** i * (q2 - 1) ** j
    return total


def _left_slope(phi: Activation) -> float | None:
    """a, where φ(h) = max(h, 0) + a min(h, 0)."""
    slopes = {"relu": 0.0, "identity": 1.0}
    return phi.options[0][1] if phi.name == "leaky_relu" else slopes.get(phi.name)


def _leaky_dual(a: float, b: float, q1: Array, q2: Array, q12: Array) -> Array:
    """φ = a h + (1−a) max(h, 0), and E u max(v, 0) = q12/2."""
    linear = a * b + 0.5 * (a * (1 - b) + b * (1 - a))
    return linear * q12 + (1 - a) * (1 - b) * _relu_dual(q1, q2, q12)


@jax.custom_jvp
def _relu_dual(q1: Array, q2: Array, q12: Array) -> Array:
    """√(q1q2)(sinϑ + (π−ϑ)cosϑ)/(2π)."""
    area, angle = _wedge(q1, q2, q12)
    return (area + (math.pi - angle) * q12) / (2 * math.pi)


@_relu_dual.defjvp
def _relu_dual_jvp(primals, tangents):
    """E φ'φ' = (π−ϑ)/(2π), ½ E φ''(u)φ(v) = √(q1q2) sinϑ/(4π q1)."""
    (q1, q2, _), (d1, d2, d12) = primals, tangents
    area, angle = _wedge(*primals)
    shear = 0.5 * (ratio(area, q1) * d1 + ratio(area, q2) * d2)
    return _relu_dual(*primals), ((math.pi - angle) * d12 + shear) / (2 * math.pi)


def _wedge(q1: Array, q2: Array, q12: Array) -> tuple[Array, Array]:
    """√(q1q2) sinϑ and ϑ."""
    # √(q·q) is q to the last digit, so that ϑ = 0 exactly on the diagonal.
    s = jnp.sqrt(q1 * q2)
    area = jnp.sqrt(jnp.maximum((s - q12) * (s + q12), 0.0))
    return area, arctan2(area, q12)


def _det(q1: Array, q2: Array, q12: Array) -> Array:
    """q1q2 − q12², its value (but not its derivative, needed on the diagonal) cut off at 0."""
    det = q1 * q2 - q12 * q12
    return det + jax.lax.stop_gradient(jnp.maximum(-det, 0.0))


def _erf_dual(q1: Array, q2: Array, q12: Array) -> Array:
    """(2/π) asin(2q12/√((1+2q1)(1+2q2))), as an arctangent: asin is steep at large q1 = q12."""
    adjacent = jnp.sqrt(1 + 2 * (q1 + q2) + 4 * _det(q1, q2, q12))
    return 2 / math.pi * arctan2(2 * q12, adjacent)


def _gelu_dual(q1: Array, q2: Array, q12: Array) -> Array:
    """With P the normal distribution function and G = E P(u)P(v), Stein's lemma twice gives

    E uP(u)vP(v) = q12 G + (q1q2 + q12²) ∂G/∂q12 + 2q12 (q1 ∂G/∂q1 + q2 ∂G/∂q2).
    """
    det = _det(q1, q2, q12)
    root = jnp.sqrt(1 + q1 + q2 + det)
    g = 0.25 + arctan2(q12, root) / (2 * math.pi)
    rest = det + q12 * q12 * (1 / (1 + q1) + 1 / (1 + q2))
    return q12 * g + rest / (2 * math.pi * root)


def _sin_dual(q1: Array, q2: Array, q12: Array) -> Array:
    """e^{−(q1+q2)/2} sinh q12, without overflow at large q12 or cancellation at small q12."""
    s = jnp.where(q12 < 0, -q12, q12)  # |q12|, with derivative 1 at 0 by construction
    value = -0.5 * jnp.exp(s - 0.5 * (q1 + q2)) * jnp.expm1(-2 * s)
    return jnp.where(q12 < 0, -value, value)


def _cos_dual(q1: Array, q2: Array, q12: Array) -> Array:
    """e^{−(q1+q2)/2} cosh q12."""
    return 0.5 * (jnp.exp(q12 - 0.5 * (q1 + q2)) + jnp.exp(-q12 - 0.5 * (q1 + q2)))


_DUALS = {
    ("erf", "erf"): _erf_dual,
    ("gelu", "gelu"): _gelu_dual,
    ("sin", "sin"): _sin_dual,
    ("cos", "cos"): _cos_dual,
    ("sin", "cos"): lambda q1, q2, q12: jnp.zeros_like(q12),
    ("cos", "sin"): lambda q1, q2, q12: jnp.zeros_like(q12),
}


def _stein_dual(mean_slope: Function, side: int, *q: Array) -> Array:
    """E u φ(v) = q12 E φ'(v)."""
    return q[2] * mean_slope(q[side])


def _mean_slope(phi: Activation) -> Function | None:
    """q ↦ E φ'(v), v ~ N(0, q)."""
    slopes: dict[str, Function] = {
        "erf": lambda q: 2 / jnp.sqrt(math.pi * (1 + 2 * q)),
        "gelu": lambda q: jnp.full_like(q, 0.5),
        "sin": lambda q: jnp.exp(-0.5 * q),
        "cos": jnp.zeros_like,
        "piecewise_linear": partial(_ramps_slope, phi),
    }
    return slopes.get(phi.name)


# --- E φ(μ + √v z) -----------------------------------------------------------------------------


@cache
def _find_mean(phi: Activation) -> Mean | None:
    if phi.mean is not None:
        return _elementwise(phi.mean)
    if not is_named(phi):
        return None
    if series := _hermite_series(phi):
        return _elementwise(partial(_polynomial_mean, series))
    if (a := _left_slope(phi)) is not None:
        return _elementwise(lambda mu, v: a * mu + (1 - a) * _relu_mean(mu, v))
    if phi.name == "piecewise_linear":
        return _elementwise(partial(_ramps_mean, phi))
    return _elementwise(_MEANS[phi.name]) if phi.name in _MEANS else None


def _polynomial_mean(series, mu: Array, v: Array) -> Array:
    """h_k = E He_k(μ + √v z)/√k! obeys √(k+1) h_{k+1} = μ h_k − √k (1−v) h_{k−1}, h_0 = 1."""
    h = [jnp.ones_like(mu), mu]
    for k in range(1, max(n for n, _ in series)):
        h.append((mu * h[k] - math.sqrt(k) * (1 - v) * h[k - 1]) / math.sqrt(k + 1))
    return sum((c * h[n] for n, c in series), jnp.zeros_like(mu))


@jax.custom_jvp
def _relu_mean(mu: Array, v: Array) -> Array:
    """μ P(μ/√v) + √v p(μ/√v), p and P the normal density and distribution function."""
    return mu * _above(mu, v) + v * _density(mu, v)


@_relu_mean.defjvp
def _relu_mean_jvp(primals, tangents):
    """∂/∂μ = E φ' and ∂/∂v = ½ E φ''."""
    dmu, dv = tangents
    return _relu_mean(*primals), _above(*primals) * dmu + 0.5 * _density(*primals) * dv


def _above(mu: Array, v: Array) -> Array:
    """P(μ + √v z > 0)."""
    z = mu * jax.lax.rsqrt(jnp.where(v > 0, v, 1.0))
    return jnp.where(v > 0, 0.5 * jax.lax.erfc(-z / math.sqrt(2)), jnp.where(mu > 0, 1.0, 0.0))


def _density(mu: Array, v: Array) -> Array:
    """The density of N(0, v) at μ, and 0 at v = 0."""
    scale = jax.lax.rsqrt(jnp.where(v > 0, v, 1.0))
    return jnp.where(v > 0, scale * jnp.exp(-0.5 * (mu * scale) ** 2), 0.0) / math.sqrt(2 * math.pi)


def _ramps_mean(phi: Activation, mu: Array, v: Array) -> Array:
    """φ(h) = y_0 + Σ_i (jump of φ' at x_i) max(h − x_i, 0)."""
    start = jnp.full_like(mu, phi.options[0][1][0][1])
    return sum((jump * _relu_mean(mu - x, v) for x, jump in _jumps_of_slope(phi)), start)


def _ramps_slope(phi: Activation, q: Array) -> Array:
    none = jnp.zeros_like(q)
    return sum((jump * _above(none - x, q) for x, jump in _jumps_of_slope(phi)), none)


def _jumps_of_slope(phi: Activation) -> list[tuple[float, float]]:
    x, y = np.array(phi.options[0][1]).T
    slopes = np.concatenate([[0.0], np.diff(y) / np.diff(x), [0.0]])
    return list(zip(x.tolist(), np.diff(slopes).tolist(), strict=True))


def _gelu_mean(mu: Array, v: Array) -> Array:
    """μ P(μ/√(1+v)) + v p(μ/√(1+v))/√(1+v): Stein's lemma."""
    return mu * _above(mu, 1 + v) + v * _density(mu, 1 + v)


_MEANS = {
    "erf": lambda mu, v: jax.lax.erf(mu / jnp.sqrt(1 + 2 * v)),
    "gelu": _gelu_mean,
    "sin": lambda mu, v: jnp.sin(mu) * jnp.exp(-0.5 * v),
    "cos": lambda mu, v: jnp.cos(mu) * jnp.exp(-0.5 * v),
}


def _elementwise(fn: Callable[..., Array]) -> Callable[..., Array]:
    return jax.jit(lambda *arrays: fn(*common(*arrays)))
