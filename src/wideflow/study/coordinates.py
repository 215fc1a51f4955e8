"""Coordinates of neurons by name: those of θ, and those of the problem's symmetry."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from .._checks import nearest
from ..problems.neurons import is_ridge
from ..problems.problem import Problem
from ..problems.symmetry import NoSymmetryError, Symmetry
from ..states.particles import Particles


@dataclass(frozen=True)
class Coordinates:
    """Columns of θ of every particle, by the neuron's names for them; where the problem has a symmetry also s
    (along the signal) and r (the length of the rest), so that a network and its limit, which knows only
    these, can be drawn alike."""

    symmetry: Symmetry | None
    reduced: tuple[str, ...]  # names in the reduced coordinates, () where there are none
    own: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys((*self.own, *self.reduced)))

    def check(self, name: str) -> str:
        if name not in self.names:
            shown = self.names if len(self.names) <= 12 else [*self.names[:11], "…"]
            hint = nearest(name, self.names)
            raise ValueError(f"there is no coordinate {name!r}; there are {', '.join(shown)}.{hint}")
        return name

    def default(self) -> tuple[str, str]:
        """Two that tell most: the signal and the length of the rest, or the output weight and another."""
        signal = [name for name in self.reduced if name.startswith("s")]
        radii = [name for name in self.reduced if name.startswith("r")]
        weights = [name for name in self.names if name.startswith("a")]
        inner = [name for name in self.own if name.startswith("w")]
        ordered = [*signal, *radii, *inner, *weights]
        if not signal and radii and weights:
            ordered = [radii[0], weights[0], *ordered]
        first = ordered[0] if ordered else self.names[0]
        second = next((name for name in ordered[1:] if name != first), first)
        return first, second

    def known(self, state: Particles, names: tuple[str, ...]) -> bool:
        """Whether these particles have such coordinates: those of a limit have the reduced ones alone."""
        has = self.names if state.neuron.is_flat else self.reduced
        return all(name in has for name in names)

    def columns(self, state: Particles, names: tuple[str, ...]) -> np.ndarray:
        """(n, len(names)) of the particles in a state, with its replica axis in front if it has one; a
        linearised one is where its parameters are."""
        at = particles_of(state)
        known = at.neuron.coordinates(at.D)
        needs_symmetry = self.symmetry is not None and any(name not in known for name in names)
        if needs_symmetry:
            known += tuple(name for name in self.reduced if name[0] in "sr")
        values = _coordinates(*jax.device_get((at, self.symmetry if needs_symmetry else None)))
        return np.stack([values[..., known.index(name)] for name in names], axis=-1)


def _coordinates(particles: Particles, symmetry: Symmetry | None) -> Float[np.ndarray, "*r n all"]:
    """θ of each particle, and (s, r) beside it where there is a symmetry; on the host."""
    theta = np.asarray(particles.theta)
    if symmetry is None:
        return theta
    return np.concatenate([theta, symmetry.weights(particles.parts.w.swapaxes(-1, -2))], axis=-1)


def coordinates(problem: Problem) -> Coordinates | None:
    """The coordinates of a problem's neurons; None where they have no names worth drawing."""
    neuron: Any = problem.neuron
    if not neuron.is_flat:
        own = tuple(neuron.coordinates(problem.D))
        return Coordinates(None, own, own)
    if not is_ridge(neuron):
        return None
    own = () if problem.d == float("inf") else tuple(neuron.coordinates(problem.D))
    try:
        small = problem.reduced()
        return Coordinates(problem.symmetry(), tuple(small.neuron.coordinates(small.D)), own)
    except NoSymmetryError:
        return Coordinates(None, (), own)


def particles_of(state: Any) -> Particles:
    """The particles of a state, where its parameters are now."""
    found = state.cloud
    if found is None:  # a density has one at the centre of each cell
        found = getattr(state.current, "particles", None)
    if found is None:
        raise ValueError(f"only measures of neurons have coordinates, got a {type(state.current).__name__}")
    return found
