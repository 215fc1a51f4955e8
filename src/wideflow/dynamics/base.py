"""The interface between every dynamics and the loop in `evolve`."""

import abc
from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree
from numpy.typing import ArrayLike

from .._typing import Abstract, Scalar
from ..functionals.base import AbstractFunctional, is_functional
from ..states.replicas import AbstractReplicable
from ..states.state import AbstractState

NO_BUDGET = 2**30  # steps: more than any run takes in one piece


class Info(eqx.Module):
    """What an advance reports, as arrays: nothing here is needed to go on."""

    reached: Bool[Array, "*r"]  # the requested time was reached; else the budget of steps ran out first
    finite: Bool[Array, "*r"]  # the state holds no NaN or inf
    stalled: Bool[Array, "*r"]  # the step size collapsed, or the steps ran out
    steps: Int[Array, "*r"]  # steps taken in all, rejected ones apart
    rejected: Int[Array, "*r"]
    noted: dict[str, Array] = eqx.field(default_factory=dict)  # what else the result should report


class AbstractCarry(AbstractReplicable):
    """All that the future of a run depends on; it is what a checkpoint stores."""

    state: Abstract[PyTree]


class AbstractDynamics(eqx.Module):
    """`init(state, key, ts) → carry`, then `advance(carry, t1, budget) → (carry, info)`, again and again.

    Both are pure JAX functions: `jax.jit` and `jax.vmap` go through them. The carry holds the state and
    whatever else must survive (step counter, key, optimiser moments, step-size controller). A budget of steps
    cuts a long interval into pieces; it never changes the bits. What needs numbers rather than arrays
    (`check_times`, `check_state`, `cautions`, `advice`) is asked by the loop, outside of all tracing."""

    functional: Abstract[AbstractFunctional]
    name: Abstract[str]
    sources: Abstract[tuple[str, ...]]  # keys of `wideflow.references`

    @abc.abstractmethod
    def init(self, state: AbstractState, key: Array, ts: ArrayLike | None) -> PyTree:
        """The carry at time 0, for a run that is to be read at the times ts."""

    @abc.abstractmethod
    def target(self, t: ArrayLike) -> Array:
        """The time t in the form that `advance_to` takes: a number of steps, or t itself."""

    @abc.abstractmethod
    def advance_to(self, carry: PyTree, target: Array, budget: Scalar) -> tuple[PyTree, Info]:
        """Move the carry towards the target, by at most `budget` steps."""

    def advance(self, carry: PyTree, t1: Scalar, budget: Scalar = NO_BUDGET) -> tuple[PyTree, Info]:
        """Move the carry towards the time t1, by at most `budget` steps."""
        return self.advance_to(carry, self.target(t1), budget)

    @abc.abstractmethod
    def read(self, carry: PyTree, t: ArrayLike) -> PyTree:
        """The state at time t, once `advance` has reached it."""

    @abc.abstractmethod
    def time(self, carry: PyTree) -> Array:
        """How far the carry has come, for a progress bar."""

    def snap(self, ts: np.ndarray) -> np.ndarray:
        """The times at which states are actually read: those of the steps nearest to the requested ones."""
        return ts

    def check_times(self, ts: np.ndarray) -> None:
        """Raise if these times cannot be reached."""
        return None

    @abc.abstractmethod
    def check_state(self, state: AbstractState) -> None:
        """Raise if this state cannot be moved; warn of what will not go well."""

    def cautions(self, noted: Mapping[str, object]) -> dict[str, str]:
        """Warnings by name that follow from what an advance noted."""
        return {}

    def functional_at(self, carry: PyTree) -> AbstractFunctional:
        """What the next step from this carry descends: the functional, on a batch where there is one."""
        return self.functional

    def fault(self, carry: PyTree) -> str:
        """What of its own, beside the functional, makes the next step from this carry not finite, as a
        sentence with a cure; "" if nothing does."""
        return ""

    @abc.abstractmethod
    def advice(self, state: AbstractState, key: Array) -> str:
        """What to change when a run from this state diverged."""


def check_functional(dynamics: AbstractDynamics) -> None:
    """Raise unless the dynamics was given a functional to descend."""
    if not is_functional(dynamics.functional):
        kind = type(dynamics.functional).__name__
        raise ValueError(f"{dynamics.name} needs a functional such as wf.Risk(problem), got a {kind}.")


def not_trainable(dynamics: AbstractDynamics, state: AbstractState) -> ValueError:
    """The error for a state that a dynamics of trainable states cannot move."""
    return not_moved(dynamics, state, "moves wf.Particles or a network")


def not_moved(dynamics: AbstractDynamics, state: AbstractState, objection: str) -> ValueError:
    """The error for a state that this dynamics cannot move, which says what it can move."""
    hint = " Draw one first: .sample(key, n)." if hasattr(state, "sample") else ""
    return ValueError(f"{dynamics.name} {objection}, got a {type(state).__name__}.{hint}")


def is_finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether every floating entry is finite (by their sum: one number per leaf, and no mask in memory)."""
    sums = [jnp.sum(v) for v in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))]
    return jnp.isfinite(sum(sums, start=jnp.zeros(())))
