"""W2 by the network simplex."""

import warnings

import numpy as np

from .._checks import count, fits
from .._data import Data
from .atoms import EPS, Atoms, centred, rounding
from .distance import Distance, rooted

_OPTIMAL = 1  # POT's result code


def w2_by_simplex(one: Atoms, two: Atoms, *, iterations: int = 10_000_000) -> Distance:
    """W2² = min_π Σ π_ij |x_i − y_j|² over couplings π, by POT's network simplex; all n × m costs are stored.

    The answer is checked: with its potential u, v_j = min_i(|x_i − y_j|² − u_i) is feasible for the dual
    problem, so that Σp_i u_i + Σq_j v_j ≤ W2² ≤ the plan's cost, and `error` has the gap between."""
    iterations = count("iterations", iterations)
    one, two = one.pruned(), two.pruned()
    hint = 'Take method="sinkhorn", which stores only tiles, or method="sliced".'
    fits(f"A plan between {one.n} and {two.n} points", 6 * 8.0 * one.n * two.n, hint)
    x, y, apart = centred(one, two)
    cost = _costs(x.points, y.points)
    upper, log = _solved(x.weights, y.weights, cost, iterations)
    if log["result_code"] != _OPTIMAL:
        raise ValueError(
            f"The network simplex did not end in {iterations} iterations between {one.n} and {two.n} points "
            f'({log["warning"]}). Allow more with iterations=, or take method="sinkhorn".'
        )
    lower = float(x.weights @ log["u"] + y.weights @ (cost - log["u"][:, None]).min(axis=0))
    slack = max(upper - lower, 0.0) + rounding(x, y) + 4 * EPS * apart
    value, error = rooted(apart + upper, slack)
    error += one.spread + two.spread
    return Distance(value, error, "network simplex" + cells_note(one, two), apart + upper)


def cells_note(one: Atoms, two: Atoms) -> str:
    """A word for `method` where atoms stand for cells."""
    return "" if one.cell is None and two.cell is None else ", cells as atoms"


def _costs(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|x_i − y_j|² by differences: no digits are lost where points are near."""
    from scipy.spatial.distance import cdist

    return cdist(x, y, "sqeuclidean")


def _solved(p: np.ndarray, q: np.ndarray, cost: np.ndarray, iterations: int) -> tuple[float, Data]:
    import ot

    with warnings.catch_warnings():  # the result code is checked instead
        warnings.filterwarnings("ignore", "numItermax", UserWarning)
        upper, log = ot.emd2(p, q, cost, numItermax=iterations, log=True)
    return float(upper), log
