"""Positions and masses together: Wasserstein–Fisher–Rao."""

import math

from .._checks import positive
from ..functionals.base import AbstractFunctional
from ..functionals.free_energy import physics_of
from ..states.measure import is_measure
from .batches import FullBatch
from .descent import Descent
from .measures import log_weights, with_log_weights
from .rules import AbstractRule


class Conic(AbstractRule):
    """θ ← θ + ηv and log ω ← log ω − ηκΨ − log Z, both from the state before the step; κ = `reaction`."""

    reaction: float

    def init(self, state):
        return log_weights(state)

    def objection(self, state):
        return "" if is_measure(state) and state.cloud is not None else "moves wf.Particles"

    def update(self, force, state, memory, at):
        psi = force.potential(state.theta, state)
        moved = state.moved(force.drift(state, at.step))
        return with_log_weights(moved, memory - at.step * self.reaction * psi)

    @property
    def descends(self):
        return True


def WassersteinFisherRao(  # noqa: N802
    functional: AbstractFunctional, step: float, *, reaction: float = 1.0, decay: float = 0.0
) -> Descent:
    """θ_j ← θ_j − η∇Ψ_λ(θ_j; ρ) and ω_j ← ω_j e^{−ηκΨ_λ(θ_j; ρ)}/Z, κ = `reaction`: conic particle descent.

    Of order 1 in η for ∂tρ = ∇·(ρ∇Ψ_λ) − κρ(Ψ_λ − ∫Ψ_λ dρ), along which
    dF/dt = −∫|∇Ψ_λ|²dρ − κ Var_ρ Ψ_λ. Mass goes to where Ψ_λ is low without crossing what lies between;
    κ = 0 is `wf.GradientDescent`. The total mass stays 1. As a mirror step (see `wf.FisherRao`) its
    divergence is the sum of both, W2²/2 for positions and KL/κ for masses.

    - `functional`, `decay`: what is lowered, a risk with penalties, or with λ given here.
    - `step`: η; time is t = kη after k steps.

    >>> run = wf.evolve(wf.WassersteinFisherRao(R, step=0.1, reaction=2.0), net, ts)
    >>> run["risk"].round(3), run.final.weights.round(3)
    (array([0.235, 0.209, 0.187]), Array([0.238, 0.249, 0.255, 0.258], dtype=float64))"""
    reaction = positive("reaction", reaction, zero=True)
    total, beta = physics_of("WassersteinFisherRao", functional, None, decay)
    if beta is not None and beta < math.inf:
        raise ValueError(
            "WassersteinFisherRao has no noise, and its functional holds an entropy. For noise with births "
            "and deaths use wf.BirthDeath(F, step)."
        )
    sources = ("chizat2018", "chizat2022b")
    return Descent(total, step, FullBatch(), Conic(reaction), "WassersteinFisherRao", sources)
