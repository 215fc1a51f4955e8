"""Noisy gradient descent."""

import math

from .._checks import positive
from ..functionals.base import AbstractFunctional
from ..functionals.entropy import confining
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
    makes it noisy SGD; without it the velocity is the full one. On a reduced problem the noise is that
    of the neurons in R^d: their radii gain the drift (d_i − 1)/(βr)."""
    beta = positive("beta", beta, infinite=True)
    total = confining(functional, beta=beta, decay=decay)
    rule = Euler() if beta == math.inf else Noisy(beta)
    batches = batches_for(functional, batch, one_pass)
    return Descent(total, step, batches, rule, "Langevin", ("mei2018", "hu2021"))
