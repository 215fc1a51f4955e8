"""Mirror descent on the masses of a measure: Fisher–Rao."""

import math

from ..functionals.base import AbstractFunctional
from ..functionals.free_energy import confining, physics_of
from ..states.measure import is_measure
from .batches import FullBatch
from .descent import Descent
from .measures import MEASURES, log_weights, with_log_weights
from .rules import AbstractRule


class Multiplicative(AbstractRule):
    """log ω ← (log ω − ηΨ)/(1 + η/β) − log Z, positions stay. log ω is carried.

    On a grid the cells are of one size, so that log ρ and log ω differ by a constant that Z takes up."""

    beta: float = math.inf

    def init(self, state):
        return log_weights(state)

    def objection(self, state):
        if not is_measure(state):
            return MEASURES
        if self.beta < math.inf and not state.has_density:
            return (
                f"with beta = {self.beta:g} moves a wf.GridDensity (wf.on_grid), for atoms have no entropy; "
                "on particles leave beta = inf"
            )
        return ""

    def update(self, force, state, memory, at):
        psi = force.potential(state.theta, state)
        return with_log_weights(state, (memory - at.step * psi) / (1 + at.step / self.beta))


def FisherRao(  # noqa: N802
    functional: AbstractFunctional, step: float, *, beta: float | None = None, decay: float = 0.0
) -> Descent:
    """ω_j ← ω_j e^{−ηΨ_λ(θ_j; ρ)}/Z, multiplicative weights: positions θ_j stay, masses move.

    A mirror step is argmin_z ⟨∇F(z_k), z⟩ + D(z, z_k)/η with a divergence D. With D = KL on measures it is
    the step above, and η → 0 gives the Fisher–Rao flow ∂tρ = −ρ(Ψ_λ − ∫Ψ_λ dρ), of order 1 in η; with
    D = W2²/2 and F itself in place of its linear part it is the proximal step of Wasserstein's geometry
    (JKO), whose η → 0 is the gradient flow. F convex and KL(ρ*|ρ_0) finite: F(ρ_t) − F* ≤ KL(ρ*|ρ_0)/t.

    It moves `wf.Particles` and `wf.GridDensity` alike. On a grid β < ∞ (of F itself, or given here) adds
    −S(ρ)/β. The step keeps the entropy exact and linearises the rest,
    argmin ⟨Ψ_λ, ρ⟩ − S(ρ)/β + KL(ρ|ρ_k)/η, that is ρ ∝ (ρ_k e^{−ηΨ_λ})^{1/(1 + η/β)}: stable for any η/β,
    with fixed points ρ ∝ e^{−βΨ_λ} whatever η (where there is mass: an empty cell stays empty).

    - `functional`, `beta`, `decay`: what is lowered, a `wf.FreeEnergy`, or a risk with β and λ given here.
    - `step`: η; time is t = kη after k steps.

    >>> run = wf.evolve(wf.FisherRao(F, step=0.1), density, ts)
    >>> run["risk"].round(3), float(run.final.weights.sum().round(12))
    (array([0.216, 0.204, 0.193]), 1.0)"""
    plain, beta = physics_of("FisherRao", functional, beta, decay)
    beta = math.inf if beta is None else beta
    total = confining(plain, beta=beta)
    return Descent(total, step, FullBatch(), Multiplicative(beta), "FisherRao", ("beck2003",))
