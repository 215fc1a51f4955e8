"""What the distances read off a measure: points with weights, and how far those are from it."""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from .._checks import finite
from ..states.grid import GridDensity
from ..states.particles import Particles

EPS = float(np.finfo(np.float64).eps)
_NEGLIGIBLE = 0.01  # of the error that cells as atoms make, for cells that are left out


@dataclass(frozen=True)
class Atoms:
    """Σ_j weights_j δ_{points_j} in float64, weights > 0 of sum 1. `spread` bounds W2 between it and the
    measure that it stands for; `cell` is the size of the cells whose centres the points are."""

    points: Float[np.ndarray, "n D"]
    weights: Float[np.ndarray, " n"]
    spread: float = 0.0
    cell: Float[np.ndarray, " D"] | None = None

    @property
    def n(self) -> int:
        return len(self.points)

    @property
    def D(self) -> int:  # noqa: N802 (theory's name)
        return self.points.shape[1]

    @property
    def mean(self) -> Float[np.ndarray, " D"]:
        return self.weights @ self.points

    @property
    def variance(self) -> float:
        """∫|θ − mean|², the trace of the covariance."""
        return float(self.weights @ np.sum((self.points - self.mean) ** 2, axis=1))

    def moved(self, shift: np.ndarray) -> "Atoms":
        """Every point moved by `shift`."""
        return replace(self, points=self.points + shift)

    def pruned(self) -> "Atoms":
        """Without the cells of least mass, as far as that is negligible beside `spread`: what is left out,
        mass δ_i at x_i, is brought anywhere to the rest μ', of mean m', at the cost Σδ_i(|x_i − m'|² + var
        μ')."""
        if self.cell is None or self.n == 1:
            return self
        cost = self.weights * (np.sum((self.points - self.mean) ** 2, axis=1) + self.variance)
        order = np.argsort(self.weights)
        out = np.cumsum(cost[order]) <= (_NEGLIGIBLE * self.spread) ** 2
        out[-1] = False
        gone, left = order[out], order[~out]
        rest = Atoms(self.points[left], self.weights[left] / self.weights[left].sum())
        far = np.sum((self.points[gone] - rest.mean) ** 2, axis=1) + rest.variance
        lost = math.sqrt(self.weights[gone] @ far)
        return replace(rest, spread=self.spread + lost, cell=self.cell)


def atoms(name: str, given: Any, weights: Any = None) -> Atoms:
    """The atoms of `Particles`, of an array (n, D), or of the cells of a `GridDensity`.

    A cell of sizes h with constant density is √(Σh²/12) away from its centre in W2, exactly."""
    if isinstance(given, GridDensity | Particles) and weights is not None:
        raise ValueError(f"{name} brings its own weights: `weights` are for plain arrays.")
    if isinstance(given, GridDensity):
        mass = _weights(name, given.mass, given.mass.shape)
        low, high = np.asarray(given.low, np.float64), np.asarray(given.high, np.float64)
        cell = (high - low) / mass.shape
        axes = [low[i] + (np.arange(n) + 0.5) * cell[i] for i, n in enumerate(mass.shape)]
        points = np.stack([v.ravel() for v in np.meshgrid(*axes, indexing="ij")], axis=1)
        kept = mass.ravel() > 0
        spread = math.sqrt(np.sum(cell**2) / 12)
        return Atoms(points[kept], mass.ravel()[kept], spread, cell)
    if isinstance(given, Particles):
        given, weights = given.theta, given.weights
    points = _values(name, given)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(
            f"{name} must be particles, a grid density or an array (n, D) of n >= 1 points, got shape "
            f"{points.shape}. For points on the line give x[:, None], for one of many measures theta[i]."
        )
    if weights is None:
        return Atoms(points, np.full(len(points), 1 / len(points)))
    mass = _weights(name, weights, points.shape[:1])
    return Atoms(points[mass > 0], mass[mass > 0])


def both(a: Any, b: Any, weights: Any = (None, None)) -> tuple[Atoms, Atoms]:
    """The atoms of two measures on the same space."""
    if not isinstance(weights, tuple | list) or len(weights) != 2:
        raise ValueError(f"weights must be a pair, those of a and those of b (or None), got {weights!r}.")
    one, two = atoms("a", a, weights[0]), atoms("b", b, weights[1])
    if one.D != two.D:
        raise ValueError(f"a and b must lie in the same space, but a is in R^{one.D} and b in R^{two.D}.")
    return one, two


def centred(one: Atoms, two: Atoms) -> tuple[Atoms, Atoms, float]:
    """Both with mean 0, and |m₁ − m₂|²: W2² is the sum of it and of W2² of the centred measures, which spares
    the digits, and the iterations, that a translation would cost."""
    shift = one.mean - two.mean
    return one.moved(-one.mean), two.moved(-two.mean), float(shift @ shift)


def rounding(one: Atoms, two: Atoms) -> float:
    """Error of W2² by rounding: weights are known up to eps each, and a change of them by η in all changes
    W2² by at most η times the largest cost; so do n sums of costs."""
    largest = np.sqrt([np.max(np.sum(v.points**2, axis=1)) for v in (one, two)]).sum() ** 2
    return 2 * EPS * (one.n + two.n) * float(largest)


def _values(name: str, given: Any) -> np.ndarray:
    if isinstance(given, jax.core.Tracer):
        raise ValueError(
            f"{name} is traced: this distance chooses its method by values and cannot be inside jit or grad. "
            "wf.w2_line and wf.w2_gaussian can."
        )
    return finite(name, given).astype(np.float64)


def _weights(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Weights as probabilities: of sum 1 up to half the digits they came with, then of sum 1."""
    found = _values(f"weights of {name}", given)
    if found.shape != shape:
        raise ValueError(f"weights of {name} must have shape {shape}, got {found.shape}.")
    dtype = np.asarray(given).dtype
    digits = np.finfo(dtype if dtype.kind == "f" else np.float64).eps
    total = found.sum()
    if (found < 0).any() or abs(total - 1) > math.sqrt(digits):
        raise ValueError(
            f"weights of {name} must be >= 0 and sum to 1; the sum is {total:.6g}, the least "
            f"{found.min():.3g}. Try weights / weights.sum()."
        )
    return found / total
