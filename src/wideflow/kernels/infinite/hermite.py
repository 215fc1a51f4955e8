"""Hermite coefficients of h ↦ φ(√q h), and E φ(√q z)², by one rule for all variances q."""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...problems.activations import Activation
from ...problems.gauss import gauss_legendre

_END, _PANELS, _NODES = 14.0, 64, 32  # [−14, 14]: the normal density at its ends is 1e-43
_BATCH = 256  # samples at a time, 4 MB of φ at all nodes


@partial(jax.jit, static_argnums=(0, 2))
def coefficients(phi: Activation, r: Array, order: int) -> Array:
    """c_k = E φ(r z) He_k(z)/√k!, z ~ N(0, 1), k < order along a new first axis before those of r."""
    z, projection = (jnp.asarray(v, r.dtype) for v in (_rule()[0], _projection(order)))
    projected = jax.lax.map(lambda s: projection @ phi(s * z), r.ravel(), batch_size=_BATCH)
    return projected.T.reshape(order, *r.shape)


@partial(jax.jit, static_argnums=0)
def squares(phi: Activation, q: Array) -> tuple[Array, Array]:
    """E φ(√q z)², and the part of it in the first and last panel, where the normal law weighs nothing."""
    z, weights = (jnp.asarray(v)[:, None] for v in _rule())
    parts = weights * phi(jnp.sqrt(q) * z) ** 2
    return jnp.sum(parts, 0), jnp.sum(parts[:_NODES], 0) + jnp.sum(parts[-_NODES:], 0)


@cache
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes of equal panels and their weights under the normal law."""
    x, w = gauss_legendre(_NODES)
    half = _END / _PANELS
    z = (np.linspace(-_END, _END, _PANELS, endpoint=False)[:, None] + half * (1 + x)).ravel()
    return z, np.tile(half * w, _PANELS) * np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


@cache
def _projection(order: int) -> np.ndarray:
    """w_i He_k(z_i)/√k!, k < order. He_k takes e^{−z²/4} along through its recurrence: alone it overflows."""
    z, weights = _rule()
    root = np.exp(-0.25 * z * z)
    rows = [root, z * root]
    for k in range(1, order - 1):
        rows.append((z * rows[k] - math.sqrt(k) * rows[k - 1]) / math.sqrt(k + 1))
    return weights / root * np.stack(rows[:order])
