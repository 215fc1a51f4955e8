"""Dynamics in discrete steps: batches, a rule, and one compiled loop for all of them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._checks import positive
from ..functionals.base import AbstractFunctional
from ..states.particles import Particles
from .base import AbstractDynamics, Info, is_finite, traced
from .batches import AbstractBatches
from .rules import AbstractRule
from .stability import largest_stable_step

_MOST_STEPS = 2**31 - 1  # the step counter is an int32


class Carry(eqx.Module):
    """Step counter k, key, state, and the rule's memory: all that step k + 1 depends on."""

    k: Int[Array, ""]
    key: Array
    state: Particles
    memory: Any


class Descent(AbstractDynamics):
    """θ ← rule(θ, η, velocity of the functional on this step's batch), time t = kη.

    `wf.GradientDescent`, `wf.SGD`, `wf.Langevin`, `wf.Adam` and `wf.Optax` are made of this."""

    functional: AbstractFunctional
    step: float = eqx.field(converter=lambda v: positive("step", v))
    batches: AbstractBatches
    rule: AbstractRule
    name: str = eqx.field(static=True)
    sources: tuple[str, ...] = eqx.field(static=True, default=())

    def _steps(self, ts: Any) -> np.ndarray:
        return np.rint(np.asarray(ts, np.float64) / self.step).astype(np.int64)

    def snap(self, ts):
        return self._steps(ts) * self.step

    def check(self, ts):
        last = int(self._steps(ts)[-1])
        if last > _MOST_STEPS:
            raise ValueError(f"t = {ts[-1]} takes {last} steps of {self.step}; at most {_MOST_STEPS}.")
        most = self.batches.most_steps()
        if last > most:
            batch = self.batches.batch
            raise ValueError(
                f"One pass to t = {ts[-1]} takes {last} steps of {batch} row(s), {last * batch} rows, "
                f"but the data set lasts for {int(most)} steps, t <= {most * self.step:.6g}. Stop "
                "earlier, use a larger step, or one_pass=False for many passes."
            )

    def init(self, state, key):
        if not isinstance(state, Particles):
            raise ValueError(f"{self.name} moves wf.Particles, got {type(state).__name__}.")
        return Carry(jnp.zeros((), jnp.int32), key, state, self.rule.init(state))

    def advance(self, carry, t0, t1, budget=2**30):
        start, asked = int(carry.k), int(self._steps(t1))
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
        nodes = self.batches.draw(key, jnp.arange(16))
        stable = largest_stable_step(self.functional, state, nodes)
        if not np.isfinite(stable) or self.step <= stable:
            return (
                f"step = {self.step:.6g} made the state overflow although the flow is stable at the "
                f"start for steps below {stable:.3g}; try step = {min(stable, self.step) / 10:.2g}."
            )
        kind = "this batch size" if nodes is not None else "full batches"
        return (
            f"step = {self.step:.6g} is too large: at the start the largest stable step for {kind} "
            f"is about {stable:.3g}. Try step = {stable / 2:.2g}."
        )


@eqx.filter_jit
def _advance(dynamics: Descent, carry: Carry, stop: Int[Array, ""]) -> tuple[Carry, Array]:
    """Steps carry.k … stop − 1. Batches are drawn in blocks aligned to multiples of the block, and
    every step runs through the one loop body, so that no cut of the interval changes the bits."""
    batches, key = dynamics.batches, carry.key

    def block(carry: Carry) -> Carry:
        first = carry.k - carry.k % batches.block
        last = jnp.minimum(first + batches.block, stop)
        data = batches.draw(key, first + jnp.arange(batches.block))

        def step(k, moving):
            state, memory = moving
            functional = dynamics.functional
            if data is not None:
                functional = functional.on(jax.tree.map(lambda v: v[k - first], data))
            velocity = functional.drift(state)
            key_k = jax.random.fold_in(key, k)
            return dynamics.rule.update(velocity, state, memory, key_k, dynamics.step)

        state, memory = jax.lax.fori_loop(carry.k, last, step, (carry.state, carry.memory))
        return Carry(last, key, state, memory)

    carry = jax.lax.while_loop(lambda c: c.k < stop, block, carry)
    return carry, is_finite(carry.state)
