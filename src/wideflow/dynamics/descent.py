"""Dynamics in discrete steps: batches, a rule, and one compiled loop for all of them."""

import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._checks import positive
from .._tracing import traced
from ..functionals.base import AbstractFunctional
from ..problems.nodes import Nodes
from ..states.trainable import AbstractTrainable
from .base import AbstractDynamics, Info, check_functional, is_finite, not_moved
from .batches import AbstractBatches
from .clock import check_steps, steps_to
from .rules import AbstractRule, At, Force
from .stability import largest_stable_step

_PILOT = 200  # steps of a trial run, when a step size is to be suggested
_GROUP, _CHEAP = 4, 2**19  # steps per turn of the loop where θ times batch is below this many numbers


class Carry(eqx.Module):
    """Step counter k, key, state, and the rule's memory: all that step k + 1 depends on."""

    k: Int[Array, ""]
    key: Array
    state: Any
    memory: Any


class Descent(AbstractDynamics):
    """θ ← rule(θ, η, velocity of the functional on this step's batch), time t = kη.

    `wf.GradientDescent`, `wf.SGD`, `wf.Langevin`, `wf.Adam`, `wf.Optax` and the
    dynamics of masses (`wf.FisherRao` and its kin) are made of this."""

    functional: AbstractFunctional
    step: float = eqx.field(converter=lambda v: positive("step", v))
    batches: AbstractBatches
    rule: AbstractRule
    name: str = eqx.field(static=True)
    sources: tuple[str, ...] = eqx.field(static=True, default=())

    def __check_init__(self):
        check_functional(self)

    def snap(self, ts):
        return steps_to(ts, self.step) * self.step

    def check(self, ts):
        check_steps(ts, self.step)
        last = int(steps_to(ts[-1], self.step))
        most = self.batches.most_steps()
        if last > most:
            batch = self.batches.batch
            raise ValueError(
                f"One pass to t = {ts[-1]} takes {last} steps of {batch} row(s), {last * batch} rows, "
                f"but the data set lasts for {int(most)} steps, t <= {most * self.step:.6g}. Stop "
                "earlier, use a larger step, or one_pass=False for many passes."
            )

    def init(self, state, key):
        if objection := self.rule.objection(state):
            raise not_moved(self, state, objection)
        if isinstance(state, AbstractTrainable) and (doubt := state.objection(self.rule.scale_free)):
            warnings.warn(doubt, stacklevel=4)
        return Carry(jnp.zeros((), jnp.int32), key, state, self.rule.init(state))

    def advance(self, carry, t0, t1, budget=2**30):
        start, asked = int(carry.k), int(steps_to(t1, self.step))
        stop = min(asked, start + budget)
        if stop > start:
            carry, finite = _advance(traced(self), carry, jnp.asarray(stop, jnp.int32))
        else:
            finite = is_finite(carry.state)
        return carry, Info(stop >= asked, bool(finite), False, max(stop, start), 0)

    def read(self, carry, t):
        return carry.state

    def time(self, carry):
        return int(carry.k) * self.step

    def advice(self, state, key):
        nodes = self.batches.draw(key, jnp.arange(16)) if self.rule.descends else None
        bound = largest_stable_step(self.functional, state, nodes) if self.rule.descends else np.inf
        tried = min(bound, self.step) / 2
        while tried > self.step * 1e-6 and not self._calm(tried, state, key):
            tried /= 2  # the curvature may grow from the start on
        kind = "this batch size" if nodes is not None else "full batches"
        at_start = f": at the start the largest stable step for {kind} is about {bound:.3g}"
        known = at_start if np.isfinite(bound) else ""
        return f"step = {self.step:.6g} is too large for {self.name}{known}. Try step = {tried:.2g}."

    def _calm(self, step: float, state: Any, key: Array) -> bool:
        """Whether the risk stays below where it began, or nearly, in a pilot run with this step."""
        pilot = eqx.tree_at(lambda dynamics: dynamics.step, self, step)
        carry, before = pilot.init(state, key), _value(traced(self.functional), state)
        last = int(min(_PILOT, self.batches.most_steps()))
        for k in range(4, last + 1, 4):
            carry, info = pilot.advance(carry, 0.0, k * step)
            after = _value(traced(self.functional), carry.state)
            if not info.finite or not after < 1.2 * before:
                return False
        return True


_value = eqx.filter_jit(lambda functional, state: functional.value(state))


@eqx.filter_jit
def _advance(dynamics: Descent, carry: Carry, stop: Int[Array, ""]) -> tuple[Carry, Array]:
    """Steps carry.k … stop − 1. Batches are drawn in blocks, and cheap steps taken in groups, both
    aligned to multiples of their size; step k always runs through the same piece of compiled code,
    so that no cut of the interval changes the bits."""
    batches, key, start = dynamics.batches, carry.key, carry.k
    group = _group(dynamics, carry.state)

    def step(k: Array, moving: Any, nodes: Nodes | None) -> Any:
        functional = dynamics.functional if nodes is None else dynamics.functional.on(nodes)
        state, memory = moving
        force = Force(functional.drift, functional.potential)
        return dynamics.rule.update(force, state, memory, At(k, dynamics.step, key))

    def block(carry: Carry) -> Carry:
        first = carry.k - carry.k % batches.block
        last = jnp.minimum(first + batches.block, stop)
        data = batches.draw(key, first + jnp.arange(batches.block))

        def steps(g: Array, moving: Any) -> Any:
            for k in [g * group + i for i in range(group)]:
                nodes = jax.tree.map(lambda v, k=k: v[k - first], data)
                moved = step(k, moving, nodes)
                # A group may stand out over either end of the interval: those steps do not count.
                counts = True if group == 1 else (k >= start) & (k < stop)
                moving = jax.tree.map(lambda new, old, on=counts: _choose(on, new, old), moved, moving)
            return moving

        groups = carry.k // group, -(-last // group)
        state, memory = jax.lax.fori_loop(*groups, steps, (carry.state, carry.memory))
        return Carry(last, key, state, memory)

    carry = jax.lax.while_loop(lambda c: c.k < stop, block, carry)
    return carry, is_finite(carry.state)


def _choose(counts: Any, new: Array, old: Array) -> Array:
    return new if counts is True else jnp.where(counts, new, old)


def _group(dynamics: Descent, state: Any) -> int:
    """Steps to take per turn of the loop: several where a step is so cheap that the turn shows."""
    size = sum(leaf.size for leaf in jax.tree.leaves(state.parts)) * dynamics.batches.batch
    return _GROUP if 0 < size < _CHEAP else 1
