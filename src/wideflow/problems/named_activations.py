"""The activations that have a name: each a function of its options that returns an `Activation`, and one row
of `vocabulary.activations`. Equal options give equal objects."""

import math
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._checks import count
from .._shown import shown
from .activations import Activation, Function

# The highest degree of a Hermite polynomial: its recursion is compiled step by step.
_HIGHEST = 100
# Knots of a piecewise linear function, each of which is compiled too; and letters that an error quotes.
_MOST_KNOTS = 256


def relu() -> Activation:
    return Activation("relu", jax.nn.relu, kinks=(0.0,))


def erf() -> Activation:
    return Activation("erf", jax.lax.erf)


def tanh() -> Activation:
    return Activation("tanh", jnp.tanh)


def sigmoid() -> Activation:
    return Activation("sigmoid", jax.nn.sigmoid)


def softplus() -> Activation:
    return Activation("softplus", jax.nn.softplus)


def gelu() -> Activation:
    return Activation("gelu", _gelu)


def sin() -> Activation:
    return Activation("sin", jnp.sin)


def cos() -> Activation:
    return Activation("cos", jnp.cos)


def identity() -> Activation:
    return Activation("identity", _identity)


def square() -> Activation:
    return Activation("square", _square)


def _gelu(h: Array) -> Array:
    # erfc keeps the relative accuracy of the left tail, which 1 + erf loses.
    return 0.5 * h * jax.lax.erfc(-h / math.sqrt(2))


def _identity(h: Array) -> Array:
    return h


def _square(h: Array) -> Array:
    return h * h


# --- families: the options are checked first, the function is then built once per value --------


def leaky_relu(slope: float = 0.01) -> Activation:
    try:
        slope = float(slope)
    except (TypeError, ValueError):
        raise _bad_option("leaky_relu", "slope", slope, "a finite number", "slope=0.01") from None
    if not math.isfinite(slope):
        raise _bad_option("leaky_relu", "slope", slope, "a finite number", "slope=0.01")
    return Activation("leaky_relu", _leaky_fn(slope), (("slope", slope),), (0.0,))


@cache
def _leaky_fn(slope: float) -> Function:
    return lambda h: jnp.where(h > 0, h, slope * h)


def hermite(degree: object) -> Activation:
    degree = count("Activation 'hermite': degree", degree, least=0)
    if degree > _HIGHEST:
        raise _bad_option("hermite", "degree", degree, f"at most {_HIGHEST}", f"degree={_HIGHEST}")
    return Activation("hermite", _hermite_fn(degree), (("degree", degree),))


@cache
def _hermite_fn(degree: int) -> Function:
    def fn(h: Array) -> Array:
        """√(k+1) φ_{k+1} = h φ_k − √k φ_{k−1}, φ_0 = 1."""
        before, now = jnp.zeros_like(h), jnp.ones_like(h)
        for k in range(degree):
            before, now = now, (h * now - math.sqrt(k) * before) / math.sqrt(k + 1)
        return now

    return fn


def piecewise_linear(knots: object) -> Activation:
    try:
        points = np.asarray(knots, dtype=float)
    except (TypeError, ValueError, OverflowError):
        points = np.zeros(0)
    well_formed = points.ndim == 2 and points.shape[1] == 2 and 2 <= len(points) <= _MOST_KNOTS
    if not (well_formed and np.isfinite(points).all() and (np.diff(points[:, 0]) > 0).all()):
        allowed = f"from 2 to {_MOST_KNOTS} finite pairs (x, y), x strictly increasing"
        raise _bad_option("piecewise_linear", "knots", knots, allowed, "knots=((-1, -1), (1, 1))")
    pairs = tuple((float(x), float(y)) for x, y in points)
    return Activation("piecewise_linear", _ramps_fn(pairs), (("knots", pairs),), tuple(x for x, _ in pairs))


@cache
def _ramps_fn(knots: tuple[tuple[float, float], ...]) -> Function:
    def fn(h: Array) -> Array:
        # A sum of ramps, not of ReLUs, which would cancel badly far outside the knots; with
        # `where`, not `clip`, which has half of the slope as its derivative at the knots.
        y = jnp.full_like(h, knots[0][1])
        for (x0, y0), (x1, y1) in pairwise(knots):
            ramp = (y1 - y0) / (x1 - x0) * (h - x0)
            y = y + jnp.where(h > x1, y1 - y0, jnp.where(h > x0, ramp, 0.0))
        return jnp.where(jnp.isnan(h), h, y)

    return fn


def _bad_option(name: str, option: str, value: object, allowed: str, example: str) -> ValueError:
    return ValueError(f"Activation {name!r}: {option} must be {allowed}; got {shown(value)}. Try {example}.")
