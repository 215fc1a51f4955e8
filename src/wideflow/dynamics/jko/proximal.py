"""The proximal step of particles: W2 with the identity as the assignment of particles."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ...functionals.base import AbstractFunctional
from ...states.particles import Particles
from .assignment import is_optimal
from .newton import AbstractObjective, minimise
from .scheme import AbstractScheme, Moved, tolerance


class Movement(AbstractObjective):
    """G(θ) + Σ_j weights_j |θ_j − θ⁰_j|²/(2τ), whose gradient in the metric is (θ − θ⁰)/τ − v(θ)."""

    G: AbstractFunctional
    start: Particles
    step: Array

    def value(self, parts):
        away = jax.tree.map(jnp.subtract, parts, self.start.parts)
        return self.G.energy(self.start.with_parts(parts)) + self.inner(away, away) / (2 * self.step)

    def gradient(self, parts):
        velocity = self.G.drift(self.start.with_parts(parts))
        return jax.tree.map(lambda p, p0, v: (p - p0) / self.step - v, parts, self.start.parts, velocity)

    def precondition(self, parts, residual):
        return jax.tree.map(lambda r: self.step * r, residual)

    def reach(self, parts, direction):
        return self.start.neuron.room(parts, direction).astype(self.start.dtype)

    def inner(self, p, q):
        products = jax.tree.map(lambda a, b: jnp.sum(self.start.weights * a * b), p, q)
        return sum(jax.tree.leaves(products), start=jnp.zeros((), self.start.dtype))


class Proximal(AbstractScheme):
    """θ⁺ = argmin G(θ⁺) + Σ_j weights_j |θ⁺_j − θ_j|²/(2τ), so that θ⁺ = θ + τ v(θ⁺), an implicit Euler step.

    It is the minimising movement of W2 as long as no other assignment of the particles θ⁺ to θ is shorter
    (`assignment`), which holds for small enough τ."""

    tol: float | None = None

    def check(self, state, step, beta):
        check_particles(state)

    def move(self, G, state, step, beta, key):  # noqa: N803
        objective = Movement(G, state, step.astype(state.dtype))
        scale = jnp.maximum(1.0, jnp.sqrt(objective.inner(state.parts, state.parts)))
        tol = tolerance(self.tol, state.dtype) * scale
        minimum = minimise(objective, state.parts, tol)
        return Moved(
            state.with_parts(state.projected(minimum.parts)), minimum.residual, minimum.residual <= tol
        )

    def is_w2(self, G, before, moved, step):  # noqa: N803
        return is_optimal(G, before, moved.state, step, moved.residual)


def check_particles(state: Particles) -> None:
    """Raise unless each particle has a weight > 0."""
    weights = np.asarray(state.weights)
    if not (weights > 0).all():
        raise ValueError(
            f"JKO needs particles of weight > 0, but {int((weights <= 0).sum())} of {state.n} have none: "
            "they are no part of the measure. Leave them out."
        )
