"""Ridge systems (S + ρI)u = z by Cholesky, with jitter if need be, and by eigenvalues if that fails."""

from typing import NamedTuple

import numpy as np

from .eigenvalues import Spectrum, left_out, spectrum, tolerance

EPS = float(np.finfo(float).eps)
# Rounding of Su relative to z that a factor may cause. A jitter that has to hide labels which contradict each
# other makes u so large that digits of Su are lost: eigenvalues keep them.
_PLAIN, _JITTERED = 1e-3, 1e-8


class Solved(NamedTuple):
    """u and Su (m, O); `left_out` (m, O) = (Bz)_i/B_ii with B = (S + ρI)⁻¹; `freedom` = tr SB."""

    u: np.ndarray
    product: np.ndarray
    left_out: np.ndarray
    freedom: float
    method: str
    jitter: float
    condition: float
    residual: float
    rounding: float
    rank: int


def solve(
    gram: np.ndarray, z: np.ndarray, ridge: float, *, jitter: float | None, unit: float, rows: int
) -> Solved:
    """(S + (ρ + jitter)I)u = z with S = `gram` (m, m), in Fortran order and overwritten; z (m, O).

    No jitter at first. Where the factor fails, or its condition is beyond 1/eps, the smallest of a ladder
    between 10 units of rounding of the largest eigenvalue and `tolerance`: so a jitter that works also shows
    that no eigenvalue is negative by more than rounding. A jitter that is given is used as it is."""
    matrix = _InPlace(gram, rows)
    top = matrix.largest()
    steps = [0.0, *_ladder(top, len(gram), unit)] if jitter is None else [jitter]
    for step in steps:
        attempt = _attempt(matrix, z, ridge, step, top)
        if attempt is not None and attempt.rounding <= (_JITTERED if step and jitter is None else _PLAIN):
            return attempt
        if attempt is not None and step:
            break  # a higher rung would save one digit only
    matrix.restore()
    granted = jitter or 0.0
    return by_eigenvalues(spectrum(gram, unit, rows, granted), z, ridge + granted, rows, jitter=granted)


def by_eigenvalues(spec: Spectrum, z: np.ndarray, rho: float, rows: int, jitter: float = 0.0) -> Solved:
    """u = Σ_k v_k ⟨v_k, z⟩/(λ_k + ρ) over the eigenvalues that are not rounding."""
    t = spec.vectors.T @ z
    inverse = spec.inverse(rho)
    u = spec.vectors @ (inverse[:, None] * t)
    part = np.where(inverse > 0, spec.values * inverse, 0.0)
    product = spec.vectors @ (part[:, None] * t)
    kept = spec.vectors @ ((inverse > 0)[:, None] * t)
    largest, rank = max(float(spec.values[-1]), 0.0), spec.rank
    least = float(spec.values[-rank]) if rank else 0.0
    return Solved(
        u=u,
        product=product,
        left_out=left_out(spec, z, rho, rows),
        freedom=float(part.sum()),
        method="eigenvalues",
        jitter=jitter,
        condition=(largest + rho) / (least + rho) if rank else 1.0,
        residual=_ratio(kept - product - rho * u, z),
        rounding=EPS * largest * _ratio(u, z),
        rank=rank,
    )


def _ladder(top: float, m: int, unit: float) -> list[float]:
    last = tolerance(m, unit) * top
    first = 10 * unit * top
    return [first * 10**k for k in range(16) if 0 < first * 10**k <= last]


def _attempt(matrix: "_InPlace", z: np.ndarray, ridge: float, jitter: float, top: float) -> Solved | None:
    """The solution by one factor, refined once; None if there is none, or its condition is beyond 1/eps."""
    rho = ridge + jitter
    rcond = matrix.factor(rho)
    if not rcond > EPS:
        return None
    u = matrix.solve(z)
    u = u + matrix.solve(z - matrix.times(u) - rho * u)
    if not np.isfinite(u).all():
        return None
    product, inverse = matrix.times(u), matrix.inverse_diagonal()
    return Solved(
        u=u,
        product=product,
        left_out=u / inverse[:, None],
        freedom=len(u) - rho * float(inverse.sum()),
        method="cholesky+jitter" if jitter else "cholesky",
        jitter=jitter,
        condition=1 / rcond,
        residual=_ratio(z - product - rho * u, z),
        rounding=EPS * top * _ratio(u, z),
        rank=len(u),
    )


def _ratio(a: np.ndarray, b: np.ndarray) -> float:
    below = float(np.linalg.norm(b))
    return float(np.linalg.norm(a)) / below if below else 0.0


class _InPlace:
    """One array for a symmetric S and a factor: S above the diagonal (which is kept apart), L below.

    LAPACK in place took two thirds of the time of jnp.linalg.cholesky at m = 3000, and no second matrix."""

    def __init__(self, gram: np.ndarray, rows: int):
        self.S, self.rows, self.diagonal = gram, rows, np.diag(gram).copy()

    def restore(self) -> None:
        for i in range(0, len(self.S), self.rows):
            for j in range(0, i + 1, self.rows):
                mirror = self.S[j : j + self.rows, i : i + self.rows].T
                tile = self.S[i : i + self.rows, j : j + self.rows]
                tile[...] = np.triu(tile) + np.tril(mirror, -1) if i == j else mirror
        np.fill_diagonal(self.S, self.diagonal)

    def times(self, u: np.ndarray) -> np.ndarray:
        """S u."""
        from scipy.linalg.blas import dsymm

        pivots = np.diag(self.S).copy()
        np.fill_diagonal(self.S, self.diagonal)
        out = dsymm(1.0, self.S, np.asfortranarray(u), lower=0)
        np.fill_diagonal(self.S, pivots)
        return out

    def largest(self) -> float:
        """The largest eigenvalue, from below, by power iteration."""
        v = 1 + 0.5 * np.cos(np.arange(len(self.S)) ** 2)[:, None]  # no symmetric vector, which S might miss
        value = 0.0
        for _ in range(12):
            length = np.linalg.norm(v)
            if not length:
                break
            v = v / length
            image = self.times(v)
            value, v = max(value, float(np.vdot(v, image))), image
        return max(value, float(self.diagonal.max()))

    def factor(self, rho: float) -> float:
        """L with LLᵀ = S + ρI; the estimated 1/condition in the 1-norm, 0 if there is no factor."""
        from scipy.linalg.lapack import dpocon, dpotrf

        self.restore()
        columns = range(0, len(self.S), self.rows)
        norm = max(float(np.abs(self.S[:, j : j + self.rows]).sum(0).max()) for j in columns) + rho
        np.fill_diagonal(self.S, self.diagonal + rho)
        _, failed = dpotrf(self.S, lower=1, clean=0, overwrite_a=1)
        return 0.0 if failed else float(dpocon(self.S, norm, uplo="L")[0])

    def solve(self, z: np.ndarray) -> np.ndarray:
        from scipy.linalg.lapack import dpotrs

        return dpotrs(self.S, z, lower=1)[0]

    def inverse_diagonal(self) -> np.ndarray:
        """diag (LLᵀ)⁻¹ = |L⁻¹e_i|², a block of columns at a time: as many operations as the factor."""
        from scipy.linalg import solve_triangular

        m, r, out = len(self.S), self.rows, np.empty(len(self.S))
        for i in range(0, m, r):
            columns = np.zeros((m - i, min(r, m - i)))
            for k in range(i, m, r):  # by hand, as LAPACK would copy a corner of L
                rest = -self.S[k : k + r, i:k] @ columns[: k - i] if k > i else np.eye(columns.shape[1])
                columns[k - i : k - i + r] = solve_triangular(
                    self.S[k : k + r, k : k + r], rest, lower=True, check_finite=False
                )
            out[i : i + r] = np.einsum("ij,ij->j", columns, columns)
        return out
