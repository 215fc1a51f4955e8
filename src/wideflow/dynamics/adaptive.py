"""Adaptive steps: one loop of attempts, accepted or not, for every flow that controls its own step."""

import abc
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from .._tracing import jit, jit_once, traced
from .._typing import Abstract
from ..states.state import AbstractState
from .base import AbstractCarry, AbstractDynamics, Info


class Attempt(eqx.Module):
    """Where a method stands after the last accepted step, and all that its next attempt depends on: what
    moves (`value`), the method's own `memory`, and the counts. Every entry changes from step to step, so that
    replicas can stand at different times."""

    t: Float[Array, ""]
    value: PyTree
    memory: PyTree
    taken: Int[Array, ""]
    rejected: Int[Array, ""]


class AdaptiveCarry(AbstractCarry):
    """The state of the last accepted step, and the attempt that goes on from it."""

    state: PyTree  # whatever kind of state the method moves
    attempt: Attempt

    @property
    def t(self) -> Float[Array, ""]:
        return self.attempt.t


class AbstractAdaptive(AbstractDynamics):
    """A flow by steps of controlled error. The steps do not depend on the times at which it is read. Under
    replicas each has step control of its own: those that are done wait for the others."""

    max_steps: Abstract[int]

    def at(self, state: AbstractState) -> Self:
        """The same flow from such a state, with what no step changes taken once."""
        return self

    @abc.abstractmethod
    def begin(self, state: AbstractState) -> Attempt:
        """Before the first step."""

    @abc.abstractmethod
    def attempted(self, state: AbstractState, now: Attempt, t1: Array, clip: Array) -> Attempt:
        """After one more step from `now`, accepted or rejected; with `clip` it ends at t1 at the latest."""

    @abc.abstractmethod
    def step_size(self, now: Attempt) -> Float[Array, ""]:
        """The step to try next."""

    @abc.abstractmethod
    def passed(self, now: Attempt, t1: Array) -> Bool[Array, ""]:
        """Whether the state at t1 can be read."""

    @abc.abstractmethod
    def with_value(self, state: AbstractState, value: object) -> PyTree:
        """The state at another value of what moves."""

    def noted(self, carry: AdaptiveCarry) -> dict[str, Array]:
        """What else the result should report."""
        return {}

    def collapsed(self, now: Attempt) -> Bool[Array, ""]:
        """Whether the step size has fallen to the rounding of t; a NaN counts: no comparison holds."""
        dt, least = self.step_size(now), 4 * jnp.finfo(now.t.dtype).eps * jnp.abs(now.t)
        return ~(dt > least) | ~(dt > 0)

    def init(self, state, key, ts=None):
        return _init(traced(self.at(state)), state)

    def target(self, t):
        return jnp.asarray(t, jnp.result_type(float))

    def advance_to(self, carry, target, budget):
        t1 = target.astype(carry.t.dtype)
        spent = carry.attempt.taken + carry.attempt.rejected
        max_attempts = jnp.minimum(jnp.asarray(budget, jnp.int32), jnp.maximum(self.max_steps - spent, 0))
        result = _advance(traced(self.at(carry.state)), carry, t1, max_attempts, jnp.asarray(False))
        carry, finite, collapsed, noted = result
        now = carry.attempt
        reached = self.passed(now, t1)
        stalled = ~reached & (collapsed | (now.taken + now.rejected >= self.max_steps))
        return carry, Info(reached, finite, stalled, now.taken, now.rejected, noted)

    def time(self, carry):
        return carry.t

    @abc.abstractmethod
    def is_finite(self, carry: AdaptiveCarry) -> Bool[Array, ""]:
        """Whether all numbers of the state are finite."""


@jit_once
def _init(flow: AbstractAdaptive, state: AbstractState) -> AdaptiveCarry:
    return AdaptiveCarry(state, flow.begin(state))


@jit
def _advance(
    flow: AbstractAdaptive, carry: AdaptiveCarry, t1: Array, max_attempts: Array, clip: Array
) -> PyTree:
    """Attempts until t1 is passed, or `max_attempts` of them are done; with `clip` the last one ends at
    t1."""
    first = carry.attempt
    last = first.taken + first.rejected + max_attempts

    def unfinished(now: Attempt) -> Array:
        ahead = jnp.where(clip, now.t < t1, ~flow.passed(now, t1))
        return ahead & (now.taken + now.rejected < last) & ~flow.collapsed(now)

    now = jax.lax.while_loop(unfinished, lambda now: flow.attempted(carry.state, now, t1, clip), first)
    carry = AdaptiveCarry(flow.with_value(carry.state, now.value), now)
    return carry, flow.is_finite(carry), flow.collapsed(now), flow.noted(carry)


def clipped(flow: AbstractAdaptive, carry: AdaptiveCarry, t1: Array) -> AdaptiveCarry:
    """The carry at t1 itself, by a last step that ends there."""
    max_attempts, t1 = jnp.asarray(flow.max_steps, jnp.int32), t1.astype(carry.t.dtype)
    return _advance(traced(flow.at(carry.state)), carry, t1, max_attempts, jnp.asarray(True))[0]
