"""Densities of coordinates of θ, for pictures."""

from typing import Any

import numpy as np

from .._checks import finite, nearest, positive
from ..states.particles import Particles


def density(state: Particles, coordinate: int | str, at: Any, bandwidth: float | None = None) -> np.ndarray:
    """The density at the points `at` of one coordinate of θ under ρ, smoothed by a Gaussian of width
    `bandwidth` (by default Silverman's rule, 0.9 min(sd, iqr/1.34) n^−1/5).

    Particles of weight 0 are taken for probes of the measure, all alike (`wf.limit(…, probes=4096)`
    carries such along), and then stand for it; else the weighted particles do. `coordinate` is a column
    of `state.theta` or its name ("a", "s", "r", "b"; "s2" for the second of several)."""
    if not isinstance(state, Particles):
        raise ValueError(
            "density(state) takes wf.Particles such as run.final or run.states[i], got "
            f"{type(state).__name__}."
        )
    theta, weights = np.asarray(state.theta, float), np.asarray(state.weights, float)
    column = theta[:, _column(state, coordinate)]
    probes = weights == 0
    values, mass = (column[probes], np.ones(probes.sum())) if probes.any() else (column, weights)
    width = None if bandwidth is None else positive("density(bandwidth)", bandwidth)
    return gaussian_sum(values, finite("density(at)", at).astype(float), mass, width)


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
    raise ValueError(f"density(coordinate) must be one of {', '.join(names)}, got {coordinate!r}.{hint}")


def _silverman(values: np.ndarray, mass: np.ndarray) -> float:
    mean = mass @ values
    deviation = np.sqrt(mass @ (values - mean) ** 2)
    order = np.argsort(values)
    low, high = np.interp([0.25, 0.75], np.cumsum(mass[order]), values[order])
    spread = min(deviation, (high - low) / 1.34) if high > low else deviation
    number = 1 / np.sum(mass**2)  # of equal particles that would spread as little
    return max(0.9 * spread * number**-0.2, 1e-12 * (1 + abs(mean)))
