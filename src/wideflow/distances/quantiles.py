"""W2 on the line between clouds and densities on grids, exactly."""

import numpy as np
from jaxtyping import Float

from .atoms import EPS, Atoms
from .distance import Distance, rooted


def w2_by_quantiles(one: Atoms, two: Atoms) -> Distance:
    """W2² = ∫₀¹(F₁⁻¹ − F₂⁻¹)²dq, D = 1. The quantile function of a cloud is made of steps; that of a density
    which is constant on cells rises linearly over each. So their difference is linear between joint levels,
    from d₀ to d₁, and the integral is Σ Δq (d₀² + d₀d₁ + d₁²)/3."""
    pieces = [_Quantiles(one), _Quantiles(two)]
    levels = np.sort(np.concatenate([p.levels for p in pieces]))
    start, end = pieces[0].between(levels) - pieces[1].between(levels)
    square = float(np.sum(np.diff(levels) * (start**2 + start * end + end**2)) / 3)
    edges = np.concatenate([np.concatenate([p.left, p.right]) for p in pieces])
    # each level is a sum of up to n weights; a shift of it counts by the costs on its two sides
    value, error = rooted(square, 2 * EPS * (one.n + two.n) * float(np.ptp(edges)) ** 2)
    return Distance(value, error + 2 * EPS * float(np.abs(edges).max()), "quantiles on the line", square)


class _Quantiles:
    """F⁻¹, linear from left_j to right_j between levels_j and levels_{j+1}."""

    def __init__(self, atoms: Atoms):
        order = np.argsort(atoms.points[:, 0])
        half = 0.0 if atoms.cell is None else atoms.cell[0] / 2
        points = atoms.points[order, 0]
        self.left, self.right = points - half, points + half
        levels = np.cumsum(atoms.weights[order])
        self.levels = np.concatenate([[0.0], levels / levels[-1]])

    def between(self, levels: Float[np.ndarray, " k"]) -> Float[np.ndarray, "2 k-1"]:
        """F⁻¹ at both ends of each interval of `levels`, which hold ours."""
        ends = np.stack([levels[:-1], levels[1:]])
        at = np.searchsorted(self.levels, ends.mean(axis=0), side="right") - 1
        at = np.clip(at, 0, len(self.left) - 1)
        below, above = self.levels[at], self.levels[at + 1]
        share = np.clip((ends - below) / np.where(above > below, above - below, 1.0), 0.0, 1.0)
        return self.left[at] + share * (self.right - self.left)[at]
