"""How a velocity becomes a step."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..states.trainable import AbstractTrainable

Drift = Callable[..., Any]
Moved = tuple[AbstractTrainable, Any]


class AbstractRule(eqx.Module):
    """One step of size η along a velocity, with a memory (optimiser moments) that is carried."""

    def init(self, state: AbstractTrainable) -> Any:
        """The memory before the first step."""
        return None

    @abc.abstractmethod
    def update(self, drift: Drift, state: AbstractTrainable, memory: Any, key: Array, step: Any) -> Moved:
        """The state and memory after the step; `drift(state, scale)` is scale times the velocity
        on this step's data, and `key` is for this step's noise alone."""

    @property
    def descends(self) -> bool:
        """Whether the step is along the velocity itself, so that 2/λ bounds a stable η."""
        return False

    @property
    def scale_free(self) -> bool:
        """Whether the size of the gradient drops out of the step, as in Adam."""
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
        moved, g = drift(state, step), state.normal(key)
        size = jnp.sqrt(2 * step / self.beta).astype(state.dtype)
        parts = jax.tree.map(
            lambda p, v, g, moves: p + v + size * g if moves else p, state.parts, moved, g, state.trained()
        )
        return state.with_parts(parts), memory

    @property
    def descends(self):
        return True


def _gradient(drift: Drift, state: AbstractTrainable) -> Any:
    """−v without the rates of the parts."""
    return jax.tree.map(lambda v, rate: -v / rate, drift(state), state.rates())


class OptaxRule(AbstractRule):
    """θ ← θ + rate · update(gradient), for any optax optimiser; it holds its own step size."""

    optimiser: Any = eqx.field(static=True)

    def init(self, state):
        return self.optimiser.init(state.parts)

    def update(self, drift, state, memory, key, step):
        updates, memory = self.optimiser.update(_gradient(drift, state), memory, state.parts)
        scaled = lambda u, rate, moves: u * rate if moves else 0 * u
        updates = jax.tree.map(scaled, updates, state.rates(), state.trained())
        return state.moved(updates), memory


class Preconditioned(AbstractRule):
    """θ ← θ − η · rate · transform(gradient) − ηλθ, for an optax transformation that holds no step. Decay
    λ is apart from the gradient, whose size drops out."""

    transform: Any = eqx.field(static=True)
    decay: float = 0.0

    @property
    def scale_free(self):
        return True

    def init(self, state):
        return self.transform.init(state.parts)

    def update(self, drift, state, memory, key, step):
        direction, memory = self.transform.update(_gradient(drift, state), memory, state.parts)
        total = lambda d, rate, p, moves: d * rate + self.decay * p if moves else jnp.zeros_like(d)
        direction = jax.tree.map(total, direction, state.rates(), state.position(), state.trained())
        return state.moved(direction, -jnp.asarray(step, state.dtype)), memory
