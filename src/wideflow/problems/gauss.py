"""Gauss rules of the laws that symmetry and products are made of: points and weights, whose sum is the
mass of the law."""

import functools
import math

import numpy as np

Rule = tuple[np.ndarray, np.ndarray]


@functools.lru_cache(maxsize=64)
def gauss_hermite(order: int) -> Rule:
    """E q(z), z ~ N(0, 1); exact for polynomials of degree < 2·order."""
    from scipy.special import roots_hermitenorm

    z, w = roots_hermitenorm(order)
    return z, w / w.sum()


@functools.lru_cache(maxsize=64)
def gauss_legendre(order: int) -> Rule:
    """∫q over [−1, 1], so that the weights sum to 2."""
    return np.polynomial.legendre.leggauss(order)


@functools.lru_cache(maxsize=256)
def gauss_radius(order: int, dim: float) -> Rule:
    """E q(|z|/√dim), z ~ N(0, I_dim): generalised Gauss–Laguerre in |z|²/2, with exponent dim/2 − 1.
    For dim = ∞ the radius is 1."""
    if math.isinf(dim):
        return np.ones(1), np.ones(1)
    k = np.arange(order)
    alpha = dim / 2 - 1
    y, w = _golub_welsch(2 * k + alpha + 1, np.sqrt(k[1:] * (k[1:] + alpha)))
    return np.sqrt(2 * np.maximum(y, 0) / dim), w


@functools.lru_cache(maxsize=256)
def gauss_sphere(order: int, dim: float) -> Rule:
    """E q(√dim · u), u the first coordinate of a uniform point of the unit sphere of R^dim, with
    density ∝ (1 − u²)^{(dim−3)/2}: Gauss–Gegenbauer. For dim = ∞ this is N(0, 1), for dim = 1 a sign."""
    if math.isinf(dim):
        return gauss_hermite(order)
    if dim == 1:
        return np.array([-1.0, 1.0]), np.full(2, 0.5)
    k = np.arange(1, order)
    lam = dim / 2 - 1
    # at dim = 2 (Chebyshev) the first coefficient is a limit of the formula
    below = np.where(k + lam == 1, 1.0, k + lam - 1)
    squares = np.where((k == 1) & (lam == 0), 0.5, k * (k + 2 * lam - 1) / (4 * (k + lam) * below))
    u, w = _golub_welsch(np.zeros(order), np.sqrt(squares))
    return math.sqrt(dim) * 0.5 * (u - u[::-1]), 0.5 * (w + w[::-1])


def _golub_welsch(diagonal: np.ndarray, beside: np.ndarray) -> Rule:
    """The rule of the orthogonal polynomials with these recurrence coefficients."""
    from scipy.linalg import eigh_tridiagonal

    if diagonal.size == 1:
        return diagonal, np.ones(1)
    points, vectors = eigh_tridiagonal(diagonal, beside)
    return points, vectors[0] ** 2 / np.sum(vectors[0] ** 2)


def gauss_of(points: np.ndarray, weights: np.ndarray, order: int) -> Rule:
    """The Gauss rule of a discrete measure, by the Lanczos process with full reorthogonalisation; its
    weights sum to those of the measure. With a fine discretisation it is the rule of a density."""
    mass, order = weights.sum(), min(order, len(points))
    vectors, diagonal, beside = [np.sqrt(weights / mass)], [], []
    for _ in range(order):
        image = points * vectors[-1]
        diagonal.append(vectors[-1] @ image)
        for _twice in range(2):
            image = image - np.array(vectors).T @ (np.array(vectors) @ image)
        beside.append(np.linalg.norm(image))
        vectors.append(image / beside[-1])
    nodes, fractions = _golub_welsch(np.array(diagonal), np.array(beside[:-1]))
    return nodes, mass * fractions


def product(rules: list[Rule]) -> Rule:
    """The product of one-dimensional rules: points (Π m_i, dim) and weights."""
    points = np.stack(np.meshgrid(*(z for z, _ in rules), indexing="ij"), axis=-1).reshape(-1, len(rules))
    weights = functools.reduce(np.multiply.outer, (w for _, w in rules)).ravel()
    return points, weights


def gaussian_rule(d: int, order: int) -> Rule:
    """Product Gauss–Hermite rule of N(0, I_d)."""
    return product([gauss_hermite(order)] * d)


def sphere_rule(d: int, order: int) -> Rule:
    """Rule of the uniform law on the unit sphere of R², R³: equispaced angles (spectral for smooth
    periodic functions), times Gauss–Legendre in the height for d = 3; exact for polynomials of
    degree < order."""
    angles = 2 * np.pi * (np.arange(order) + 0.5) / order
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if d == 2:
        return circle, np.full(order, 1 / order)
    height, w = gauss_legendre((order + 1) // 2)
    radius = np.sqrt(1 - height**2)
    points = np.concatenate(
        [np.column_stack([r * circle, np.full(order, z)]) for r, z in zip(radius, height, strict=True)]
    )
    return points, np.repeat(w / 2, order) / order
