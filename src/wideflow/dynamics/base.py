"""What every dynamics answers to the loop in `evolve`."""

import abc
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._typing import Abstract
from ..functionals.base import AbstractFunctional


class Info(NamedTuple):
    """What an advance reports: nothing here is needed to go on."""

    reached: bool  # the asked time was reached; else the budget of steps ran out first
    finite: bool  # the state holds no NaN or inf
    stalled: bool  # the step size collapsed
    steps: int  # steps taken in all, rejected ones apart
    rejected: int
    noted: Mapping[str, float] = MappingProxyType({})  # what else the result should tell


class AbstractDynamics(eqx.Module):
    """`init(state, key) → carry`, then `advance(carry, t0, t1) → (carry, info)`, again and again.

    The carry holds the state and whatever else must survive (step counter, key, optimiser moments,
    step-size controller): it is what a checkpoint stores. A budget of steps cuts a long interval
    into pieces; it never changes the bits."""

    functional: Abstract[AbstractFunctional]
    name: Abstract[str]
    sources: Abstract[tuple[str, ...]]  # keys of `wideflow.references`

    @abc.abstractmethod
    def init(self, state: Any, key: Array) -> Any:
        """The carry at time 0."""

    @abc.abstractmethod
    def advance(self, carry: Any, t0: float, t1: float, budget: int = 2**30) -> tuple[Any, Info]:
        """Move the carry from t0 towards t1, by at most `budget` steps."""

    @abc.abstractmethod
    def read(self, carry: Any, t: float) -> Any:
        """The state at time t, once `advance` has reached it."""

    @abc.abstractmethod
    def time(self, carry: Any) -> float:
        """How far the carry has come, for a progress bar."""

    def snap(self, ts: np.ndarray) -> np.ndarray:
        """The times at which states are really read, the nearest steps to the asked ones."""
        return ts

    def check(self, ts: np.ndarray) -> None:
        """Raise if these times cannot be reached."""
        return None

    @abc.abstractmethod
    def advice(self, state: Any, key: Array) -> str:
        """What to change when a run from this state diverged."""


def check_functional(dynamics: AbstractDynamics) -> None:
    """Raise unless the dynamics was given a functional to descend."""
    if not isinstance(dynamics.functional, AbstractFunctional):
        given = type(dynamics.functional).__name__
        raise ValueError(f"{dynamics.name} needs a functional such as wf.Risk(problem), got a {given}.")


def not_trainable(dynamics: AbstractDynamics, state: Any) -> ValueError:
    """The error for a state that this dynamics, one of trainable states, cannot move."""
    return not_moved(dynamics, state, "moves wf.Particles or a network")


def not_moved(dynamics: AbstractDynamics, state: Any, objection: str) -> ValueError:
    """The error for a state that this dynamics cannot move, with what it can."""
    hint = " Draw one first: .sample(key, n)." if hasattr(state, "sample") else ""
    return ValueError(f"{dynamics.name} {objection}, got a {type(state).__name__}.{hint}")


def is_finite(tree: Any) -> Array:
    """Whether every floating entry is finite (their sum is: one number a leaf, no mask held)."""
    sums = [jnp.sum(v) for v in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))]
    return jnp.isfinite(sum(sums, start=jnp.zeros(())))
