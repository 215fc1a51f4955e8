"""E φ(h + ρu), u one coordinate of a uniform point of the sphere of radius √dim in R^dim.

For dim = ∞ this is the Gaussian mean. Integrals are cut at the kinks of φ, pair by pair, so that a piecewise
smooth activation converges as fast as a smooth one."""

import math
from functools import cache, lru_cache, partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .activations import Activation, derivative, is_named, jumps
from .elementwise import common, ratio
from .gauss import Rule, gauss_legendre, gauss_of, gauss_sphere

_BROKEN_LINES = ("relu", "leaky_relu", "piecewise_linear")
_AT_ONCE = 4  # nodes per turn of a loop: more are a little faster, but slow to compile (measured)
_REACH = 8.8  # standard deviations, beyond which N(0, 1) has mass 1e-18


def sphere_mean(phi: Activation, h: Array, rho: Array, dim: float, order: int) -> Array:
    """E φ(h + ρu) of every pair: `order` Gauss–Gegenbauer nodes, or `order` Gauss–Legendre nodes
    between any two kinks. Derivatives are E φ'(h + ρu) and E uφ'(h + ρu) by the same rule."""
    if is_broken_line(phi):
        return _broken_line(phi, *common(h, rho), dim)  # type: ignore[arg-type, call-arg]
    h, rho = common(h, rho)
    return (_raw if jumps(phi) else _mean)(phi, h, rho, dim, order)


def is_broken_line(phi: Activation) -> bool:
    """Whether φ is piecewise linear, so that its mean needs no nodes."""
    return phi.name in _BROKEN_LINES and is_named(phi)


def _broken_line(phi: Activation, h: Array, rho: Array, dim: float) -> Array:
    """Of φ(t) = φ(k₁) + slope₀ (t − k₁) + Σ_k bend_k (t − k)₊ the mean needs no values of φ:

        E (h + ρu − k)₊ = (h − k) P(u > c) + ρ E[u; u > c],   c = (k − h)/ρ,

    with the second term in closed form and the first by a polynomial."""
    kinks = np.asarray(phi.kinks)
    with jax.ensure_compile_time_eval():
        inside = np.concatenate([[kinks[0] - 1.0], (kinks[1:] + kinks[:-1]) / 2, [kinks[-1] + 1.0]])
        slopes = np.asarray(derivative(phi)(jnp.asarray(inside, float)))
        left = float(phi(jnp.asarray(kinks[0], float)))
    total = left + slopes[0] * (h - kinks[0])
    for kink, bend in zip(kinks, np.diff(slopes), strict=True):
        total = total + bend * _ramp(h - kink, rho, dim)
    return total


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _ramp(h: Array, rho: Array, dim: float) -> Array:
    """E (h + ρu)₊."""
    above, mean = _tail(h, rho, dim)
    return h * above + rho * mean


@_ramp.defjvp
def _ramp_jvp(dim, primals, tangents):
    h, rho = primals
    above, mean = _tail(h, rho, dim)
    return h * above + rho * mean, above * tangents[0] + mean * tangents[1]


def _tail(h: Array, rho: Array, dim: float) -> tuple[Array, Array]:
    """P(h + ρu > 0) and E[u; h + ρu > 0]. At ρ = 0 the law is a point."""
    size, sign = jnp.abs(rho), jnp.where(rho < 0, -1.0, 1.0).astype(h.dtype)
    reach = reach_of(dim)
    end = jnp.clip(_angle(ratio(h, size), dim), -reach, reach)
    below = 1.0 if math.isinf(dim) else jnp.cos(end / _root(dim)) * (dim / (dim - 1))
    mean = _density(end, dim) * below
    sure = (size == 0) | (jnp.abs(end) >= reach)
    above = jnp.where(sure, (h > 0).astype(h.dtype), _distribution(end, dim))
    return above, jnp.where(size == 0, 0.0, sign * mean)


def _distribution(angle: Array, dim: float) -> Array:
    """P(the angle of u is less), by Clenshaw's sum: vectorised, where special functions are not."""
    x = angle / reach_of(dim)
    y, one, two = 2 * x * x - 1, jnp.zeros_like(x), jnp.zeros_like(x)
    for c in _distribution_series(dim)[:0:-1]:
        one, two = 2 * y * one - two + jnp.asarray(c, x.dtype), one
    return 0.5 + x * (y * one - two + jnp.asarray(_distribution_series(dim)[0], x.dtype))


@cache
def _distribution_series(dim: float) -> np.ndarray:
    """(P(angle < x·reach) − ½)/x, an even function of x ∈ [−1, 1], in Chebyshev polynomials of 2x² − 1;
    to 16 digits, which takes 40 of them for a Gaussian."""
    from scipy.fft import dct

    half, (nodes, weights) = 0.5 * reach_of(dim), gauss_legendre(200)
    phase = np.pi * (np.arange(96) + 0.5) / 96  # x = cos(phase/2), 2x² − 1 = cos(phase)
    mean = half * (_bump(half * np.cos(phase / 2)[:, None] * (1 + nodes), dim) @ weights) / _mass(dim)
    series = dct(mean) / 96
    series[0] /= 2
    return series[: 1 + np.flatnonzero(np.abs(series) > 5e-16)[-1]]


@partial(jax.custom_jvp, nondiff_argnums=(0, 3, 4))
def _mean(phi: Activation, h: Array, rho: Array, dim: float, order: int) -> Array:
    return _raw(phi, h, rho, dim, order)


@_mean.defjvp
def _mean_jvp(phi, dim, order, primals, tangents):
    h, rho = primals
    first = derivative(phi)

    def integrand(t, u):
        slope = first(t)
        return phi(t), slope, u * slope

    mean, by_h, by_rho = _integral(integrand, phi.kinks, h, rho, dim, order, 3)
    return mean, by_h * tangents[0] + by_rho * tangents[1]


def _raw(phi: Activation, h: Array, rho: Array, dim: float, order: int) -> Array:
    return _integral(lambda t, u: (phi(t),), phi.kinks, h, rho, dim, order, 1)[0]


def _integral(fn, kinks, h: Array, rho: Array, dim: float, order: int, size: int) -> tuple[Array, ...]:
    """E fn(h + ρu, u) of the `size` components of fn, a few nodes at a time, so that only sums are kept in
    memory."""
    zero = (jnp.zeros_like(h),) * size
    plus = lambda total, weight, values: tuple(t + weight * v for t, v in zip(total, values, strict=True))
    if not kinks:
        rule = tuple(jnp.asarray(v, h.dtype) for v in gauss_sphere(order, dim))
        add = lambda total, node: (plus(total, node[1], fn(h + rho * node[0], node[0])), None)
        return jax.lax.scan(add, zero, rule, unroll=_AT_ONCE)[0]
    root, reach = _root(dim), reach_of(dim)
    cuts = [_angle(ratio(k - h, rho), dim) for k in kinks]
    ends = [jnp.full_like(h, end) for end in (-reach, 0.0, reach)]
    edges = jnp.sort(jnp.stack([*ends, *(jnp.clip(c, -reach, reach) for c in cuts)]), axis=0)
    rule = tuple(jnp.asarray(v, h.dtype) for v in gauss_legendre(order))

    def piece(total, ends):
        low, half = ends

        def add(total, node):
            angle = low + half * (1 + node[0])
            u = angle if math.isinf(dim) else root * jnp.sin(angle / root)
            return plus(total, half * node[1] * _density(angle, dim), fn(h + rho * u, u)), None

        return jax.lax.scan(add, total, rule, unroll=_AT_ONCE)[0], None

    return jax.lax.scan(piece, zero, (edges[:-1], 0.5 * jnp.diff(edges, axis=0)))[0]


@lru_cache(maxsize=64)
def cut_rule(order: int, dim: float, cuts: tuple[float, ...]) -> Rule:
    """Points u and weights: the Gauss rule, with `order` nodes, of the law of u on each side of each cut."""
    root, reach = _root(dim), reach_of(dim)
    points = np.asarray(cuts)
    angles = points if math.isinf(dim) else root * np.arcsin(np.clip(points / root, -1, 1))
    edges = np.unique([-reach, *np.clip(angles, -reach, reach), reach])
    x, w = gauss_legendre(512)
    rules = []
    for low, high in pairwise(edges):
        angle = low + 0.5 * (high - low) * (1 + x)
        u = angle if math.isinf(dim) else root * np.sin(angle / root)
        rules.append(gauss_of(u, 0.5 * (high - low) * w * _bump(angle, dim), order))
    weights = np.concatenate([w for _, w in rules])
    return np.concatenate([u for u, _ in rules]), weights / weights.sum()


# The angle of u is z = √dim · asin(u/√dim), with density ∝ cos^{dim−2}(z/√dim): smooth to its ends.


def _root(dim: float) -> float:
    return 1.0 if math.isinf(dim) else math.sqrt(dim)


def reach_of(dim: float) -> float:
    """Where the density of the angle ends, or is as good as zero."""
    if math.isinf(dim):
        return _REACH
    narrow = _REACH * math.sqrt(dim / (dim - 2)) if dim > 2 else math.inf
    return min(0.5 * math.pi * math.sqrt(dim), narrow)


def _angle(u: Array, dim: float) -> Array:
    root = _root(dim)
    return u if math.isinf(dim) else root * jnp.arcsin(jnp.clip(u / root, -1.0, 1.0))


def _density(angle: Array, dim: float) -> Array:
    if math.isinf(dim):
        return jnp.exp(-0.5 * angle**2) / math.sqrt(2 * math.pi)
    if dim == 2:
        return jnp.full_like(angle, 1 / _mass(dim))
    cosine = jnp.maximum(jnp.cos(angle / _root(dim)), 1e-300)
    return jnp.exp((dim - 2) * jnp.log(cosine)) / _mass(dim)


def _bump(angle: np.ndarray, dim: float) -> np.ndarray:
    """The density of the angle, but for its mass."""
    return np.exp(-0.5 * angle**2) if math.isinf(dim) else np.cos(angle / _root(dim)) ** (dim - 2)


@cache
def _mass(dim: float) -> float:
    """∫cos^{dim−2}(z/√dim) dz; a difference of log-gamma functions would lose digits for a large dim."""
    x, w = gauss_legendre(128)
    return reach_of(dim) * float(w @ _bump(reach_of(dim) * x, dim))
