"""W2 of projections on random lines, for large clouds."""

import math

import jax
import numpy as np
from jaxtyping import Array

from .._checks import count
from .._checks import key as check_key
from .atoms import EPS, Atoms, Measure, Pair, both, centred, input_rounding, largest_cost
from .distance import Distance, rooted
from .quantiles import w2_by_quantiles
from .simplex import cells_note


def sliced_w2(
    a: Measure, b: Measure, *, key: Array, directions: int = 200, weights: Pair = (None, None)
) -> Distance:
    """SW2² = E_u W2²(⟨u, ·⟩μ, ⟨u, ·⟩ν), u uniform on the sphere of R^D: a distance of its own, with
    √D · SW2 ≤ W2.

    a, b: particles, grid densities or arrays (n, D). The mean is over `directions` draws of u by `key`, and
    `error` is the standard error of that (delta method); cells of a grid are taken as atoms, whose part of
    the error is a bound."""
    one, two = both(a, b, weights)
    moved, mass = input_rounding(one, two)
    distance = w2_by_slices(one, two, key=key, directions=directions)
    return distance.widened(moved, mass * largest_cost(one, two))


def w2_by_slices(one: Atoms, two: Atoms, *, key: Array, directions: int = 200) -> Distance:
    """See `sliced_w2`. The means are taken out: their part, E⟨u, m₁ − m₂⟩² = |m₁ − m₂|²/D, needs no draws."""
    check_key("key", key)
    directions = count("directions", directions, least=2)
    x, y, apart = centred(one, two)
    with jax.enable_x64(True):  # the same draws whatever the default
        drawn = np.asarray(jax.random.normal(key, (directions, one.D)))
    lines = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    squares = np.array([_along(x, y, u) for u in lines])
    square = apart / one.D + float(squares.mean())
    spread = float(squares.std(ddof=1)) / math.sqrt(directions)
    value, error = rooted(square, 4 * EPS * square)
    # cells against their centres: E_u Σ u_i² h_i²/12 = (1/D) Σ h_i²/12
    error += (one.spread + two.spread) / math.sqrt(one.D) + (spread / (2 * value) if value > 0 else 0.0)
    method = f"sliced, {directions} directions, error one standard error over them" + cells_note(one, two)
    return Distance(value, error, method, square)


def _along(one: Atoms, two: Atoms, direction: np.ndarray) -> float:
    x, y = (Atoms((v.points @ direction)[:, None], v.weights) for v in (one, two))
    return w2_by_quantiles(x, y).square
