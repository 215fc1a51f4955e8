"""Noisy gradient descent."""

from .._checks import positive
from ..functionals.base import AbstractFunctional
from ..functionals.penalties import SecondMoment
from .batches import batches_for
from .descent import Descent
from .rules import Euler, Noisy


def Langevin(  # noqa: N802
    functional: AbstractFunctional,
    step: float,
    *,
    beta: float,
    decay: float = 0.0,
    batch: int | None = None,
    one_pass: bool | None = None,
) -> Descent:
    """θ ← (1 − ηλ)θ + (η/α)E[u∇σ*] + √(2η/β) g, g ~ N(0, I): decay λ, inverse temperature β.

    Euler–Maruyama for ∂tρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ, of weak order 1 in η. β = inf is no noise. `batch`
    makes it noisy SGD; without it the velocity is the full one."""
    beta = positive("beta", beta, infinite=True)
    decay = positive("decay", decay, zero=True)
    total = functional + decay * SecondMoment() if decay else functional
    rule = Euler() if beta == float("inf") else Noisy(beta)
    batches = batches_for(functional, batch, one_pass)
    return Descent(total, step, batches, rule, "Langevin", ("mei2018", "hu2021"))
