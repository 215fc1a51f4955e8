"""Particles that die and are copied: masses that move although every particle weighs the same."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._checks import positive
from ..functionals.base import AbstractFunctional
from ..functionals.free_energy import physics_of
from ..states.particles import is_cloud
from .batches import FullBatch
from .descent import Descent
from .langevin import noise
from .rules import AbstractRule


class BirthsAndDeaths(AbstractRule):
    """A step of `transport`, then births and deaths at the given rate."""

    transport: AbstractRule
    reaction: float

    def init(self, state):
        return self.transport.init(state)

    def objection(self, state):
        if not is_cloud(state):
            return "moves wf.Particles"
        weights = np.asarray(state.weights)
        if not state.has_equal_weights():
            return (
                f"moves particles of equal weight, and these weigh from {weights.min():.3g} to "
                f"{weights.max():.3g}; for weighted ones there is wf.WassersteinFisherRao"
            )
        return ""

    def update(self, force, state, memory, at):
        state, memory = self.transport.update(force, state, memory, at)
        psi = force.potential(state.theta, state)
        source = survivors(at.events, at.step * self.reaction * (psi - jnp.mean(psi)))
        return state.with_parts(jax.tree.map(lambda part: part[..., source], state.parts)), memory

    @property
    def descends(self):
        return True


def survivors(key: Array, excess: Float[Array, " n"]) -> Int[Array, " n"]:
    """For each place the particle that is there after one round. One particle after the other, j has an
    event with probability 1 − e^{−|excess_j|}: it is replaced by a copy of another, drawn at random
    (excess_j > 0), or another is replaced by a copy of it (excess_j < 0)."""
    n = len(excess)
    key_event, key_other = jax.random.split(key)
    happens = jax.random.uniform(key_event, (n,), excess.dtype) < -jnp.expm1(-jnp.abs(excess))
    other = (jnp.arange(n) + jax.random.randint(key_other, (n,), 1, max(n, 2))) % n

    def event(j: Array, source: Array) -> Array:
        from_, to = jnp.where(excess[j] > 0, other[j], j), jnp.where(excess[j] > 0, j, other[j])
        return source.at[to].set(jnp.where(happens[j], source[from_], source[to]))

    # In turn: two copies for one place at once would lose mass, and which one stays would be undefined.
    return jax.lax.fori_loop(0, n, event, jnp.arange(n))


def BirthDeath(  # noqa: N802
    functional: AbstractFunctional,
    step: float,
    *,
    reaction: float = 1.0,
    beta: float | None = None,
    decay: float = 0.0,
) -> Descent:
    """A step of descent (of Langevin's with β < ∞), then every particle j has an event with probability
    1 − e^{−κη|Ψ_j − mean Ψ|}, κ = `reaction`: where Ψ_j is above the mean it dies and a copy of another takes
    its place, where it is below it is copied onto another. n stays the same.

    As n → ∞ and η → 0 it is ∂tρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ − κρ(Ψ_λ − ∫Ψ_λ dρ), the flow of
    `wf.WassersteinFisherRao` with particles of equal weight. Copies stay together without noise. With noise
    the reaction is that of Ψ_λ alone, not of Ψ_λ + β⁻¹ log ρ, which particles cannot know.

    - `functional`, `beta`, `decay`: what is lowered, a `wf.FreeEnergy`, or a risk with β and λ given here.
    - `step`: η; time is t = kη after k steps.

    >>> run = wf.evolve(wf.BirthDeath(R, step=0.1, reaction=2.0), net, ts, key=key)
    >>> run["risk"].round(3)
    array([0.235, 0.211, 0.189])"""
    # no log r of reduced radii in the reaction
    total, beta = physics_of("BirthDeath", functional, beta, decay)
    transport = noise(total, math.inf if beta is None else beta)
    rule = BirthsAndDeaths(transport, positive("reaction", reaction, zero=True))
    return Descent(total, step, FullBatch(), rule, "BirthDeath", ("rotskoff2019",))
