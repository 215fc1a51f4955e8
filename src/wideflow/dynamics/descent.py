"""Dynamics in discrete steps: batches, a rule, and one compiled loop for all of them."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from .._checks import is_traced, positive
from .._tracing import jit, traced
from ..functionals.base import AbstractFunctional
from ..problems.nodes import Nodes
from ..states.state import AbstractState
from ..states.trainable import AbstractTrainable, is_trainable
from .base import AbstractCarry, AbstractDynamics, Info, check_functional, is_finite, not_moved
from .batches import AbstractBatches
from .clock import check_steps, step_number, steps_to
from .rules import AbstractRule, At, Force
from .stability import largest_stable_step

_PILOT = 200  # steps of a trial run, when a step size is to be suggested
_LEAST = 1e-6  # of the step that diverged: smaller ones are not suggested
_GROUP, _CHEAP = 4, 2**19  # steps per turn of the loop where θ times batch is below this many numbers


class DescentCarry(AbstractCarry):
    """Step counter k, key, state, and the rule's memory: all that step k + 1 depends on. Replicas share k."""

    shared = ("k",)
    k: Int[Array, ""]  # a NumPy array before the first step
    key: Array
    state: PyTree  # whatever kind of state the rule moves
    memory: PyTree


class Descent(AbstractDynamics):
    """θ ← rule(θ, η, velocity of the functional on this step's batch), time t = kη.

    `wf.GradientDescent`, `wf.SGD`, `wf.Langevin`, `wf.Adam`, `wf.Optax` and the
    dynamics of masses (`wf.FisherRao` and its kin) are built on this.

    `jax.grad` goes through `advance` where the number of steps is known outside of the trace (step, times and
    budget are plain numbers, and the carry is that of `init` or of another such advance): the steps are then
    a scan of that length. A traced step size can be differentiated in forward mode.

    >>> descent = wf.GradientDescent(R, step=0.01)
    >>> carry = descent.init(net, key)
    >>> carry, info = descent.advance(carry, 0.2)
    >>> int(info.steps), bool(info.reached)
    (20, True)"""

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

    def check_times(self, ts):
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

    def check_state(self, state):
        if objection := self.rule.objection(state):
            raise not_moved(self, state, objection)
        if is_trainable(state) and (caution := state.objection(self.rule.scale_free)):
            warnings.warn(caution, stacklevel=4)

    def init(self, state, key, ts=None):
        return DescentCarry(_known(0), key, state, self.rule.init(state))

    def target(self, t):
        return step_number(t, self.step)

    def advance_to(self, carry, target, budget):
        ahead = lambda xp: carry.k + xp.minimum(xp.maximum(target - carry.k, 0), budget)
        if not any(is_traced(v) for v in (carry.k, target, budget)) and _is_traced((self, carry.state)):
            stop = np.asarray(ahead(np), np.int32)
            carry, finite = _unrolled(self, carry, int(stop))
        else:
            stop = ahead(jnp)
            carry, finite = _advance(traced(self), carry, stop)
        reached, stalled, none = jnp.asarray(stop >= target), jnp.zeros((), bool), jnp.zeros((), jnp.int32)
        return carry, Info(reached, finite, stalled, jnp.asarray(stop), none)

    def read(self, carry, t):
        return carry.state

    def time(self, carry):
        return carry.k * self.step

    def functional_at(self, carry):
        nodes = self.batches.draw(carry.key, jnp.asarray(carry.k)[None])
        if nodes is None:
            return self.functional
        return self.functional.on(jax.tree.map(lambda v: v[0], nodes))

    def fault(self, carry):
        if self.rule.descends:
            return ""
        nodes = self.batches.draw(carry.key, jnp.asarray(carry.k)[None])
        batch = jax.tree.map(lambda v: v[0], nodes)
        moved = _step(self, carry.key, jnp.asarray(carry.k), (carry.state, carry.memory), batch)
        return "" if bool(is_finite(moved[0])) else self.rule.complaint

    def advice(self, state, key):
        nodes = self.batches.draw(key, jnp.arange(16)) if self.rule.descends else None
        bound = largest_stable_step(self.functional, state, nodes) if self.rule.descends else np.inf
        known = bool(np.isfinite(bound) and bound > 0)  # flat or not smooth at the start: there is no bound
        kind = "this batch size" if nodes is not None else "full batches"
        at_start = f": at the start the largest stable step for {kind} is about {bound:.3g}" if known else ""
        step = self._calm_step(min(bound, self.step) if known else self.step, state, key)
        return f"step = {self.step:.6g} is too large for {self.name}{at_start}. {self._try(step)}"

    def _try(self, step: float | None) -> str:
        if step is not None:
            return f"Try step = {step:.2g}."
        if self.rule.at_step(self.step) is None:
            return "Lower the learning rate of the optimiser; `step` here only sets the time axis."
        return (
            f"No smaller step is advised: none that was tried, down to {self.step * _LEAST:.1g}, kept the "
            "risk from growing. Look at the scale of the data, the start and the penalties."
        )

    def _calm_step(self, largest: float, state: AbstractState, key: Array) -> float | None:
        """A step below the largest one that a pilot run has shown to be calm; None if none was."""
        step = largest / 2
        while step > self.step * _LEAST:  # the curvature may grow from the start on
            if self._calm(step, state, key):
                return step
            step /= 2
        return None

    def _calm(self, step: float, state: AbstractState, key: Array) -> bool:
        """Whether the risk stays below where it began, or nearly, in a pilot run with this step."""
        rule = self.rule.at_step(step)
        if rule is None:
            return False
        pilot = eqx.tree_at(lambda dynamics: (dynamics.step, dynamics.rule), self, (step, rule))
        carry, before = pilot.init(state, key), _value(traced(self.functional), state)
        last = int(min(_PILOT, self.batches.most_steps()))
        for k in range(4, last + 1, 4):
            carry, info = pilot.advance(carry, k * step)
            after = _value(traced(self.functional), carry.state)
            if not bool(info.finite) or not after < 1.2 * before:
                return False
        return True


_value = eqx.filter_jit(lambda functional, state: functional.value(state))


def _known(k: int) -> PyTree:
    """A step number as a NumPy array, so that it is known inside every transformation."""
    return np.asarray(k, np.int32)


def _is_traced(tree: PyTree) -> bool:
    return any(is_traced(leaf) for leaf in jax.tree.leaves(tree))


def _step(dynamics: Descent, key: Array, k: Array, moving: PyTree, nodes: Nodes | None) -> PyTree:
    """(state, memory) after step k, whose batch is `nodes`."""
    functional = dynamics.functional if nodes is None else dynamics.functional.on(nodes)
    state, memory = moving
    force = Force(functional.drift, functional.potential)
    return dynamics.rule.update(force, state, memory, At(k, dynamics.step, key))


def _unrolled(dynamics: Descent, carry: DescentCarry, stop: int) -> tuple[DescentCarry, Array]:
    """Steps carry.k … stop − 1, their number known: a scan, through which gradients go backwards."""
    key, steps = carry.key, np.arange(int(carry.k), max(stop, int(carry.k)), dtype=np.int32)

    def step(moving: PyTree, k: PyTree) -> tuple[PyTree, None]:
        nodes = jax.tree.map(lambda v: v[0], dynamics.batches.draw(key, k[None]))
        return _step(dynamics, key, k, moving, nodes), None

    (state, memory), _ = jax.lax.scan(step, (carry.state, carry.memory), steps)
    carry = DescentCarry(_known(max(stop, int(carry.k))), key, state, memory)
    return carry, is_finite(state)


@jit
def _advance(dynamics: Descent, carry: DescentCarry, stop: Int[Array, ""]) -> tuple[DescentCarry, Array]:
    """Steps carry.k … stop − 1. Batches are drawn in blocks, and cheap steps taken in groups, both
    aligned to multiples of their size; step k always runs through the same piece of compiled code,
    so that no cut of the interval changes the bits."""
    batches, key, start = dynamics.batches, carry.key, carry.k
    group = _group(dynamics, carry.state)

    def block(carry: DescentCarry) -> DescentCarry:
        first = carry.k - carry.k % batches.block
        last = jnp.minimum(first + batches.block, stop)
        data = batches.draw(key, first + jnp.arange(batches.block))

        def steps(g: Array, moving: PyTree) -> PyTree:
            for k in [g * group + i for i in range(group)]:
                nodes = jax.tree.map(lambda v, k=k: v[k - first], data)
                moved = _step(dynamics, key, k, moving, nodes)
                # A group may extend past either end of the interval: the steps outside do not count.
                counts = True if group == 1 else (k >= start) & (k < stop)
                moving = jax.tree.map(lambda new, old, on=counts: _choose(on, new, old), moved, moving)
            return moving

        groups = carry.k // group, -(-last // group)
        state, memory = jax.lax.fori_loop(*groups, steps, (carry.state, carry.memory))
        return DescentCarry(last, key, state, memory)

    carry = jax.lax.while_loop(lambda c: c.k < stop, block, carry)
    return carry, is_finite(carry.state)


def _choose(counts: Array, new: Array, old: Array) -> Array:
    return new if counts is True else jnp.where(counts, new, old)


def _group(dynamics: Descent, state: AbstractTrainable) -> int:
    """Steps to take per turn of the loop: several where a step is so cheap that the overhead of a turn
    shows."""
    size = sum(leaf.size for leaf in jax.tree.leaves(state.parts)) * dynamics.batches.batch
    return _GROUP if 0 < size < _CHEAP else 1
