"""The change of a quantity between saved times, next to the integral of its rate."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, PyTree
from numpy.typing import ArrayLike

from ..run import Run

_FEWEST = 4  # points of a cubic spline


@dataclass(frozen=True)
class Balance:
    """Q(t_{k+1}) − Q(t_k) = ∫Q̇ dt between the saved times `t`, one row per interval.

    - `change`: of Q itself; `expected`: the integral of Q̇ over the interval.
    - `residual`: change − expected.
    - `error`: one standard error that noise of finitely many particles gives it; 0 where there is none.
    - `order`: of the integral in the distance of the saved times: 4 (a cubic spline), or 2 (trapezoids)."""

    t: Float[np.ndarray, " T"]
    change: Float[np.ndarray, "T-1 ..."]
    expected: Float[np.ndarray, "T-1 ..."]
    error: Float[np.ndarray, "T-1 ..."]
    order: int

    @property
    def residual(self) -> np.ndarray:
        return self.change - self.expected

    @property
    def standardised(self) -> np.ndarray:
        """The residual in standard errors (where there is noise)."""
        return np.divide(self.residual, self.error, out=np.zeros_like(self.residual), where=self.error > 0)

    @property
    def largest(self) -> float:
        """The largest residual summed up to any saved time, as a share of the total size of the changes."""
        total = np.abs(np.cumsum(self.residual, axis=0)).max(axis=0)
        return float(np.max(total / np.maximum(np.abs(self.change).sum(axis=0), 1e-300)))


def snapshots(name: str, run: object) -> tuple[np.ndarray, list[PyTree]]:
    """Times and states of a run that kept them."""
    if not isinstance(run, Run):
        raise ValueError(f"{name}(run) must be what wf.evolve returned, got a {type(run).__name__}.")
    if len(run.states) < 2 or len(run.states) != len(run.t):
        raise ValueError(f"{name}(run) needs states at two times or more: wf.evolve(…, snapshots=True).")
    return run.t, run.states


def balance(t: np.ndarray, value: ArrayLike, rate: ArrayLike, variance: ArrayLike | None = None) -> Balance:
    """From Q and Q̇ at the times t, and the rate at which noise adds variance to Q. A rate that is noisy is
    integrated by trapezoids, a smooth one by a cubic spline."""
    value, rate = np.asarray(value, float), np.asarray(rate, float)
    smooth = variance is None and len(t) >= _FEWEST
    expected = (_by_spline if smooth else _by_trapezoids)(t, rate)
    if variance is None:
        error = np.zeros_like(expected)
    else:
        error = np.sqrt(_by_trapezoids(t, np.asarray(variance, float)))
    return Balance(t, np.diff(value, axis=0), expected, error, 4 if smooth else 2)


def _by_trapezoids(t: np.ndarray, rate: np.ndarray) -> np.ndarray:
    steps = np.diff(t).reshape(-1, *(1,) * (rate.ndim - 1))
    return 0.5 * steps * (rate[1:] + rate[:-1])


def _by_spline(t: np.ndarray, rate: np.ndarray) -> np.ndarray:
    from scipy.interpolate import CubicSpline

    return np.diff(CubicSpline(t, rate, axis=0).antiderivative()(t), axis=0)
