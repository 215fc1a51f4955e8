"""Ridge systems (S + ρI)u = z through the eigenvalues of S: minimum norm where S is singular."""

from typing import NamedTuple

import numpy as np

from .gram import room

# Times √m units of rounding times the largest eigenvalue: rounding of the entries moves eigenvalues by less.
_ROUNDING = 100.0


class Spectrum(NamedTuple):
    """S = Σ_k λ_k v_k v_kᵀ; λ_k ≤ cut count as 0. `values` (m,) rise, `vectors` (m, m) are columns."""

    values: np.ndarray
    vectors: np.ndarray
    cut: float

    @property
    def rank(self) -> int:
        return int(np.sum(self.values > self.cut))

    @property
    def condition(self) -> float:
        return float(self.values[-1] / self.values[-self.rank]) if self.rank else 1.0

    def inverse(self, ridge: float) -> np.ndarray:
        """1/(λ_k + ρ), 0 where λ_k counts as 0: the limit of least squares of least norm."""
        kept = self.values > self.cut
        return np.where(kept, 1 / np.where(kept, self.values + ridge, 1.0), 0.0)


def spectrum(gram: np.ndarray, unit: float, rows: int, jitter: float = 0.0) -> Spectrum:
    """All eigenvalues of S = `gram`, which is overwritten; an error if one is negative by more than
    rounding (or than the `jitter` that the user grants)."""
    from scipy.linalg import eigh

    room(len(gram), rows, matrices=3)
    values, vectors = eigh(gram, lower=False, overwrite_a=True, check_finite=False)
    cut = tolerance(len(gram), unit) * max(values[-1], 0.0)
    if values[0] < -max(cut, jitter):
        raise ValueError(
            f"The kernel is not positive semi-definite: its weighted Gram matrix has the eigenvalue "
            f"{values[0]:.3g}, the largest is {values[-1]:.3g}, and rounding explains {-cut:.1g} at most. "
            "Look at the kernel's formula and precision; a jitter that covers it can be given."
        )
    return Spectrum(values, vectors, float(cut))


def tolerance(m: int, unit: float) -> float:
    """Eigenvalues of an m × m matrix below this fraction of the largest are rounding."""
    return _ROUNDING * float(np.sqrt(m)) * unit


def left_out(spec: Spectrum, z: np.ndarray, ridge: float, rows: int) -> np.ndarray:
    """(B z)_i/B_ii (m, O) with B = (S + ρI)⁻¹, for ρ → 0 its limit where S is singular.

    With P₀ the projection on what counts as the null space, ρB → P₀: where (P₀)_ii > 0 it is P₀ that matters,
    elsewhere the pseudo-inverse."""
    m, zeros = len(z), int(np.sum(spec.values <= spec.cut))
    inverse = spec.inverse(ridge)
    shares = np.where(spec.values > spec.cut, ridge * inverse, 1.0)  # of ρB
    t = spec.vectors.T @ z
    out = np.empty_like(z)
    for i in range(0, m, rows):
        v = spec.vectors[i : i + rows]
        square = v * v
        null = square[:, :zeros].sum(1) > m * np.finfo(float).eps
        # with ρ > 0 both weights of the eigenvalues agree away from the null space
        top = np.where(null[:, None], v @ (shares[:, None] * t), v @ (inverse[:, None] * t))
        below = np.where(null, square @ shares, square @ inverse)
        out[i : i + rows] = top / below[:, None]
    return out
