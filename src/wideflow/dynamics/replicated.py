"""Many systems as one: any dynamics, mapped over a leading replica axis of its carry."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from numpy.typing import ArrayLike

from .._threads import side_by_side
from .._tracing import jit, jit_once, traced, under_a_trace
from ..functionals.base import AbstractFunctional
from ..states.replicas import group_size, in_groups, replica_keys, share, shares, shares_joined
from ..states.state import AbstractState
from .base import AbstractDynamics, Info


class Replicated(AbstractDynamics):
    """Each replica moves as it would alone, with the key `fold_in(key, r)` (or key r of a vector of keys);
    all of them by one compiled program, a share on each core, those together that fit into its cache.
    Discrete steps share their counter k; adaptive ones have a step control each. Replicas do not interact:
    one that diverges does not affect the others.

    `wf.evolve` makes this of a state that has a replica axis."""

    dynamics: AbstractDynamics

    @property
    def functional(self) -> AbstractFunctional:  # type: ignore[override]
        return self.dynamics.functional

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.dynamics.name

    @property
    def sources(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.dynamics.sources

    def check_times(self, ts):
        self.dynamics.check_times(ts)

    def check_state(self, state):
        self.dynamics.check_state(state)

    def snap(self, ts):
        return self.dynamics.snap(ts)

    def init(self, state, key, ts=None):
        return _init(traced(self.dynamics), state, replica_keys(key, state.replicas), ts)

    def target(self, t):
        return self.dynamics.target(t)

    def advance_to(self, carry, target, budget):
        order = traced(self.dynamics), carry, jnp.asarray(target), jnp.asarray(budget, jnp.int32)
        firsts, size = shares(carry)
        if len(firsts) == 1 or under_a_trace():
            return _advance_to(*order)
        move = lambda first: jax.block_until_ready(_advance_share(*order, jnp.asarray(first), size))
        return _joined(_each(move, firsts, _form(order)), firsts)

    def read(self, carry, t):
        return _read(traced(self.dynamics), carry, jnp.asarray(t, jnp.result_type(float)))

    def time(self, carry):
        return jax.vmap(self.dynamics.time, in_axes=(carry.axes(),))(carry)

    def cautions(self, noted):
        return self.dynamics.cautions(noted)

    def advice(self, state, key):
        keys = replica_keys(key, state.replicas)
        return self.dynamics.advice(state.replica(0), keys[0])


@jit_once
def _init(dynamics: AbstractDynamics, state: AbstractState, keys: Array, ts: ArrayLike) -> PyTree:
    single = eqx.filter_eval_shape(lambda: dynamics.init(state.replica(0), keys[0], ts))
    begin = lambda one, key: dynamics.init(one, key, ts)
    return jax.vmap(begin, in_axes=(state.axes(), 0), out_axes=single.axes())(state, keys)


@jit
def _advance_to(
    dynamics: AbstractDynamics, carry: PyTree, target: Array, budget: Array
) -> tuple[PyTree, Info]:
    step = lambda one: dynamics.advance_to(one, target, budget)
    return in_groups(step, carry, group_size(carry))


@jit
def _advance_share(
    dynamics: AbstractDynamics, carry: PyTree, target: Array, budget: Array, first: Array, size: int
) -> tuple[PyTree, Info]:
    return _advance_to(dynamics, share(carry, first, size), target, budget)


_joined = jit_once(shares_joined)

_compiled: set[int] = set()  # the forms of what has been moved


def _each(move: Callable[[int], PyTree], firsts: tuple[int, ...], form: int) -> list[PyTree]:
    """The shares that begin at these replicas, each moved by a core; the first time, when it is yet to be
    compiled, one after the other."""
    if form in _compiled:
        return side_by_side(move, firsts)
    moved = [move(first) for first in firsts]
    _compiled.add(form)
    return moved


def _form(tree: PyTree) -> int:
    """What a program is compiled for: all but the numbers."""
    leaves, structure = jax.tree.flatten(tree)
    kinds = [(leaf.shape, leaf.dtype) if eqx.is_array(leaf) else leaf for leaf in leaves]
    return hash((structure, *kinds))


@jit_once
def _read(dynamics: AbstractDynamics, carry: PyTree, t: Array) -> PyTree:
    single = eqx.filter_eval_shape(lambda: dynamics.read(carry.replica(0), t))
    read = lambda one: dynamics.read(one, t)
    return jax.vmap(read, in_axes=(carry.axes(),), out_axes=single.axes())(carry)
