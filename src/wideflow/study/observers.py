"""What a study draws of its neurons. Each is fn(t, state) with all that it needs as fields, so that a
checkpoint can tell one from another."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..states.particles import is_cloud
from .coordinates import Coordinates, particles_of

QUANTILES = 201


@dataclass(frozen=True)
class Cloud:
    """(k, 3): two coordinates and the output weight of k particles that stand for the measure: the first of
    them where all weigh the same (of the probes, if there are some), else those at equal levels of mass."""

    coordinates: Coordinates
    names: tuple[str, str]
    colour: str | None
    k: int
    probes: bool = False

    def __call__(self, t: float, state: Any) -> Any:
        names = (*self.names, *([self.colour] if self.colour else []))
        shown = _shown(state, self.probes)
        rows = self.coordinates.columns(state, names)[shown]
        rows = rows[_representatives(_mass(state, shown), self.k)]
        return rows if self.colour else np.column_stack([rows, np.zeros(len(rows))])


@dataclass(frozen=True)
class Feature:
    """Quantiles of one coordinate under ρ, QUANTILES of them at equal levels."""

    coordinates: Coordinates
    name: str
    probes: bool = False

    def __call__(self, t: float, state: Any) -> Any:
        shown, levels = _shown(state, self.probes), (np.arange(QUANTILES) + 0.5) / QUANTILES
        rows = self.coordinates.columns(state, (self.name,))[shown, 0]
        mass = _mass(state, shown)
        if np.ptp(mass) == 0:
            return np.quantile(rows, levels)
        order = np.argsort(rows)
        below = (np.cumsum(mass[order]) - mass[order] / 2) / mass.sum()  # the mass left of a point's middle
        return np.interp(levels, below, rows[order])


@dataclass(frozen=True)
class Marginal:
    """Mass of a density on its cells, over one or two coordinates: (N,), or (N, M) like `names`."""

    names: tuple[str, ...]

    def __call__(self, t: float, state: Any) -> Any:
        axes = [state.index(name) for name in self.names]
        kept = jnp.sum(state.mass, axis=tuple(i for i in range(state.D) if i not in axes))
        return kept if axes == sorted(axes) else kept.T


def _shown(state: Any, probes: bool) -> np.ndarray:
    """Which particles stand for the measure: the probes of a limit, which weigh nothing, else all of them."""
    weights = np.asarray(particles_of(state).weights)
    return weights == 0 if probes else np.ones(len(weights), bool)


def _mass(state: Any, shown: np.ndarray) -> np.ndarray:
    return np.asarray(particles_of(state).weights, float)[shown]


def _representatives(mass: np.ndarray, k: int) -> np.ndarray:
    """Indices of at most k particles."""
    k = min(k, len(mass))
    if np.ptp(mass) == 0:
        return np.arange(k)
    levels = (np.arange(k) + 0.5) / k * mass.sum()
    return np.minimum(np.searchsorted(np.cumsum(mass), levels), len(mass) - 1)


def has_probes(state: Any) -> bool:
    """Whether points of no weight are carried along to be drawn, as a limit does from its start on."""
    return bool((np.asarray(particles_of(state).weights) == 0).any()) and is_cloud(state)
