"""Systems and eigenvalues of an operator from its products alone."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._tracing import jit

if TYPE_CHECKING:
    from .operator import AbstractOperator


class Solved(NamedTuple):
    """A solution v of (K + ridge·I)v = y; `residual` is |y − (K + ridge·I)v|/|y|, computed afresh."""

    solution: Array
    residual: float
    converged: bool
    message: str


class Spectrum(NamedTuple):
    """Largest eigenvalues, falling; an eigenvalue of K lies within `bounds[i]` of `values[i]`."""

    values: np.ndarray
    bounds: np.ndarray
    steps: int
    converged: bool
    message: str


def conjugate_gradients(
    operator: "AbstractOperator", y: Array, ridge: float, tol: float, steps: int
) -> Solved:
    """(K + ridge·I)v = y for an operator with `multiply`, at most `steps` products."""
    settings = jnp.asarray(ridge, y.dtype), jnp.asarray(tol, y.dtype), jnp.asarray(steps)
    solution, residual = _cg(operator, y, *settings)
    relative = float(residual)
    # The residual carried along by the iteration drifts from the true one by rounding: hence the factor.
    converged = relative <= 2 * tol
    message = (
        "converged"
        if converged
        else (
            f"The residual is {relative:.2g} of y after at most {steps} products, {tol:.2g} was asked for. "
            f"Try a larger ridge (now {ridge:g}), more steps, a larger tol, or float64."
        )
    )
    return Solved(solution, relative, converged, message)


@jit
def _cg(
    operator: "AbstractOperator", y: Array, ridge: Array, tol: Array, steps: Array
) -> tuple[Array, Array]:
    from jax.scipy.sparse.linalg import cg

    def product(v: Array) -> Array:
        return operator.multiply(v) + ridge * v

    solution, _ = cg(product, y, tol=tol, maxiter=steps)
    size = jnp.linalg.norm(y)
    return solution, jnp.linalg.norm(y - product(solution)) / jnp.where(size > 0, size, 1.0)


def lanczos(
    multiply: Callable[[np.ndarray], np.ndarray],
    n: int,
    k: int,
    tol: float,
    steps: int,
    eps: float,
    seed: int,
) -> Spectrum:
    """The k largest eigenvalues of a symmetric n × n operator; `eps` is the rounding of its products.

    K Q = Q T + β q eᵀ with T tridiagonal: a Ritz pair (θ, Qs) has residual β|s_last|, and an eigenvalue
    lies as near to θ. Every new vector is made orthogonal to all before, twice; where a Krylov space ends
    (β = 0), a new random vector continues it in the complement."""
    rng, most = np.random.default_rng(seed), min(n, steps)
    basis, T = np.zeros((most, n)), np.zeros((most, most))
    vector, j = _orthogonal(rng.standard_normal(n), basis[:0]), 0
    while True:
        basis[j] = vector / np.linalg.norm(vector)
        image = multiply(basis[j]).astype(float)
        T[j, j] = basis[j] @ image
        j += 1
        vector = _orthogonal(image, basis[:j])
        beta, size = float(np.linalg.norm(vector)), float(np.abs(T).max())
        ended = beta <= 10 * eps * np.sqrt(n) * max(size, float(np.linalg.norm(image)))
        if j >= k and (j == most or j % 5 == 0):
            spectrum = _ritz(T[:j, :j], 0.0 if j == n else beta, k, tol, eps * np.sqrt(n))
            if (spectrum.converged and not (ended and j < most)) or j == most:
                return spectrum
        if j < most:
            T[j, j - 1] = T[j - 1, j] = 0.0 if ended else beta
        if ended:
            vector = _orthogonal(rng.standard_normal(n), basis[:j])


def _orthogonal(vector: np.ndarray, basis: np.ndarray) -> np.ndarray:
    for _ in range(2):
        vector = vector - basis.T @ (basis @ vector)
    return vector


def _ritz(T: np.ndarray, beta: float, k: int, tol: float, rounding: float) -> Spectrum:  # noqa: N803
    values, vectors = np.linalg.eigh(T)
    largest, size = values[::-1][:k], float(np.abs(values).max())
    # What rounding of the products alone leaves uncertain is part of the bound.
    bounds = beta * np.abs(vectors[-1, ::-1][:k]) + 10 * rounding * size
    converged = bool((bounds <= max(tol, 10 * rounding) * size * (1 + 1e-9)).all())
    message = (
        "converged"
        if converged
        else (
            f"After {len(T)} products a bound is {bounds.max():.2g}, {tol * size:.2g} was asked for. "
            "Try more steps, a larger tol or fewer eigenvalues."
        )
    )
    return Spectrum(largest, bounds, len(T), converged, message)
