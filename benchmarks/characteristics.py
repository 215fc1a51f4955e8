"""The limit of a single-index problem by another way, in plain NumPy and SciPy.

Characteristics ż = −∇Ψ̄(z; ρ̄) of z = (a, s, r), a ~ N(0, 1), w ~ N(0, (γ²/d) I), x ~ N(0, I_d), y = φ(x₁),

    f(x₁, q) = ∫ a E_u φ(s x₁ + r q u) dρ̄,   ȧ = E[g φ],   ṡ = a E[g φ' x₁],   ṙ = a E[g φ' q u],   g = y − f,

by code that shares nothing with the library's: equidistant points for a and x₁ (the trapezoidal rule),
NumPy's and SciPy's Gauss rules for s, lengths and u, and DOP853. For d = ∞, where q u is N(0, 1), the mean
over u of erf and relu is in closed form."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.integrate import solve_ivp
from scipy.special import erf, ndtr, roots_gegenbauer, roots_genlaguerre

Rule = tuple[np.ndarray, np.ndarray]
Means = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
LINKS: dict[str, tuple[Callable, Callable]] = {
    "erf": (erf, lambda t: 2 / math.sqrt(math.pi) * np.exp(-t * t)),
    "tanh": (np.tanh, lambda t: 1 / np.cosh(np.minimum(np.abs(t), 300.0)) ** 2),
    "sin": (np.sin, np.cos),
    "relu": (lambda t: np.maximum(t, 0.0), lambda t: (t > 0).astype(float)),
}


class Fineness(NamedTuple):
    """Points of the rules of a, s, r, x₁, q and u, and the tolerance of the time steps."""

    a: int
    s: int
    r: int
    x: int
    q: int
    u: int
    rtol: float


def normal(points: int, reach: float) -> Rule:
    """N(0, 1) by equidistant points of [−reach, reach]."""
    z = np.linspace(-reach, reach, points)
    weights = np.exp(-0.5 * z * z)
    return z, weights / weights.sum()


def halves(points: int, reach: float) -> Rule:
    """N(0, 1) by Gauss–Legendre on either side of 0, where relu has its kink."""
    x, w = np.polynomial.legendre.leggauss(points // 2)
    z = 0.5 * reach * (1 + x)
    z, weights = np.concatenate([-z, z]), np.tile(w, 2) * np.exp(-0.5 * np.tile(z, 2) ** 2)
    return z, weights / weights.sum()


def length(points: int, dim: float) -> Rule:
    """|z|, z ~ N(0, I_dim), by SciPy's Gauss–Laguerre rule of |z|²/2."""
    half, weights = roots_genlaguerre(points, 0.5 * dim - 1)
    return np.sqrt(2 * half), weights / weights.sum()


def height(points: int, dim: float) -> Rule:
    """The first coordinate of a uniform point of the unit sphere of R^dim, by a Gauss–Gegenbauer rule."""
    u, weights = roots_gegenbauer(points, 0.5 * dim - 1)
    return u, weights / weights.sum()


def means(link: str, d: float, fineness: Fineness) -> tuple[np.ndarray, np.ndarray, Means]:
    """The points x₁ with weights, each as often as q has points, and E φ, E φ', E φ' q u of all (s, r)."""
    phi, slope = LINKS[link]
    x, weights = (halves if link == "relu" else normal)(fineness.x, 8.0)
    if math.isinf(d):
        return x, weights, lambda s, r: _gaussian(link, s[:, None] * x, r[:, None], fineness.u)
    q, mass = length(fineness.q, d - 1)
    u, share = height(fineness.u, d - 1)
    x1, radius = np.repeat(x, len(q)), np.tile(q, len(x))

    def of(s: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        along, across = s[:, None] * x1, r[:, None] * radius
        total = [np.zeros_like(along) for _ in range(3)]
        for height_, weight in zip(u, share, strict=True):
            t = along + across * height_
            first = slope(t)
            total[0] += weight * phi(t)
            total[1] += weight * first
            total[2] += weight * height_ * first
        return total[0], total[1], total[2] * radius

    return x1, np.outer(weights, mass).ravel(), of


def _gaussian(link: str, h: np.ndarray, r: np.ndarray, points: int):
    """E φ(h + rG), E φ'(h + rG), E G φ'(h + rG), G ~ N(0, 1)."""
    if link == "erf":
        scale = 1 / np.sqrt(1 + 2 * r * r)
        by_h = 2 / math.sqrt(math.pi) * scale * np.exp(-((h * scale) ** 2))
        return erf(h * scale), by_h, -2 * r * h * scale**2 * by_h
    if link == "relu":
        density = np.exp(-0.5 * (h / r) ** 2) / math.sqrt(2 * math.pi)
        above = ndtr(h / r)
        return h * above + r * density, above, density
    phi, slope = LINKS[link]
    z, weights = normal(points, 8.0)
    t = h[..., None] + r[..., None] * z
    first = slope(t)
    return phi(t) @ weights, first @ weights, first @ (weights * z)


def start(d: float, gamma: float, fineness: Fineness, reach: float, a: float | None = None) -> Rule:
    """Points (a, s, r) of the start, without those that weigh less than exp(−reach²/2) of the heaviest. With
    `a` every output weight is that."""
    outer = normal(fineness.a, reach) if a is None else (np.array([a]), np.ones(1))
    rules = [outer, (np.zeros(1), np.ones(1)), (np.array([gamma]), np.ones(1))]
    if not math.isinf(d):
        (z, w), (rho, v) = hermegauss(fineness.s), length(fineness.r, d - 1)
        w = w / w.sum()
        rules[1:] = [(gamma / math.sqrt(d) * z, w), (gamma / math.sqrt(d) * rho, v)]
    points = np.stack(np.meshgrid(*(p for p, _ in rules), indexing="ij"), axis=-1).reshape(-1, 3)
    weights = np.einsum("i,j,k->ijk", *(w for _, w in rules)).ravel()
    kept = weights > weights.max() * math.exp(-0.5 * reach**2)
    return points[kept], weights[kept] / weights[kept].sum()


def risks(
    link: str,
    d: float,
    ts: np.ndarray,
    fineness: Fineness,
    gamma: float = 1.0,
    reach: float = 6.0,
    a: float | None = None,
) -> np.ndarray:
    """R at the times ts."""
    theta, weights = start(d, gamma, fineness, reach, a)
    x, mass, of = means(link, d, fineness)
    y, shape = LINKS[link][0](x), theta.shape

    def left(z: np.ndarray):
        a, s, r = z.reshape(shape).T
        found = of(s, r)
        return y - (weights * a) @ found[0], a, found

    def velocity(_: float, z: np.ndarray) -> np.ndarray:
        g, a, (value, by_h, by_r) = left(z)
        g = g * mass
        return np.column_stack([value @ g, a * (by_h @ (g * x)), a * (by_r @ g)]).ravel()

    path = solve_ivp(
        velocity, (0, ts[-1]), theta.ravel(), "DOP853", ts, rtol=fineness.rtol, atol=0.01 * fineness.rtol
    )
    return np.array([0.5 * mass @ left(z)[0] ** 2 for z in path.y.T])
