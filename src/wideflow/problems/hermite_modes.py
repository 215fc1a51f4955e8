"""Reduced neurons of Gaussian x in an orthonormal basis: Hermite in the signal × Laguerre in the rest.

x ~ N(0, I) in R ⊕ R^D. With (s, r) = ρ(cos ϑ, sin ϑ) and φ(ρz) = Σ_n c_n(ρ) h_n(z), h_n = He_n/√n!, the mean
of φ(⟨w, x⟩) over the rotations of R^D is

    E_u φ(s x₁ + r q u) = Σ_n c_n(ρ) Σ_m √C(n, 2m) β_m (cos ϑ)^{n−2m} (sin ϑ)^{2m} e_{n,m}(x₁, q),

e_{n,m} = ± h_{n−2m}(x₁) × (normalised Laguerre polynomial of degree m in q²), orthonormal, and β_m² =
E c^{2m} = Π_{i<m} (2i + 1)/(D + 2i), c the first coordinate of a uniform point of the sphere of R^D; for D =
∞ only m = 0 is left. No nodes of q or u are needed, and the dimension enters by β alone."""

import functools
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .activations import Activation
from .gauss import Rule, gauss_legendre

_REACH = 12.5  # where exp(−z²/4) is 1e-17
_WIDTH, _POINTS, _HALVES = 0.5, 20, 8  # panels of z: their width, nodes, and how often the first is halved
_ROUNDED = 1e-12  # of φ's largest value: coefficients that differ by more are not resolved


def spread(reach: float) -> float:
    """κ of ρ̂ = ρ/√(κ + ρ²): erf's singularities, ρ = ±i/√2, are then as far from [−ρ̂_max, ρ̂_max] as those of
    the map, ρ̂ = ±1: κ² − κ = ½ρ_max². Series in ρ̂ then converge like exp(−l asinh(√κ/ρ_max))."""
    return 0.5 * (1 + math.sqrt(1 + 2 * reach**2))


class UnresolvedError(ValueError):
    """φ is too rough for its Hermite coefficients to be known."""


class Modes(NamedTuple):
    """One parity of the degrees n = first, first + 2, …: `series` (n, l) has c_n(ρ) = Σ_l series_nl cos(lχ),
    cos χ = ρ̂/ρ̂_max, and `turns` (n, m, k) the functions of ϑ above as Σ_k turns_nmk cos(kϑ); l and k have the
    parity of n too."""

    first: int
    series: Float[np.ndarray, "n l"]
    turns: Float[np.ndarray, "n m k"]


def degrees(first: int, end: int) -> Float[np.ndarray, " n"]:
    """first, first + 2, … below `end`."""
    return np.arange(first, max(end, first + 1), 2)


@functools.lru_cache(maxsize=64)
def modes_of(phi: Activation, dim: float, degree: int, order: int, reach: float) -> tuple[Modes, ...]:
    """The modes of degree below `degree`, with c_n(ρ), ρ ≤ reach, by `order` Chebyshev polynomials; of an odd
    or even φ one parity alone."""
    kappa = spread(reach)
    top = reach / math.sqrt(kappa + reach**2)
    angles = np.pi * (np.arange(order) + 0.5) / (2 * order)
    hat = top * np.cos(angles)
    rho = math.sqrt(kappa) * hat / np.sqrt(1 - hat**2)
    values = coefficients(phi, rho, degree)
    finer = coefficients(phi, rho[:1], degree, 0.5 * _WIDTH)
    size = max(1.0, float(np.abs(values).max()))
    if not np.abs(values[:1] - finer).max() <= _ROUNDED * size:
        raise UnresolvedError(f"The Hermite coefficients of {phi.name} are not resolved up to ρ = {reach:g}.")
    found = []
    for first in (0, 1):
        n, numbers = degrees(first, degree), degrees(first, order)
        if first >= degree or np.abs(values[:, n]).max() <= 1e-15 * size:
            continue
        series = (2 / order) * values[:, n].T @ np.cos(np.outer(angles, numbers))
        series[:, numbers == 0] *= 0.5
        found.append(Modes(first, series, _turns(n, dim)))
    return tuple(found)


def coefficients(
    phi: Activation, rho: Float[np.ndarray, " j"], degree: int, width: float = _WIDTH
) -> Float[np.ndarray, "j n"]:
    """c_n(ρ) = E φ(ρz) h_n(z), n < degree, on panels of z that see a step at 0 of width 1/ρ."""
    z, weights = _panels(width)
    functions = hermite(z, degree)
    weights = weights * np.exp(-(z**2) / 4) / math.sqrt(2 * math.pi)
    right, left = (np.asarray(phi(jnp.asarray(sign * np.outer(rho, z), float)), float) for sign in (1, -1))
    found = np.empty((len(rho), degree))
    for first, sign in ((0, 1), (1, -1)):
        found[:, first::2] = ((right + sign * left) * weights) @ functions[first::2].T
    return found


def hermite(z: Float[np.ndarray, " i"], degree: int) -> Float[np.ndarray, "n i"]:
    """h_n(z) exp(−z²/4), n < degree."""
    rows = np.empty((max(degree, 2), len(z)))
    rows[0] = np.exp(-(z**2) / 4)
    rows[1] = z * rows[0]
    for n in range(1, degree - 1):
        rows[n + 1] = (z * rows[n] - math.sqrt(n) * rows[n - 1]) / math.sqrt(n + 1)
    return rows[:degree]


@functools.cache
def _panels(width: float) -> Rule:
    """Gauss–Legendre panels of [0, reach], finer and finer towards 0."""
    inner = width * 0.5 ** np.arange(_HALVES, 0, -1)
    edges = np.concatenate([[0.0], inner, np.arange(width, _REACH + width, width)])
    x, w = gauss_legendre(_POINTS)
    half = 0.5 * np.diff(edges)[:, None]
    return (edges[:-1, None] + half * (1 + x)).ravel(), (half * w).ravel()


def _turns(n: Float[np.ndarray, " n"], dim: float) -> Float[np.ndarray, "n m k"]:
    """√C(n, 2m) β_m (cos ϑ)^{n−2m} (sin ϑ)^{2m} as Σ_k turns_nmk cos(kϑ), k of the same parity as n."""
    from scipy.special import gammaln

    top = int(n[-1])
    m = np.arange(1 if math.isinf(dim) else top // 2 + 1)
    steps = np.log((2 * m[:-1] + 1) / (dim + 2 * m[:-1])) if len(m) > 1 else np.zeros(0)
    beta = 0.5 * np.concatenate([[0.0], np.cumsum(steps)])
    i, j = n[:, None], np.minimum(2 * m, n[:, None])
    size = beta + 0.5 * (gammaln(i + 1) - gammaln(j + 1) - gammaln(i - j + 1))
    # a grid that is exact for cosines up to 2·top, of which half a turn is enough by parity
    points = top + 1
    angles = np.pi * (np.arange(points) + 0.5) / (2 * points)
    logs = np.log(np.cos(angles)), np.log(np.sin(angles))
    values = np.exp(size[..., None] + (i - j)[..., None] * logs[0] + j[..., None] * logs[1])
    values[(2 * m) > i] = 0.0
    turns = (2 / points) * values @ np.cos(np.outer(angles, n))
    turns[..., n == 0] *= 0.5
    return turns
