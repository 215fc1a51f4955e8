"""Many systems as one: any dynamics, mapped over a leading replica axis of its carry."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree
from numpy.typing import ArrayLike

from .._tracing import jit, jit_once, traced
from ..functionals.base import AbstractFunctional
from ..states.replicas import group_size, in_groups, replica_keys
from ..states.state import AbstractState
from .base import AbstractDynamics, Info


class Replicated(AbstractDynamics):
    """Each replica moves as it would alone, with the key `fold_in(key, r)` (or key r of a vector of keys);
    all of them in one compiled program, those together that fit into a core's cache. Discrete steps share
    their counter k; adaptive ones have a step control each. Replicas do not interact: one that diverges does
    not affect the others.

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
        return _advance_to(traced(self.dynamics), carry, jnp.asarray(target), jnp.asarray(budget, jnp.int32))

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


@jit_once
def _read(dynamics: AbstractDynamics, carry: PyTree, t: Array) -> PyTree:
    single = eqx.filter_eval_shape(lambda: dynamics.read(carry.replica(0), t))
    read = lambda one: dynamics.read(one, t)
    return jax.vmap(read, in_axes=(carry.axes(),), out_axes=single.axes())(carry)
