"""E φ(u)φ(v), E φ'(u)φ'(v) of a piecewise linear φ, by one integral along the correlation.

φ'' is Σ_k b_k δ(h − k), b_k the bend at the kink k, so that by Price's theorem, p the density of (u, v) at
covariance t,

    E φ'φ' = E φ'(u) E φ'(v) + ∫_0^{q12} Σ_{k,l} b_k b_l p(k, l; t) dt,
    E φφ = E φ(u) E φ(v) + q12 E φ'(u) E φ'(v) + ∫_0^{q12} (q12 − t) Σ_{k,l} b_k b_l p(k, l; t) dt.

With t = √(q1q2) cos η, τ = tan(η/2), A = k/√q1 and B = l/√q2 this is an integral without a pole, down to
correlation 1:

    p dt = −exp(−(A − B)²(1 + τ²)²/(8τ²) − AB(1 + τ²)/2) dτ/(π(1 + τ²)),   0 ≤ τ ≤ 1.

Near τ = 0 it falls off within |A − B|, whose logarithm therefore is what τ is cut by."""

import math
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import ndtr

from ...problems.activations import Activation, derivative, jumps
from ...problems.elementwise import ratio, sqrt0
from ...problems.gauss import gauss_legendre

_NODES = 64  # 12 digits whatever variances and correlation, measured
_FLAT = 18.0  # below |A − B|/18, exp(−(A − B)²/(8τ²)) is less than 1e-17
_LEAST = 1e-13  # τ, below which nothing is left to add
_PROBES = 64  # points of each piece at which φ' is looked at
_STRAIGHT = 1e-12  # by how much φ' may vary there, of its size, by rounding


@dataclass(frozen=True)
class Broken:
    """φ(h) = left + slope (h − k_1) + Σ_k b_k (h − k)₊, of which `kinks` and `bends` are k and b_k."""

    phi: Activation
    left: float
    slope: float
    bends: tuple[float, ...]

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(sorted(self.phi.kinks))

    def table(self, q: Array) -> Array:
        """q, √q, 1/√q, E φ, E φ' and k/√q."""
        r = sqrt0(q)
        mean, slope = jnp.full_like(q, self.left - self.slope * self.kinks[0]), jnp.full_like(q, self.slope)
        places = [ratio(k, r) for k in self.kinks]
        for k, bend, place in zip(self.kinks, self.bends, places, strict=True):
            above = jnp.where(r > 0, ndtr(-place), float(k < 0))  # at q = 0 the left value of φ'
            density = jnp.exp(-0.5 * place**2) / math.sqrt(2 * math.pi)
            mean, slope = mean + bend * (r * density - k * above), slope + bend * above
        return jnp.stack([q, r, ratio(1.0, r), mean, slope, *places])

    def pair(self, one: Array, other: Array, q12: Array, same: Array) -> tuple[Array, Array]:
        # where q = 0 there is nothing to correlate, be it the same sample
        rho = jnp.where(same & (one[1] > 0), 1.0, jnp.clip(q12 * (one[2] * other[2]), -1.0, 1.0))
        sign = jnp.where(rho < 0, -1.0, 1.0).astype(q12.dtype)
        end = sqrt0((1 - sign * rho) / (1 + sign * rho))
        value, slope = jnp.zeros_like(rho), jnp.zeros_like(rho)
        for i, bend in enumerate(self.bends):
            for j, other_bend in enumerate(self.bends):
                lever, mass = _crossed(one[5 + i], sign * other[5 + j], end)
                value, slope = value + bend * other_bend * lever, slope + bend * other_bend * mass
        slopes = one[4] * other[4]
        return one[3] * other[3] + q12 * slopes + one[1] * other[1] * value, slopes + sign * slope


def _crossed(a: Array, b: Array, end: Array) -> tuple[Array, Array]:
    """∫(cos η_end − cos η) p dt/√(q1q2) and ∫p dt over τ from `end` to 1: Gauss–Legendre in log τ."""
    gap, product, ends = (a - b) ** 2 / 8, a * b / 2, end**2
    low = jnp.log(jnp.clip(jnp.maximum(end, jnp.abs(a - b) / _FLAT), _LEAST, 1.0))

    def add(sums, node):
        x, weight = node
        tau = jnp.exp(0.5 * low * (1 - x))
        square = tau * tau
        one = 1 + square
        mass = weight * tau / one * jnp.exp(-gap * one * one / square - product * one)
        return (sums[0] + mass * (square - ends) / one, sums[1] + mass), None

    rule = tuple(jnp.asarray(v, a.dtype) for v in gauss_legendre(_NODES))
    zero = jnp.zeros(jnp.broadcast_shapes(a.shape, b.shape, end.shape), a.dtype)
    (lever, mass), _ = jax.lax.scan(add, (zero, zero), rule, unroll=4)
    half = -0.5 * low / math.pi
    return 2 * half * lever / (1 + ends), half * mass


@cache
def broken_line(phi: Activation) -> Broken | None:
    """φ as a broken line, if it is continuous and its derivative constant between its kinks wherever it was
    looked at."""
    if not phi.kinks or jumps(phi):
        return None
    kinks = np.asarray(sorted(phi.kinks))
    reach = 8 * (1 + abs(kinks).max())
    edges = np.concatenate([[kinks[0] - reach], kinks, [kinks[-1] + reach]])
    inside = np.random.default_rng(0).uniform(0.001, 0.999, size=(len(kinks) + 1, _PROBES))
    points = edges[:-1, None] + np.diff(edges)[:, None] * inside
    with jax.enable_x64(True):
        slopes = np.asarray(derivative(phi)(jnp.asarray(points)))
        left = float(phi(jnp.asarray(kinks[0])))
    size = np.abs(slopes).max()
    if not np.all(np.ptp(slopes, axis=1) <= _STRAIGHT * size):
        return None
    each = slopes[:, 0]
    return Broken(phi, left, float(each[0]), tuple(float(b) for b in np.diff(each)))
