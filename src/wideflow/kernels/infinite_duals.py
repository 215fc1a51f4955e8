"""Pairs E φ(u)φ(v), E φ'(u)φ'(v) of Gaussians for the kernels of infinitely wide networks.

All that depends on one sample alone (its variance q, √q, Hermite coefficients) is put into a table once, (k, …)
with the samples behind; a pair of samples then costs few operations."""

import math
from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..problems.activations import Activation, derivative, is_named
from ..problems.dual_quadrature import quadrature_dual
from ..problems.duals import closed_dual
from ..problems.elementwise import arccos, ratio, sqrt0
from ..problems.gauss import gauss_legendre

_ORDERS = (32, 64, 128, 256, 512, 1024)  # terms of a Hermite series
_TAIL = 1e-12  # of E φ², what a Hermite series may leave out
_CUT = 32  # nodes per piece between kinks: 13 digits where φ is smooth in between
_END, _PANELS, _NODES = 14.0, 64, 32  # of the rule for Hermite coefficients; its density at the end is 1e-43
_UNROLLED = 8
_BATCH = 256


@dataclass(frozen=True)
class Leaky:
    """φ(h) = max(h, 0) + a min(h, 0): with c the correlation, ϑ = arccos c,

        E φφ' = a q12 + (1−a)² √(q1q2)((π−ϑ)c + sinϑ)/(2π) + …,   E φ'φ' = a + (1−a)² (π−ϑ)/(2π) + …

    where q = 0, h is 0 and φ' has its left value a, as in a finite network."""

    a: float

    def table(self, q: Array) -> Array:
        r = sqrt0(q)
        there = (q > 0).astype(q.dtype)
        return jnp.stack([q, r, ratio(1.0, r), there - 1, 0.5 * self.a * (1 - self.a) * there])

    def pair(self, one: Array, other: Array, q12: Array, same: Array) -> tuple[Array, Array]:
        a = self.a
        raw = q12 * (one[2] * other[2]) + (one[3] + other[3])
        c = _confined(raw, jnp.where(same, 1.0, raw))
        angle = math.pi - arccos(c)
        half = (1 - a) ** 2 / (2 * math.pi)
        value = half * (one[1] * other[1]) * (angle * c + sqrt0((1 - c) * (1 + c)))
        slope = half * angle
        return (value, slope) if a == 0 else (value + a * q12, slope + (a * a + one[4] + other[4]))


@dataclass(frozen=True)
class Closed:
    """A closed form of E φφ'; E φ'φ' is its derivative in q12 (Price)."""

    phi: Activation

    def table(self, q: Array) -> Array:
        return q[None]

    def pair(self, one: Array, other: Array, q12: Array, same: Array) -> tuple[Array, Array]:
        dual = closed_dual(self.phi, self.phi)
        assert dual is not None
        q1, q2 = one[0], other[0]
        return jax.jvp(lambda q: dual(q1, q2, q), (q12,), (jnp.ones_like(q12),))


@dataclass(frozen=True)
class Cut:
    """By quadrature that is cut at the kinks of φ."""

    phi: Activation
    order: int = _CUT

    def table(self, q: Array) -> Array:
        return q[None]

    def pair(self, one: Array, other: Array, q12: Array, same: Array) -> tuple[Array, Array]:
        slope, args = derivative(self.phi), (one[0], other[0], q12, self.order)
        return quadrature_dual(self.phi, self.phi, *args), quadrature_dual(slope, slope, *args)


@dataclass(frozen=True)
class Series:
    """A smooth φ by its Hermite series (Mehler): E φφ' = Σ_{k < order} c_k(q1) c_k(q2) ρ^k, ρ = q12/√(q1q2)."""

    phi: Activation
    order: int = 128  # where q is traced, so that none can be chosen

    def table(self, q: Array) -> Array:
        r = sqrt0(q)
        both = [_coefficients(phi, r, self.order) for phi in (self.phi, derivative(self.phi))]
        return jnp.concatenate([q[None], ratio(1.0, r)[None], *both])

    def pair(self, one: Array, other: Array, q12: Array, same: Array) -> tuple[Array, Array]:
        raw = q12 * (one[1] * other[1])
        rho = _confined(raw, jnp.where(same, 1.0, raw))
        terms = [t[2:].reshape(2, self.order, *t.shape[1:]).swapaxes(0, 1) for t in (one, other)]

        def add(sums, term):
            (c, d), (e, f) = term
            return (sums[0] * rho + c * e, sums[1] * rho + d * f), None

        none = jnp.zeros_like(rho)
        return jax.lax.scan(add, (none, none), terms, reverse=True, unroll=_UNROLLED)[0]


Dual = Leaky | Closed | Cut | Series


def _confined(raw: Array, value: Array) -> Array:
    """A correlation in [−1, 1], with the derivative of `raw`."""
    return raw + jax.lax.stop_gradient(jnp.clip(value, -1.0, 1.0) - raw)


@cache
def dual_of(phi: Activation) -> Dual:
    """The way to E φφ' and E φ'φ': closed, cut at kinks, or a series."""
    if phi.name in ("relu", "leaky_relu") and is_named(phi):
        return Leaky(dict(phi.options).get("slope", 0.0))
    if closed_dual(phi, phi) is not None:
        return Closed(phi)
    return Cut(phi) if phi.kinks else Series(phi)


def resolved(dual: Dual, q: np.ndarray) -> Dual:
    """The same with as many terms as the variances q ask for; an error where E φ(√q z)² or E φ'(√q z)² is not
    finite, or where no such number of terms is enough."""
    if not isinstance(dual, Series | Cut):
        return dual
    q, squares = np.unique(q), {}
    for name, phi in (("φ", dual.phi), ("φ'", derivative(dual.phi))):
        values, ends = (np.asarray(v) for v in _squares(phi, jnp.asarray(q)))
        bad = ~np.isfinite(values) | ~(ends <= _TAIL * values)
        if bad.any():
            raise ValueError(
                f"{dual.phi.name} has no dual: E {name}(h)² is not finite for h ~ N(0, {q[np.argmax(bad)]:.4g}), "
                "or is beyond float64. Take an activation that grows more slowly, a smaller gain, or smaller x."
            )
        squares[phi] = values
    return dual if isinstance(dual, Cut) else _long_enough(dual, q, squares)


def _long_enough(dual: Series, q: np.ndarray, squares: dict[Activation, np.ndarray]) -> Series:
    """Σ_{k ≥ order} c_k² is the largest error there can be, at ρ = ±1; it is E φ² less what the series has."""
    missed = math.inf
    for order in _ORDERS:
        missed = 0.0
        for phi, square in squares.items():
            kept = np.sum(np.asarray(_coefficients(phi, jnp.sqrt(jnp.asarray(q)), order)) ** 2, 0)
            missed = max(missed, float(np.max((square - kept) / np.where(square > 0, square, 1.0))))
        if missed <= _TAIL:
            return Series(dual.phi, order)
    name = dual.phi.name
    raise ValueError(
        f"The dual of {name} at variances up to {q.max():.4g} is not found to {_TAIL:g}: a Hermite series of "
        f"{_ORDERS[-1]} terms misses {missed:.2g} of it. If it has kinks, state them: Activation({name!r}, fn, "
        "kinks=(0.0,)); a smooth φ that is steep on the scale of √q gains by a cut where it is steep. Or "
        "take a smaller gain."
    )


@partial(jax.jit, static_argnums=0)
def _squares(phi: Activation, q: Array) -> tuple[Array, Array]:
    """E φ(√q z)², and the part of it in the first and last panel, where the normal law weighs nothing."""
    z, weights, _ = _projection(2)
    parts = jnp.asarray(weights)[:, None] * phi(jnp.sqrt(q) * jnp.asarray(z)[:, None]) ** 2
    return jnp.sum(parts, 0), jnp.sum(parts[:_NODES], 0) + jnp.sum(parts[-_NODES:], 0)


@partial(jax.jit, static_argnums=(0, 2))
def _coefficients(phi: Activation, r: Array, order: int) -> Array:
    """c_k = E φ(r z) He_k(z)/√k!, k < order along a new first axis; few samples at a time."""
    z, _, projection = (jnp.asarray(v, r.dtype) for v in _projection(order))
    found = jax.lax.map(lambda s: projection @ phi(s * z), r.ravel(), batch_size=_BATCH)
    return found.T.reshape(order, *r.shape)


@cache
def _projection(order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes z_i of panels of [−14, 14], weights w_i of the normal law and the matrix w_i He_k(z_i)/√k!.

    He_k carries the factor e^{−z²/4} through its recurrence: alone it overflows at large k and z."""
    x, w = gauss_legendre(_NODES)
    edges = np.linspace(-_END, _END, _PANELS + 1)
    half = 0.5 * np.diff(edges)[:, None]
    z = (edges[:-1, None] + half * (1 + x)).ravel()
    root = np.exp(-0.25 * z * z)
    weights = (half * w).ravel() * root / math.sqrt(2 * math.pi)
    rows = [root, z * root]
    for k in range(1, order - 1):
        rows.append((z * rows[k] - math.sqrt(k) * rows[k - 1]) / math.sqrt(k + 1))
    return z, weights * root, weights * np.stack(rows[:order])
