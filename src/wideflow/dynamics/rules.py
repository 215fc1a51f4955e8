"""How a velocity becomes a step."""

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from .._shown import shown
from .._typing import Scalar
from ..states.particles import Particles
from ..states.state import AbstractState
from ..states.trainable import AbstractTrainable, is_trainable
from .coordinates import chosen
from .schedules import Annealing, is_annealed
from .streams import across_key, event_key, noise_key

if TYPE_CHECKING:
    import optax

_OPTIMISER = (
    "The optimiser's update is not finite although the gradient is. Look at its transformation: a division "
    "without an eps, a root or logarithm of what can be 0, a schedule that gives inf."
)
Moved = tuple[AbstractState, PyTree]  # the state, and the memory


class Force(NamedTuple):
    """What moves a state, on this step's data: `drift(state, scale)`, scale times the velocity in the state's
    parts, and for rules that move masses `potential(theta, state)`, the first variation at points θ."""

    drift: Callable
    potential: Callable[..., Array] | None = None


class At(NamedTuple):
    """Where a run is: its step k, the step size η, and its key."""

    k: Int[Array, ""]
    step: Scalar
    key: Array

    @property
    def t(self) -> Array:
        """Time before the step, kη."""
        return self.k * self.step

    @property
    def noise(self) -> Array:
        """The key of this step's Langevin noise."""
        return noise_key(self.key, self.k)

    @property
    def across(self) -> Array:
        """The key of this step's noise across reduced radii."""
        return across_key(self.key, self.k)

    @property
    def events(self) -> Array:
        """The key of this step's births and deaths."""
        return event_key(self.key, self.k)


class AbstractRule(eqx.Module):
    """One step of size η along a velocity, with a memory (optimiser moments) that is carried."""

    def init(self, state: AbstractState) -> PyTree:
        """The memory before the first step."""
        return None

    @abc.abstractmethod
    def update(self, force: Force, state: AbstractState, memory: PyTree, at: At) -> Moved:
        """The state and memory after the step."""

    def objection(self, state: AbstractState) -> str:
        """Why this rule cannot move such a state, as the end of a sentence; "" if it can."""
        return "" if is_trainable(state) else "moves wf.Particles or a network"

    def at_step(self, step: Scalar) -> "AbstractRule | None":
        """The rule for steps of another size; None if its size cannot be changed."""
        return self

    @property
    def complaint(self) -> str:
        """What to say where the update is not finite although the gradient is, with a cure."""
        return ""

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

    def update(self, force, state, memory, at):
        return state.moved(force.drift(state, at.step)), memory

    @property
    def descends(self):
        return True


class Noisy(AbstractRule):
    """θ ← θ + ηv + √(2η/β(t)) g, g ~ N(0, I) on the trained coordinates, or on those of them that `on` names.

    `radial`: the noise of neurons in R^d on reduced radii of d_i dimensions. That along a radius is g, that
    across it has the length of d_i − 1 normal coordinates: r ← |(r + ηv + √(2η/β) g, √(2η/β) χ_{d_i−1})|,
    exactly the law of a step in R^d, whose drift is (d_i − 1)/(βr_i)."""

    beta: float | Annealing
    on: tuple[str, ...] | None = eqx.field(static=True, default=None)
    radial: bool = eqx.field(static=True, default=False)

    def objection(self, state):
        if not is_trainable(state):
            return "moves wf.Particles or a network"
        if self.on is not None and not hasattr(state, "neuron"):
            return f"with noise_on={shown(self.on)} moves wf.Particles, whose coordinates have names"
        return ""

    def init(self, state):
        if self.on is not None:
            chosen(self.on, state.neuron, state.D)  # raises for an unknown name
        return None

    def update(self, force, state, memory, at):
        moved, g = force.drift(state, at.step), state.normal(at.noise)
        beta = self.beta(at.t) if is_annealed(self.beta) else self.beta
        if self.on is not None:
            g = self._masked(g, state)
        noised = _noised(state, moved, g, at.step, beta)
        return self._across(noised, at.step / beta, at.across) if self.radial else noised, memory

    def _across(self, state: PyTree, variance: Array, key: Array) -> Particles:
        """Radii lengthened by the noise across them, of variance 2η/β in each of d_i − 1 directions."""
        neuron, w = state.neuron, state.parts.w
        p, width = len(neuron.blocks), w.shape[1:]
        halves = [(dim - 1) / 2 for dim in neuron.blocks]  # χ² of that many pairs is twice a gamma variable
        draws = [
            jax.random.gamma(jax.random.fold_in(key, i), half, width, w.dtype)
            if half > 0
            else jnp.zeros(width)
            for i, half in enumerate(halves)
        ]
        square = (4 * variance * jnp.stack(draws)).astype(w.dtype)
        has_noise = self._masked(jax.tree.map(jnp.ones_like, state.parts), state).w[-p:] > 0
        radii = jnp.where(has_noise, jnp.sqrt(w[-p:] ** 2 + square), w[-p:])
        return state.with_parts(state.parts._replace(w=jnp.concatenate([w[:-p], radii])))

    def _masked(self, parts: PyTree, state: Particles) -> PyTree:
        if self.on is None:
            return parts
        mask = state.neuron.unpack(jnp.asarray(chosen(self.on, state.neuron, state.D)[None], state.dtype))
        return jax.tree.map(jnp.multiply, parts, mask)

    @property
    def descends(self):
        return True


def _noised(
    state: AbstractTrainable, moved: PyTree, g: PyTree, step: Scalar, beta: Scalar
) -> AbstractTrainable:
    """θ + moved + √(2η/β) g on the trained parts."""
    size: Float[Array, ""] = jnp.sqrt(2 * step / beta).astype(state.dtype)
    parts = jax.tree.map(
        lambda p, v, g, moves: p + v + size * g if moves else p, state.parts, moved, g, state.trained()
    )
    return state.with_parts(parts)


def _gradient(force: Force, state: AbstractTrainable) -> PyTree:
    """−v without the rates of the parts."""
    return jax.tree.map(lambda v, rate: -v / rate, force.drift(state), state.rates())


class OptaxRule(AbstractRule):
    """θ ← θ + rate · update(gradient), for any optax optimiser; it holds its own step size."""

    optimiser: "optax.GradientTransformation" = eqx.field(static=True)
    factory: "Callable[[float], optax.GradientTransformation] | None" = eqx.field(static=True, default=None)

    def at_step(self, step):
        return None if self.factory is None else OptaxRule(self.factory(step), self.factory)

    @property
    def complaint(self):
        return _OPTIMISER

    def init(self, state):
        return self.optimiser.init(state.parts)

    def update(self, force, state, memory, at):
        updates, memory = self.optimiser.update(_gradient(force, state), memory, state.parts)
        scaled = lambda u, rate, moves: u * rate if moves else 0 * u
        updates = jax.tree.map(scaled, updates, state.rates(), state.trained())
        return state.moved(updates), memory


class Preconditioned(AbstractRule):
    """θ ← θ − η · rate · transform(gradient) − ηλθ, for an optax transformation that holds no step. Decay
    λ is apart from the gradient, whose size drops out."""

    transform: "optax.GradientTransformation" = eqx.field(static=True)
    decay: float = 0.0

    @property
    def scale_free(self):
        return True

    @property
    def complaint(self):
        return _OPTIMISER

    def init(self, state):
        return self.transform.init(state.parts)

    def update(self, force, state, memory, at):
        direction, memory = self.transform.update(_gradient(force, state), memory, state.parts)
        total = lambda d, rate, p, moves: d * rate + self.decay * p if moves else jnp.zeros_like(d)
        direction = jax.tree.map(total, direction, state.rates(), state.position(), state.trained())
        return state.moved(direction, -jnp.asarray(at.step, state.dtype)), memory
