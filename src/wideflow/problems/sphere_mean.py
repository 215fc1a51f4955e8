"""E φ(h + ρu), u one coordinate of a uniform point of the sphere of radius √dim in R^dim.

For dim = ∞ this is the Gaussian mean. Kinks of φ are cut at, pair by pair, so that a piecewise smooth
activation converges as fast as a smooth one."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .activations import Activation, derivative, jumps
from .elementwise import common, ratio
from .gauss import Rule, gauss_legendre, gauss_sphere

_AT_ONCE = 8  # nodes per turn of a loop: the sums then stay in registers (measured)
_REACH = 8.8  # standard deviations, beyond which N(0, 1) has mass 1e-18


def sphere_mean(phi: Activation, h: Array, rho: Array, dim: float, order: int) -> Array:
    """E φ(h + ρu) of every pair: `order` Gauss–Gegenbauer nodes, or `order` Gauss–Legendre nodes
    between any two kinks. Derivatives are E φ'(h + ρu) and E uφ'(h + ρu) by the same rule."""
    mean = _raw if jumps(phi) else _mean
    return mean(phi, *common(h, rho), dim, order)


@partial(jax.custom_jvp, nondiff_argnums=(0, 3, 4))
def _mean(phi: Activation, h: Array, rho: Array, dim: float, order: int) -> Array:
    return _raw(phi, h, rho, dim, order)


@_mean.defjvp
def _mean_jvp(phi, dim, order, primals, tangents):
    first = derivative(phi)

    def integrand(t, u):
        slope = first(t)
        return phi(t), slope, u * slope

    mean, by_h, by_rho = _integral(integrand, phi.kinks, *primals, dim, order, 3)
    return mean, by_h * tangents[0] + by_rho * tangents[1]


def _raw(phi: Activation, h: Array, rho: Array, dim: float, order: int) -> Array:
    return _integral(lambda t, u: (phi(t),), phi.kinks, h, rho, dim, order, 1)[0]


def _integral(fn, kinks, h: Array, rho: Array, dim: float, order: int, size: int) -> tuple[Array, ...]:
    """E fn(h + ρu, u) of the `size` components of fn, a few nodes at a time, so that only sums are held."""
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


def cut_rule(order: int, dim: float, cuts: tuple[float, ...]) -> Rule:
    """Points u and weights with `order` nodes between any two of the cuts."""
    reach, root = reach_of(dim), _root(dim)
    angles = np.array([float(_angle(jnp.asarray(c, float), dim)) for c in cuts])
    edges = np.unique(np.clip([-reach, 0.0, reach, *angles], -reach, reach))
    x, w = gauss_legendre(order)
    half = 0.5 * np.diff(edges)[:, None]
    angle = (edges[:-1, None] + half * (1 + x)).ravel()
    weights = (half * w).ravel() * np.asarray(_density(jnp.asarray(angle), dim))
    return angle if math.isinf(dim) else root * np.sin(angle / root), weights / weights.sum()


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
    root, m = _root(dim), dim - 2
    log_mass = 0.5 * math.log(math.pi) + math.lgamma((m + 1) / 2) - math.lgamma(m / 2 + 1)
    cosine = jnp.maximum(jnp.cos(angle / root), 0.0)
    return cosine**m * math.exp(-log_mass) / root
