"""What a study looks at beside the risk. Each is fn(t, state) with all that it needs as fields, so that a
checkpoint can tell one from another."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..functionals.base import AbstractFunctional
from ..kernels.tangent import tangent_kernel
from ..problems.radial import RadialNeuron
from ..states.linearisation import Linearisation
from ..states.particles import Particles
from ..states.trainable import AbstractTrainable
from .coordinates import Coordinates, particles_of

QUANTILES = 201


@dataclass(frozen=True)
class KernelMovement:
    """‖K_t − K_0‖/‖K_0‖ (Frobenius) of the tangent kernel on the rows x."""

    start: Float[Array, "m m"]
    x: Float[Array, "m d"]

    def __call__(self, t: float, state: Any) -> Any:
        moved = tangent_kernel(state, self.x, form="trace")
        return jnp.linalg.norm(moved - self.start) / jnp.linalg.norm(self.start)


@dataclass(frozen=True)
class NoMovement:
    """The movement of a kernel that is frozen: 0."""

    def __call__(self, t: float, state: Any) -> Any:
        return 0.0


@dataclass(frozen=True)
class WeightMovement:
    """√(∫|θ_t − θ_0|²dρ / ∫|θ_0|²dρ), a particle by its weight, a network by all its weights alike."""

    start: Any
    mass: Any

    def __call__(self, t: float, state: Any) -> Any:
        now = state.position()
        moved, size = (
            sum(jnp.sum(v**2 * self.mass) for v in jax.tree.leaves(tree))
            for tree in (jax.tree.map(jnp.subtract, now, self.start), self.start)
        )
        return jnp.sqrt(moved / size)


@dataclass(frozen=True)
class Predictions:
    """f on the rows x."""

    x: Float[Array, "m d"]

    def __call__(self, t: float, state: Any) -> Any:
        return state(self.x)


@dataclass(frozen=True)
class Cloud:
    """(k, 3): two coordinates and the output weight of the first k particles (of the probes, if there are
    some)."""

    coordinates: Coordinates
    names: tuple[str, str]
    colour: str | None
    k: int

    def __call__(self, t: float, state: Any) -> Any:
        names = (*self.names, *([self.colour] if self.colour else []))
        rows = self.coordinates.columns(state, names)[_shown(state)][: self.k]
        return rows if self.colour else np.column_stack([rows, np.zeros(len(rows))])


@dataclass(frozen=True)
class Feature:
    """Quantiles of one coordinate under ρ, QUANTILES of them at equal levels."""

    coordinates: Coordinates
    name: str

    def __call__(self, t: float, state: Any) -> Any:
        shown, levels = _shown(state), (np.arange(QUANTILES) + 0.5) / QUANTILES
        rows = self.coordinates.columns(state, (self.name,))[shown, 0]
        mass = np.asarray(particles_of(state).weights, float)[shown]
        if np.ptp(mass) == 0:
            return np.quantile(rows, levels)
        order = np.argsort(rows)
        below = (np.cumsum(mass[order]) - mass[order] / 2) / mass.sum()  # the mass left of a point's middle
        return np.interp(levels, below, rows[order])


@dataclass(frozen=True)
class Value:
    """The value of a functional."""

    functional: AbstractFunctional

    def __call__(self, t: float, state: Any) -> Any:
        return self.functional.value(state)


def _shown(state: Any) -> np.ndarray:
    """Which particles stand for the measure, all alike: the probes of a limit, else all of them."""
    weights = np.asarray(particles_of(state).weights)
    return weights == 0 if (weights == 0).any() else np.ones(len(weights), bool)


def kernel_movement(state: AbstractTrainable, x: Array) -> KernelMovement | NoMovement | None:
    """The observer for a run from this state; None in reduced coordinates, whose own gradients are not those
    of the neurons."""
    if isinstance(state, Particles) and isinstance(state.neuron, RadialNeuron):
        return None
    if isinstance(state, Linearisation):
        return NoMovement()
    return KernelMovement(tangent_kernel(state, x, form="trace"), x)


def weight_movement(state: AbstractTrainable) -> WeightMovement:
    """The observer for a run from this state."""
    mass = state.weights if isinstance(state, Particles) else jnp.ones(())
    return WeightMovement(state.position(), mass)
