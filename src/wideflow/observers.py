"""The functions fn(t, state) behind the names in `observables`, for `wf.evolve(observe=[…])` and studies.

Each is a frozen dataclass, or a function, with all that it needs as fields, so that a checkpoint can tell one
from another. Those that JAX can trace are pytrees, so that one program observes all replicas of a run.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from ._checks import nearest
from ._shown import shown
from ._typing import Scalar
from .functionals.base import AbstractFunctional
from .functionals.entropy import Entropy
from .functionals.free_energy import FreeEnergy
from .functionals.penalties import PathNorm, SecondMoment
from .kernels.tangent import tangent_kernel
from .states.measure import AbstractMeasure
from .states.particles import is_cloud
from .states.state import AbstractState
from .states.trainable import AbstractTrainable, is_trainable

Observer = Callable[..., ArrayLike]  # (t, state) ↦ a number or an array

_NEIGHBOURS = 4
# Points for the movement of a kernel, and the stream that they are drawn from, which no run draws from.
_ROWS, _STREAM = 64, 2**32 - 3


def mass(t: float, state: AbstractMeasure) -> Array:
    """∫dρ, which every dynamics keeps at 1."""
    return jnp.sum(state.weights)


def second_moment(t: float, state: AbstractTrainable | AbstractMeasure) -> Array:
    """½∫|θ|²dρ over the trained coordinates, as `wf.SecondMoment`."""
    return state.second_moment()


class KernelMovement(eqx.Module):
    """‖K_t − K_0‖/‖K_0‖ (Frobenius) of the tangent kernel on the rows x."""

    start: Float[Array, "m m"]
    x: Float[Array, "m d"]

    def __call__(self, t: float, state: AbstractState) -> Scalar:
        kernel = tangent_kernel(_with_kernel(state), self.x, form="trace")
        return _relative(jnp.linalg.norm(kernel - self.start), jnp.linalg.norm(self.start))


def _relative(moved: Array, size: Array) -> Array:
    """moved/size: 0 where nothing has moved, ∞ where something has from a start of size 0."""
    return jnp.where(moved == 0, jnp.zeros_like(moved), moved / size)


class NoMovement(eqx.Module):
    """The movement of a kernel that is frozen: 0."""

    def __call__(self, t: float, state: AbstractState) -> Scalar:
        return 0.0


class WeightMovement(eqx.Module):
    """√(∫|θ_t − θ_0|²dρ / ∫|θ_0|²dρ), a particle by its weight, a network by all its weights alike."""

    start: PyTree
    mass: Array

    def __call__(self, t: float, state: AbstractTrainable) -> Scalar:
        now = state.position()
        moved, size = (
            sum(jnp.sum(v**2 * self.mass) for v in jax.tree.leaves(tree))
            for tree in (jax.tree.map(jnp.subtract, now, self.start), self.start)
        )
        return jnp.sqrt(_relative(jnp.asarray(moved), jnp.asarray(size)))


class Predictions(eqx.Module):
    """f on the rows x."""

    x: Float[Array, "m d"]

    def __call__(self, t: float, state: AbstractState) -> Array:
        return state(self.x)


class Value(eqx.Module):
    """The value of a functional."""

    functional: AbstractFunctional

    def __call__(self, t: float, state: AbstractState) -> Scalar:
        return self.functional.value(state)


@dataclass(frozen=True)
class FreeEnergyEstimate:
    """F = R_λ − S/β of particles, the entropy by nearest neighbours; or, if `of_error`, its standard error.
    ∞ where particles coincide: a law without density has S = −∞. Made by `free_energy_estimate`."""

    functional: FreeEnergy
    of_error: bool = False

    def __call__(self, t: float, state: AbstractMeasure) -> Scalar:
        try:
            entropy = Entropy(_NEIGHBOURS).estimate(state)
        except ValueError:  # particles at the very same place
            return math.inf
        return entropy.error / self.functional.beta if self.of_error else self.functional.energy(state)


def free_energy_estimate(functional: AbstractFunctional, beta: float, decay: float) -> dict[str, Observer]:
    """The observers of F and of its error, by name."""
    free = FreeEnergy(functional, beta=beta, decay=decay, neighbours=_NEIGHBOURS)
    return {
        "free_energy_estimate": FreeEnergyEstimate(free),
        "free_energy_error": FreeEnergyEstimate(free, of_error=True),
    }


def _with_kernel(state: PyTree) -> PyTree:
    """What has the kernel: of a density, the particles at the centres of its cells."""
    return getattr(state, "particles", state)


def kernel_movement(state: AbstractState, x: Array) -> KernelMovement | NoMovement | None:
    """The observer for a run from this state; None in reduced coordinates, whose own gradients are not those
    of the neurons."""
    if state.is_reduced:
        return None
    if state.base is not state:  # linearised: its kernel stays
        return NoMovement()
    return KernelMovement(tangent_kernel(_with_kernel(state), x, form="trace"), x)


def weight_movement(state: AbstractState) -> WeightMovement | None:
    """The observer for a run from this state; None for a density, whose cells stay where they are."""
    if not is_trainable(state):
        return None
    mass = state.weights if is_cloud(state) else jnp.ones(())
    return WeightMovement(state.position(), mass)


def resolve(observe: PyTree, functional: AbstractFunctional, state: AbstractState) -> PyTree:
    """`observe` of `wf.evolve` with functions in place of names from `observables`: a list may hold names."""
    if isinstance(observe, str):
        observe = [observe]
    if isinstance(observe, Mapping) or callable(observe) or not isinstance(observe, Iterable):
        return observe
    listed = list(observe)
    if not any(isinstance(one, str) for one in listed):
        return listed
    named = {one if isinstance(one, str) else getattr(one, "__name__", repr(one)): one for one in listed}
    make = lambda one: observer(one, functional, state) if isinstance(one, str) else one
    return {name: make(one) for name, one in named.items()}


def observer(name: str, functional: AbstractFunctional, state: AbstractState) -> Observer:
    """The observer of this name for a run of `functional` from `state`."""
    make = _NAMED.get(name)
    if make is None:
        raise ValueError(
            f"There is no observer {shown(name)}; by name there are {', '.join(_NAMED)} (the risk is always "
            f"observed). Others are functions of (t, state).{nearest(name, _NAMED)}"
        )
    if name in _FROM_START and getattr(state, "replicas", None) is not None:
        raise ValueError(
            f"{shown(name)} compares with the start of a single state, and this one has replicas. Observe it "
            "in runs of their own, state.replica(r)."
        )
    return make(functional, state)


def _kernel(functional: AbstractFunctional, state: AbstractState) -> Observer:
    problem = functional.problem
    if problem is None or math.isinf(problem.d):
        raise ValueError("kernel_movement needs a risk whose x can be drawn, in finite d.")
    moved = kernel_movement(state, problem.sample(jax.random.key(_STREAM), _ROWS).x)
    if moved is None:
        raise ValueError("kernel_movement is that of neurons in R^d: reduced coordinates have none.")
    return moved


def _weights(functional: AbstractFunctional, state: AbstractState) -> Observer:
    moved = weight_movement(state)
    if moved is None:
        raise ValueError("weight_movement is that of neurons or weights: the cells of a density stay.")
    return moved


_FROM_START = ("kernel_movement", "weight_movement")
_NAMED: dict[str, Callable[[AbstractFunctional, Any], Observer]] = {
    "kernel_movement": _kernel,
    "weight_movement": _weights,
    "second_moment": lambda functional, state: Value(SecondMoment()),
    "path_norm": lambda functional, state: Value(PathNorm()),
    "mass": lambda functional, state: mass,
}
