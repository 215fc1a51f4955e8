"""Pairs E φ(u)φ(v), E φ'(u)φ'(v) of Gaussians for the kernels of infinitely wide networks.

All that depends on one sample alone (its variance q, √q, Hermite coefficients) is put into a table once,
(k, …) with the samples behind, q first; a pair of samples then costs few operations. A `pair` is given two
tables, q12 and where the two samples are the same, so that their correlation is 1 whatever the rounding."""

import math
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
from jax import Array

from ...problems.activations import Activation, derivative, is_named
from ...problems.dual_quadrature import quadrature_pair
from ...problems.duals import closed_dual
from ...problems.elementwise import arccos, ratio, sqrt0
from .broken_lines import Broken
from .hermite import coefficients

_UNROLLED = 8  # terms per turn: the partial sums stay in registers in between


@dataclass(frozen=True)
class Leaky:
    """φ(h) = max(h, 0) + a min(h, 0). With c the correlation and ϑ = arccos c

        E φφ' = a q12 + (1−a)² √(q1q2)((π−ϑ)c + sinϑ)/(2π),
        E φ'φ' = a² + a(1−a)(P(u>0) + P(v>0)) + (1−a)² P(u>0, v>0),   P(u>0, v>0) = (π−ϑ)/(2π).

    Where q = 0, h is 0, and φ' its left value a there, as in a finite network."""

    a: float

    def table(self, q: Array) -> Array:
        r, there = sqrt0(q), (q > 0).astype(q.dtype)
        # Where q = 0 the fourth row takes c to −1, so that P(u>0, v>0) = 0.
        return jnp.stack([q, r, ratio(1.0, r), 2 * there - 2, 0.5 * self.a * (1 - self.a) * there])

    def pair(self, one: Array, other: Array, q12: Array, same: Array) -> tuple[Array, Array]:
        a, scale = self.a, (1 - self.a) ** 2 / (2 * math.pi)
        c = _correlation(q12 * (one[2] * other[2]) + (one[3] + other[3]), same)
        angle = math.pi - arccos(c)
        value = scale * (one[1] * other[1]) * (angle * c + sqrt0((1 - c) * (1 + c)))
        slope = scale * angle
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
    """By quadrature, cut at the kinks of φ, with `order` nodes per piece."""

    phi: Activation
    order: int = 32

    @property
    def held(self) -> int:
        """Numbers that a pair of samples holds at once: a few for each node of the inner rule."""
        return 4 * self.order * (2 * len(self.phi.kinks) + 2)

    def table(self, q: Array) -> Array:
        return q[None]

    def pair(self, one: Array, other: Array, q12: Array, same: Array) -> tuple[Array, Array]:
        return quadrature_pair(self.phi, one[0], other[0], q12, self.order)


@dataclass(frozen=True)
class Series:
    """A smooth φ by its Hermite series (Mehler): E φφ' = Σ_{k < order} c_k(q1) c_k(q2) ρ^k, ρ the
    correlation, c_k(q) = E φ(√q z) He_k(z)/√k!."""

    phi: Activation
    order: int = 128

    def table(self, q: Array) -> Array:
        r = sqrt0(q)
        both = [coefficients(phi, r, self.order) for phi in (self.phi, derivative(self.phi))]
        return jnp.concatenate([q[None], ratio(1.0, r)[None], *both])

    def pair(self, one: Array, other: Array, q12: Array, same: Array) -> tuple[Array, Array]:
        rho = _correlation(q12 * (one[1] * other[1]), same)
        terms = [(t[2 : 2 + self.order], t[2 + self.order :]) for t in (one, other)]

        def add(sums, term):
            (c, slope), (c_other, slope_other) = term
            return (sums[0] * rho + c * c_other, sums[1] * rho + slope * slope_other), None

        none = jnp.zeros_like(rho)
        return jax.lax.scan(add, (none, none), terms, reverse=True, unroll=_UNROLLED)[0]


Dual = Leaky | Closed | Broken | Cut | Series


@cache
def dual_of(phi: Activation) -> Dual:
    """The way to E φφ' and E φ'φ': closed, cut at kinks, or a series. Outside of traced code `resolved` takes
    one integral in place of the cuts, if φ is seen to be piecewise linear."""
    if phi.name in ("relu", "leaky_relu") and is_named(phi):
        return Leaky(dict(phi.options).get("slope", 0.0))
    if closed_dual(phi, phi) is not None:
        return Closed(phi)
    return Cut(phi) if phi.kinks else Series(phi)


def _correlation(raw: Array, same: Array) -> Array:
    """In [−1, 1], 1 where same, with the derivatives of `raw`."""
    return raw + jax.lax.stop_gradient(jnp.clip(jnp.where(same, 1.0, raw), -1.0, 1.0) - raw)
