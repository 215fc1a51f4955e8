"""Densities of coordinates of θ, for pictures."""

import numpy as np
from numpy.typing import ArrayLike

from .._checks import finite, nearest, positive
from .._shown import shown
from ..states.particles import Particles, is_cloud


def density(
    state: Particles,
    coordinate: int | str,
    at: ArrayLike,
    bandwidth: float | None = None,
    *,
    probes: bool = False,
) -> np.ndarray:
    """The density at the points `at` of one coordinate of θ under ρ, smoothed by a Gaussian of width
    `bandwidth` (by default Silverman's rule, 0.9 min(sd, iqr/1.34) n^−1/5, n = 1/Σω² the number of equal
    particles that would scatter as much).

    Particles of weight 0 are not part of ρ and do not count. With `probes` only they count, equally: those
    that `wf.limit(…, probes=4096)` carries along stand for its measure. `coordinate` is a column of
    `state.theta` or its name ("a", "s", "r", "b"; "s2" for the second of several)."""
    if not is_cloud(state):
        raise ValueError(
            "density(state) takes wf.Particles such as run.final or run.states[i], got "
            f"{type(state).__name__}."
        )
    theta, weights = np.asarray(state.theta, float), np.asarray(state.weights, float)
    column = theta[:, _column(state, coordinate)]
    counted = weights == 0 if probes else weights > 0
    if not counted.any():
        raise ValueError(
            "density(probes=True) takes the particles of weight 0, but this state has none. Ask for some "
            "with wf.limit(…, probes=4096), or leave probes out."
        )
    mass = np.ones(counted.sum()) if probes else weights[counted]
    width = None if bandwidth is None else positive("density(bandwidth)", bandwidth)
    return gaussian_sum(column[counted], finite("density(at)", at).astype(float), mass, width)


def gaussian_sum(
    values: np.ndarray, at: np.ndarray, mass: np.ndarray | None = None, width: float | None = None
) -> np.ndarray:
    """Σ_i mass_i N(at; values_i, width²), equal masses and Silverman's width by default."""
    mass = np.ones(len(values)) if mass is None else mass
    mass = mass / mass.sum()
    width = _silverman(values, mass) if width is None else width
    scaled = (at[..., None] - values) / width
    return np.exp(-0.5 * scaled**2) @ mass / (width * np.sqrt(2 * np.pi))


def _column(state: Particles, coordinate: int | str) -> int:
    names = state.neuron.coordinates(state.D)
    if isinstance(coordinate, int) and -state.D <= coordinate < state.D:
        return coordinate
    if coordinate in names:
        return names.index(str(coordinate))
    hint = nearest(str(coordinate), names)
    raise ValueError(f"density(coordinate) must be one of {', '.join(names)}, got {shown(coordinate)}.{hint}")


def _silverman(values: np.ndarray, mass: np.ndarray) -> float:
    mean = mass @ values
    deviation = np.sqrt(mass @ (values - mean) ** 2)
    order = np.argsort(values)
    low, high = np.interp([0.25, 0.75], np.cumsum(mass[order]), values[order])
    spread = min(deviation, (high - low) / 1.34) if high > low else deviation
    number = 1 / np.sum(mass**2)  # of equal particles that would spread as little
    return max(0.9 * spread * number**-0.2, 1e-12 * (1 + abs(mean)))
