"""Entropy of the law behind a cloud of particles, by distances to nearest neighbours."""

import math

import numpy as np

from .measure import EntropyEstimate

_DEFAULT = 4


def neighbour_entropy(theta: np.ndarray, neighbours: int | None, equal_weights: bool) -> EntropyEstimate:
    """S ≈ ψ(n) − ψ(k) + log c_D + (D/n) Σ_j log ε_j (Kozachenko–Leonenko), ε_j the distance of particle j
    to its k-th neighbour; the error is the spread of log ε_j, and the bias that twice as many show."""
    k = neighbours or _DEFAULT
    if len(theta) <= 2 * k:
        raise ValueError(f"Entropy(neighbours={k}) needs more than {2 * k} particles, got {len(theta)}.")
    if not equal_weights:
        raise ValueError(
            "The estimate by neighbours needs particles of equal weight; put weighted ones on a grid, "
            "wf.on_grid(particles, low, high, cells)."
        )
    (here, spread), (wider, _) = (_by_neighbours(theta, j) for j in (k, 2 * k))
    # the bias grows like (k/n)^{2/D}, at an edge like (k/n)^{1/D}, so that twice as many neighbours reveal it
    bias = (wider - here) / (2 ** (1 / theta.shape[1]) - 1)
    return EntropyEstimate(here, math.hypot(spread, bias))


def _whitened(theta: np.ndarray) -> tuple[np.ndarray, float]:
    """The cloud with covariance I, as nearest neighbours need it, and log det of the map back (a cloud in a
    subspace is left as it is)."""
    centred = theta - theta.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(theta))
    if not values[0] > 1e-12 * values[-1]:
        return theta, 0.0
    return centred @ vectors / np.sqrt(values), 0.5 * float(np.log(values).sum())


def _by_neighbours(theta: np.ndarray, k: int) -> tuple[float, float]:
    """The estimate by k-th neighbours and one standard error of it."""
    from scipy.spatial import cKDTree
    from scipy.special import digamma, gammaln

    n, D = theta.shape
    theta, scale = _whitened(theta)
    distance = cKDTree(theta).query(theta, k + 1)[0][:, -1]
    if (distance == 0).any():
        raise ValueError(
            f"{int((distance == 0).sum())} particles have {k} others at the very same place: their law has "
            "no density. Entropy is for noisy particles."
        )
    unit_ball = 0.5 * D * math.log(math.pi) - float(gammaln(0.5 * D + 1))
    each = D * np.log(distance)
    value = float(digamma(n) - digamma(k)) + unit_ball + float(each.mean()) + scale
    return value, float(each.std(ddof=1)) / math.sqrt(n)
