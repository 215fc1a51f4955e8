"""What a study draws of its neurons. Each is fn(t, state) with all that it needs as fields, so that a
checkpoint can tell one from another."""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..states.particles import is_cloud
from .coordinates import Coordinates, particles_of

QUANTILES = 201


class AbstractPicture(abc.ABC):
    """What is drawn of the coordinates and the mass of particles alone."""

    coordinates: Coordinates
    probes: bool

    @property
    @abc.abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the coordinates that it needs."""

    @abc.abstractmethod
    def drawn(self, rows: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Of the coordinates (n, columns) and the mass (n,) of particles."""

    def __call__(self, t: float, state: Any) -> np.ndarray:
        weights = np.asarray(particles_of(state).weights, float)
        shown = weights == 0 if self.probes else slice(None)  # the probes of a limit weigh nothing
        return self.drawn(self.coordinates.columns(state, self.columns)[shown], weights[shown])

    def of_replicas(self, state: Any, widths: Sequence[int]) -> list[np.ndarray]:
        """Of each replica's first particles, `widths` of them: the others only fill it up."""
        at = particles_of(state)
        rows, mass = self.coordinates.columns(state, self.columns), np.asarray(at.weights, float)
        return [self.drawn(rows[r, :n], mass[r, :n]) for r, n in enumerate(widths)]


@dataclass(frozen=True)
class Cloud(AbstractPicture):
    """(k, 3): two coordinates and the output weight of k particles that stand for the measure: the first of
    them where all weigh the same (of the probes, if there are some), else those at equal levels of mass."""

    coordinates: Coordinates
    names: tuple[str, str]
    colour: str | None
    k: int
    probes: bool = False

    @property
    def columns(self):
        return (*self.names, *([self.colour] if self.colour else []))

    def drawn(self, rows, mass):
        rows = rows[_representatives(mass, self.k)]
        return rows if self.colour else np.column_stack([rows, np.zeros(len(rows))])


@dataclass(frozen=True)
class Feature(AbstractPicture):
    """Quantiles of one coordinate under ρ, QUANTILES of them at equal levels."""

    coordinates: Coordinates
    name: str
    probes: bool = False

    @property
    def columns(self):
        return (self.name,)

    def drawn(self, rows, mass):
        levels, values = (np.arange(QUANTILES) + 0.5) / QUANTILES, rows[:, 0]
        if np.ptp(mass) == 0:
            return np.quantile(values, levels)
        order = np.argsort(values)
        below = (np.cumsum(mass[order]) - mass[order] / 2) / mass.sum()  # the mass left of a point's middle
        return np.interp(levels, below, values[order])


@dataclass(frozen=True)
class Marginal:
    """Mass of a density on its cells, over one or two coordinates: (N,), or (N, M) like `names`."""

    names: tuple[str, ...]

    def __call__(self, t: float, state: Any) -> Any:
        axes = [state.index(name) for name in self.names]
        kept = jnp.sum(state.mass, axis=tuple(i for i in range(state.D) if i not in axes))
        return kept if axes == sorted(axes) else kept.T


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
