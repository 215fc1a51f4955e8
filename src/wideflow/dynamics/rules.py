"""How a velocity becomes a step."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..states.particles import Particles

Drift = Callable[..., Any]
Moved = tuple[Particles, Any]


class AbstractRule(eqx.Module):
    """One step of size η along a velocity, with a memory (optimiser moments) that is carried."""

    def init(self, state: Particles) -> Any:
        """The memory before the first step."""
        return None

    @abc.abstractmethod
    def update(self, drift: Drift, state: Particles, memory: Any, key: Array, step: Any) -> Moved:
        """The state and memory after the step; `drift(state, scale)` is scale times the velocity
        on this step's data, and `key` is for this step's noise alone."""

    @property
    def descends(self) -> bool:
        """Whether the step is along the velocity itself, so that 2/λ bounds a stable η."""
        return False


class Euler(AbstractRule):
    """θ ← θ + ηv."""

    def update(self, drift, state, memory, key, step):
        return state.moved(drift(state, step)), memory

    @property
    def descends(self):
        return True


class Noisy(AbstractRule):
    """θ ← θ + ηv + √(2η/β) g, g ~ N(0, I) on the trained coordinates."""

    beta: float

    def update(self, drift, state, memory, key, step):
        neuron, parts, moved = state.neuron, state.parts, drift(state, step)
        shape = jax.eval_shape(neuron.pack, parts).shape
        g = jax.random.normal(key, shape, state.dtype)
        size = jnp.sqrt(2 * step / self.beta).astype(state.dtype)
        parts = jax.tree.map(
            lambda p, v, g, moves: p + v + size * g if moves else p,
            parts, moved, neuron.unpack(g), neuron.trained(parts),
        )  # fmt: skip
        return state.with_parts(parts), memory

    @property
    def descends(self):
        return True


class OptaxRule(AbstractRule):
    """θ ← θ + update(−v), for any optax optimiser; it holds its own step size."""

    optimiser: Any = eqx.field(static=True)

    def init(self, state):
        return self.optimiser.init(state.parts)

    def update(self, drift, state, memory, key, step):
        gradient = jax.tree.map(jnp.negative, drift(state))
        updates, memory = self.optimiser.update(gradient, memory, state.parts)
        trained = state.neuron.trained(state.parts)
        updates = jax.tree.map(lambda u, moves: u if moves else 0 * u, updates, trained)
        return state.moved(updates), memory


class Preconditioned(AbstractRule):
    """θ ← θ − η · transform(−v), for an optax transformation that holds no step size."""

    transform: Any = eqx.field(static=True)

    def init(self, state):
        return self.transform.init(state.parts)

    def update(self, drift, state, memory, key, step):
        gradient = jax.tree.map(jnp.negative, drift(state))
        direction, memory = self.transform.update(gradient, memory, state.parts)
        return state.moved(direction, -jnp.asarray(step, state.dtype)), memory
