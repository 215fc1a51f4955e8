"""What the distances read off a measure: points with weights, and how far those are from it."""

import math
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._checks import finite, is_traced
from .._shown import shown
from ..states.grid import GridDensity, is_grid
from ..states.measure import AbstractMeasure, is_measure

# What has a distance: a measure, or an array (n, D) with the weights of its rows beside it.
Measure = AbstractMeasure | ArrayLike
Pair = tuple[ArrayLike | None, ArrayLike | None]

EPS = float(np.finfo(np.float64).eps)
_NEGLIGIBLE = 0.01  # of the error that cells as atoms make, for cells that are left out


@dataclass(frozen=True)
class Atoms:
    """Σ_j weights_j δ_{points_j} in float64, weights > 0 of sum 1. `spread` bounds W2 between it and the
    measure that it stands for; `cell` is the size of the cells whose centres the points are; `eps` is the
    precision of the numbers that were passed."""

    points: Float[np.ndarray, "n D"]
    weights: Float[np.ndarray, " n"]
    spread: float = 0.0
    cell: Float[np.ndarray, " D"] | None = None
    eps: float = EPS

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
        rest = replace(self, points=self.points[left], weights=self.weights[left] / self.weights[left].sum())
        far = np.sum((self.points[gone] - rest.mean) ** 2, axis=1) + rest.variance
        lost = math.sqrt(self.weights[gone] @ far)
        return replace(rest, spread=self.spread + lost)


def atoms(name: str, measure: Measure, weights: ArrayLike | None = None) -> Atoms:
    """The atoms of `Particles`, of an array (n, D), or of the cells of a `GridDensity`.

    A cell of sizes h with constant density is √(Σh²/12) away from its centre in W2, exactly."""
    if is_measure(measure):
        if weights is not None:
            raise ValueError(f"{name} brings its own weights: `weights` are for plain arrays.")
        return _cells(name, measure) if is_grid(measure) else _points(name, measure.theta, measure.weights)
    return _points(name, measure, weights)


def _cells(name: str, density: GridDensity) -> Atoms:
    """The centres of the cells that hold mass."""
    mass = _weights(name, density.mass, density.mass.shape)
    low, high = np.asarray(density.low, np.float64), np.asarray(density.high, np.float64)
    cell = (high - low) / mass.shape
    axes = [low[i] + (np.arange(n) + 0.5) * cell[i] for i, n in enumerate(mass.shape)]
    points = np.stack([v.ravel() for v in np.meshgrid(*axes, indexing="ij")], axis=1)
    kept = mass.ravel() > 0
    spread = math.sqrt(np.sum(cell**2) / 12)
    return Atoms(points[kept], mass.ravel()[kept], spread, cell, _eps(density.mass))


def _points(name: str, array: ArrayLike, weights: ArrayLike | None) -> Atoms:
    """Points as they are, with weights or equally weighted."""
    points = _values(name, array)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(
            f"{name} must be particles, a grid density or an array (n, D) of n >= 1 points, got shape "
            f"{points.shape}. For points on the line pass x[:, None], for one of many measures theta[i]."
        )
    if weights is None:
        return Atoms(points, np.full(len(points), 1 / len(points)), eps=_eps(array))
    mass = _weights(name, weights, points.shape[:1])
    return Atoms(points[mass > 0], mass[mass > 0], eps=max(_eps(array), _eps(weights)))


def both(a: Measure, b: Measure, weights: Pair = (None, None)) -> tuple[Atoms, Atoms]:
    """The atoms of two measures on the same space."""
    if not isinstance(weights, tuple | list) or len(weights) != 2:
        raise ValueError(
            f"weights must be a pair, those of a and those of b (or None), got {shown(weights)}."
        )
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


def input_rounding(one: Atoms, two: Atoms) -> tuple[float, float]:
    """How far points may have moved (in W2, of both measures) and how much mass may be misplaced, because all
    numbers were already rounded when they were passed: a point by eps of itself, which is eps√∫|θ|²dμ in W2;
    weights by eps of each, unless all are alike. For single precision that is far above the rounding of all
    sums."""
    moved = sum(v.eps * math.sqrt(v.weights @ np.sum(v.points**2, axis=1)) for v in (one, two))
    uneven = sum(v.eps for v in (one, two) if np.ptp(v.weights) > EPS * v.weights.max())
    return moved, uneven


def largest_cost(one: Atoms, two: Atoms) -> float:
    """The squared diagonal of the box around both measures."""
    points = np.concatenate([one.points, two.points])
    return float(np.sum(np.ptp(points, axis=0) ** 2))


def _eps(array: object) -> float:
    """The precision of an array; whole numbers are exact."""
    dtype = getattr(array, "dtype", np.dtype(float))
    return max(float(jnp.finfo(dtype).eps), EPS) if jnp.issubdtype(dtype, jnp.floating) else EPS


def _values(name: str, array: ArrayLike) -> np.ndarray:
    if is_traced(array):
        raise ValueError(
            f"{name} is traced: this distance chooses its method by values and cannot be inside jit or grad. "
            "wf.distances.w2_line, wf.distances.w2_gaussian and wf.distances.mmd_squared can."
        )
    return finite(name, array).astype(np.float64)


def _weights(name: str, array: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Weights as probabilities: of sum 1 up to half of their digits, then normalised."""
    mass = _values(f"weights of {name}", array)
    if mass.shape != shape:
        raise ValueError(f"weights of {name} must have shape {shape}, got {mass.shape}.")
    total = mass.sum()
    if (mass < 0).any() or abs(total - 1) > math.sqrt(_eps(np.asarray(array))):
        raise ValueError(
            f"weights of {name} must be >= 0 and sum to 1; the sum is {total:.6g}, the least "
            f"{mass.min():.3g}. Try weights / weights.sum()."
        )
    return mass / total
