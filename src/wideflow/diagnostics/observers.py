"""Ready-made observers fn(t, state) for `wf.evolve(observe={…})`, of measures of neurons."""

from dataclasses import dataclass
from typing import Literal, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._checks import nearest
from .._shown import shown
from .._tracing import jit, traced
from .._typing import Scalar
from ..functionals.base import AbstractFunctional
from ..observers import mass, second_moment
from ..states.grid import GridDensity, is_grid
from ..states.measure import is_measure
from ..states.state import AbstractState

__all__ = ["DistanceTo", "EnergyOf", "distance_to", "mass", "second_moment"]

By = Literal["l1", "kl", "w2"]


@dataclass(frozen=True)
class EnergyOf:
    """`energy` of a functional, such as wf.FreeEnergy(R, beta=…, decay=…), along a run."""

    functional: AbstractFunctional

    def __call__(self, t: float, state: AbstractState) -> Array:
        return _energy(traced(self.functional), state)


_energy = jit(lambda functional, state: functional.energy(state))


@dataclass(frozen=True)
class DistanceTo:
    """How far a state is from a measure such as ρ*: "l1" ∫|ρ − ρ*| and "kl" ∫ρ log(ρ/ρ*) between densities on
    one grid, "w2" between any two. Made by `wf.diagnostics.distance_to`."""

    reference: PyTree  # whatever `by` can compare
    by: By

    def __call__(self, t: float, state: PyTree) -> Scalar:
        if self.by == "w2":
            from ..distances.wasserstein import w2

            return float(w2(state, self.reference).value)
        _check_grid(self.reference, state)
        return (_l1 if self.by == "l1" else _kl)(state.mass, self.reference.mass)


def distance_to(target: object, by: By = "l1") -> DistanceTo:
    """The observer of the distance to `target`: what `wf.gibbs` returned, or a state. To ρ*, l1²/2 ≤ kl ≤
    β(F(ρ) − F*)."""
    if by not in get_args(By):
        raise ValueError(
            f"distance_to(by) must be one of {get_args(By)}, got {shown(by)}.{nearest(by, get_args(By))}"
        )
    reference = getattr(target, "state", target)
    if not is_measure(reference):
        raise ValueError(
            "distance_to(target) takes wf.gibbs(…), a wf.GridDensity or wf.Particles, got a "
            f"{type(target).__name__}."
        )
    if by != "w2" and not is_grid(reference):
        raise ValueError(f'distance_to(by="{by}") needs densities on one grid; for particles use by="w2".')
    return DistanceTo(reference, by)


def _check_grid(reference: GridDensity, state: AbstractState) -> None:
    same = is_grid(state) and state.mass.shape == reference.mass.shape
    ends = same and all(
        np.allclose(getattr(state, name), getattr(reference, name)) for name in ("low", "high")
    )
    if not ends:
        raise ValueError(
            "The two densities must be on one grid (low, high and cells alike); otherwise use "
            'wf.diagnostics.distance_to(…, by="w2").'
        )


@jit
def _l1(mass: Array, other: Array) -> Array:
    return jnp.sum(jnp.abs(mass - other))


@jit
def _kl(mass: Array, other: Array) -> Array:
    """∞ where ρ has mass that the other does not."""
    occupied = mass > 0
    ratio = jnp.log(jnp.where(occupied, mass, 1.0)) - jnp.log(jnp.where(occupied, other, 1.0))
    return jnp.sum(jnp.where(occupied, mass * ratio, 0.0))
