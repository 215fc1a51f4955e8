"""Gaussian expectations of activations (theory.md §7), in closed form and by quadrature.

(u, v) is centred Gaussian with variances q1, q2 and covariance q12. All functions act elementwise
on broadcastable arrays, follow their dtype, and are differentiable forwards and backwards.

Derivatives rest on Price's theorem, which needs no derivative of a square root or an arccosine:

    ∂/∂q12 E φ1(u)φ2(v) = E φ1'(u)φ2'(v),    ∂/∂q1 E φ1(u)φ2(v) = ½ E φ1''(u)φ2(v),

so that they are right on the diagonal q12 = √(q1 q2), where autodiff of the formulas is not.
"""

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .activations import Activation, Function, activation, derivative, jumps
from .nodes import gauss_hermite

Spec = str | Activation | Function
Dual = Callable[[ArrayLike, ArrayLike, ArrayLike], Array]
Mean = Callable[[ArrayLike, ArrayLike], Array]


def closed_dual(phi1: Spec, phi2: Spec) -> Dual | None:
    """The function (q1, q2, q12) ↦ E φ1(u)φ2(v) in closed form, or None if none is known here.

    Known, in either order: erf–erf; relu and leaky_relu with one another; gelu–gelu; sin and cos
    with one another; identity, square and hermite with one another; and identity with any
    activation but tanh, sigmoid and softplus.

    Where q12² exceeds q1 q2 by rounding, the correlation counts as ±1. At q1 = 0 the derivatives
    for relu are infinite in q1 (reported: 0) and depend on the way there in q12 (reported: the one
    at correlation 1, which is the right one along q1 = q12 and for steepest ascent from w = 0).
    """
    return _find_dual(activation(phi1), activation(phi2))


def closed_mean(phi: Spec) -> Mean | None:
    """The function (μ, v) ↦ E φ(μ + √v z), z ~ N(0, 1), in closed form, or None if unknown.

    Known for all named activations but tanh, sigmoid and softplus. At v = 0 it is φ(μ); at v = 0
    on a kink, where the derivative in v is infinite, it is reported as 0.
    """
    return _find_mean(activation(phi))


# --- E φ1(u)φ2(v) ------------------------------------------------------------------------------


@cache  # one object per pair, so that it too can be a static argument of jit
def _find_dual(phi1: Activation, phi2: Activation) -> Dual | None:
    if not (_is_named(phi1) and _is_named(phi2)):
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


def _is_named(phi: Activation) -> bool:
    """Whether φ is the library's own: a user's function may be called `erf` and be another one."""
    try:
        return phi == activation(phi.name, **dict(phi.options))
    except ValueError:
        return False


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
    shear = 0.5 * (_ratio(area, q1) * d1 + _ratio(area, q2) * d2)
    return _relu_dual(*primals), ((math.pi - angle) * d12 + shear) / (2 * math.pi)


def _wedge(q1: Array, q2: Array, q12: Array) -> tuple[Array, Array]:
    """√(q1q2) sinϑ and ϑ."""
    # √(q·q) is q to the last digit, so that ϑ = 0 exactly on the diagonal.
    s = jnp.sqrt(q1 * q2)
    area = jnp.sqrt(jnp.maximum((s - q12) * (s + q12), 0.0))
    return area, jnp.arctan2(area, q12)


def _det(q1: Array, q2: Array, q12: Array) -> Array:
    """q1q2 − q12², its value (but not its derivative, needed on the diagonal) cut off at 0."""
    det = q1 * q2 - q12 * q12
    return det + jax.lax.stop_gradient(jnp.maximum(-det, 0.0))


def _erf_dual(q1: Array, q2: Array, q12: Array) -> Array:
    """(2/π) asin(2q12/√((1+2q1)(1+2q2))), as an arctangent: asin is steep at large q1 = q12."""
    adjacent = jnp.sqrt(1 + 2 * (q1 + q2) + 4 * _det(q1, q2, q12))
    return 2 / math.pi * jnp.arctan2(2 * q12, adjacent)


def _gelu_dual(q1: Array, q2: Array, q12: Array) -> Array:
    """With P the normal distribution function and G = E P(u)P(v), Stein's lemma twice gives

    E uP(u)vP(v) = q12 G + (q1q2 + q12²) ∂G/∂q12 + 2q12 (q1 ∂G/∂q1 + q2 ∂G/∂q2).
    """
    det = _det(q1, q2, q12)
    root = jnp.sqrt(1 + q1 + q2 + det)
    g = 0.25 + jnp.arctan2(q12, root) / (2 * math.pi)
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
    if not _is_named(phi):
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


# --- quadrature --------------------------------------------------------------------------------


def gauss_mean(phi: Spec, mu: ArrayLike, v: ArrayLike, order: int) -> Array:
    """E φ(μ + √v z), z ~ N(0, 1): `order` Gauss–Hermite nodes for a smooth φ.

    With kinks, z is cut there, and each piece of [−10, 10] has `order` Gauss–Legendre nodes, of
    which 32 give 13 digits for piecewise linear φ. Smooth φ: see `quadrature_dual`.
    """
    phi = activation(phi)
    mean = _raw_mean if phi.kinks else _smooth_mean
    return mean(phi, *_common(mu, v), order)


def quadrature_dual(
    phi1: Spec, phi2: Spec, q1: ArrayLike, q2: ArrayLike, q12: ArrayLike, order: int
) -> Array:
    """E φ1(u)φ2(v) by a product rule: Gauss–Hermite for a smooth pair, cut at the kinks otherwise.

    Nodes per dimension for an absolute error of 1e-10 at any correlation, measured:

    | pair | variances 1 | variances 4 |
    |---|---|---|
    | sin–sin; polynomials of degree k | 16; k + 1 | 24; k + 1 |
    | gelu–gelu | 32 | 96 |
    | erf–erf | 50 | 160 |
    | tanh–tanh | 88 | 300 |
    | relu–relu, piecewise linear (nodes per piece) | 24 | 24 |
    | tanh–tanh with `kinks=(0.0,)` (nodes per piece) | 32 | 36 |

    As the last row shows, the cut rule is the better one for a φ that is steep on the scale √q.

    Derivatives, by Price's theorem, hold on the diagonal too, and so long as φ1 and φ2 are
    continuous; where φ jumps they are those of the rule, which fail at correlation ±1.
    """
    phi1, phi2 = activation(phi1), activation(phi2)
    dual = _raw_dual if jumps(phi1) or jumps(phi2) else _price_dual
    return dual(phi1, phi2, *_common(q1, q2, q12), order)


@partial(jax.jit, static_argnums=(0, 3))
def _raw_mean(phi: Activation, mu: Array, v: Array, order: int) -> Array:
    r = _sqrt(v)
    z, w = _rule(order, mu, bool(phi.kinks), [_ratio(k - mu, r) for k in phi.kinks])
    return jnp.sum(w * phi(mu + r * z), 0)


@partial(jax.custom_jvp, nondiff_argnums=(0, 3))
def _smooth_mean(phi: Activation, mu: Array, v: Array, order: int) -> Array:
    return _raw_mean(phi, mu, v, order)


@_smooth_mean.defjvp
def _smooth_mean_jvp(phi, order, primals, tangents):
    """∂/∂μ = E φ' and ∂/∂v = ½ E φ'', which hold at v = 0 too."""
    first = derivative(phi)
    means = [_smooth_mean(f, *primals, order) for f in (phi, first, derivative(first))]
    return means[0], means[1] * tangents[0] + 0.5 * means[2] * tangents[1]


@partial(jax.jit, static_argnums=(0, 1, 5))
def _raw_dual(phi1, phi2, q1: Array, q2: Array, q12: Array, order: int) -> Array:
    """u = √q1 (A s + B t), v = ±√q2 (A s − B t), s and t independent, A² − B² = |correlation|.

    Lines of kinks cross the direction of s at 45° or more, whatever the correlation, so the inner
    integral over s, cut at the kinks, is smooth in t but where two of these lines meet.
    """
    r1, r2 = _sqrt(q1), _sqrt(q2)
    rho = jnp.clip(_ratio(q12, _sqrt(q1 * q2)), -1.0, 1.0)
    sign = jnp.where(rho < 0, -1.0, 1.0).astype(rho.dtype)
    a, b = _sqrt(0.5 * (1 + sign * rho)), _sqrt(0.5 * (1 - sign * rho))
    cuts1 = [_ratio(k, r1) for k in phi1.kinks]
    cuts2 = [_ratio(k, sign * r2) for k in phi2.kinks]
    rule = partial(_rule, order, q12, bool(cuts1 or cuts2))

    def add(total, node):
        t, weight = node
        s, w = rule([(c - b * t) / a for c in cuts1] + [(c + b * t) / a for c in cuts2])
        product = phi1(r1 * (a * s + b * t)) * phi2(sign * r2 * (a * s - b * t))
        return total + weight * jnp.sum(w * product, 0), None

    # One outer node at a time, so that the memory is that of the inner rule.
    outer = rule([_ratio(c1 - c2, 2 * b) for c1 in cuts1 for c2 in cuts2])
    return jax.lax.scan(add, jnp.zeros_like(q12), outer)[0]


@partial(jax.custom_jvp, nondiff_argnums=(0, 1, 5))
def _price_dual(phi1, phi2, q1: Array, q2: Array, q12: Array, order: int) -> Array:
    return _raw_dual(phi1, phi2, q1, q2, q12, order)


@_price_dual.defjvp
def _price_dual_jvp(phi1, phi2, order, primals, tangents):
    (q1, q2, q12), (d1, d2, d12) = primals, tangents
    both = quadrature_dual(derivative(phi1), derivative(phi2), *primals, order)

    def half_curvature(phi, other, q, q_other):
        """½ E φ''(u)φ2(v); with kinks, φ'' by Stein: E uφ'(u)φ2(v) = q1 E φ''φ2 + q12 E φ'φ2'."""
        if not phi.kinks:
            return 0.5 * quadrature_dual(derivative(derivative(phi)), other, q, q_other, q12, order)
        radial = quadrature_dual(_radial(phi), other, q, q_other, q12, order)
        return _ratio(0.5 * (radial - q12 * both), q)

    tangent = both * d12 + half_curvature(phi1, phi2, q1, q2) * d1
    tangent = tangent + half_curvature(phi2, phi1, q2, q1) * d2
    return _price_dual(phi1, phi2, *primals, order), tangent


@cache
def _radial(phi: Activation) -> Activation:
    """h ↦ h φ'(h)."""
    return Activation(f"h {phi.name}'", lambda h: h * derivative(phi)(h), kinks=phi.kinks)


def _rule(order: int, like: Array, split: bool, cuts: list[Array]) -> tuple[Array, Array]:
    """Nodes z and weights of E q(z), z ~ N(0, 1), along a new first axis before that of `like`.

    Gauss–Hermite, or Gauss–Legendre between the `cuts` of [−10, 10], outside which the normal law
    weighs 1e-23. A further cut near 0 halves the longest piece; not at 0, where it could coincide
    with a kink, whose motion the derivative of the rule would then share between the two.
    """
    rule = _gauss_legendre(order) if split else gauss_hermite(order)
    x, w = (jnp.asarray(a, like.dtype).reshape(-1, *[1] * like.ndim) for a in rule)
    if not split:
        shape = (order, *like.shape)
        return jnp.broadcast_to(x, shape), jnp.broadcast_to(w, shape)
    ends = [jnp.full_like(like, end) for end in (-10.0, 0.123, 10.0)]
    edges = jnp.sort(jnp.stack([*ends, *(jnp.clip(c, -10.0, 10.0) for c in cuts)]), 0)
    half = 0.5 * jnp.diff(edges, axis=0)[:, None]
    z = edges[:-1, None] + half * (1 + x)
    weights = half * w * jnp.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return z.reshape(-1, *like.shape), weights.reshape(-1, *like.shape)


@lru_cache(maxsize=64)
def _gauss_legendre(order: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(order)


def _sqrt(x: Array) -> Array:
    """√x with derivative 0, not ∞, at x ≤ 0."""
    return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)


def _ratio(x: ArrayLike, y: Array) -> Array:
    """x/y, and 0 where y = 0."""
    return jnp.where(y == 0, 0.0, x / jnp.where(y == 0, 1.0, y))


def _common(*arrays: ArrayLike) -> list[Array]:
    """Broadcast to one shape and one float dtype."""
    dtype = jnp.result_type(float, *arrays)
    return jnp.broadcast_arrays(*(jnp.asarray(a, dtype) for a in arrays))


def _elementwise(fn: Callable[..., Array]) -> Callable[..., Array]:
    return jax.jit(lambda *arrays: fn(*_common(*arrays)))
