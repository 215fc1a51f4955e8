"""Noisy gradient descent."""

import math

from .._checks import positive
from ..functionals.base import AbstractFunctional
from ..functionals.penalties import RadialEntropy, SecondMoment
from ..problems.radial import RadialNeuron
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
    decay = positive("decay", decay, zero=True)
    total: AbstractFunctional = functional + decay * SecondMoment() if decay else functional
    neuron = getattr(functional.problem, "neuron", None)
    if beta < math.inf and isinstance(neuron, RadialNeuron):
        total = total + _radial_entropy(neuron, beta)
    rule = Euler() if beta == math.inf else Noisy(beta)
    batches = batches_for(functional, batch, one_pass)
    return Descent(total, step, batches, rule, "Langevin", ("mei2018", "hu2021"))


def _radial_entropy(neuron: RadialNeuron, beta: float) -> AbstractFunctional:
    if any(math.isinf(dim) for dim in neuron.blocks):
        raise ValueError(
            f"Langevin(beta={beta:g}) in d = inf would blow every radius up at once: the noise of d "
            "coordinates needs beta in proportion to d. Take a finite d."
        )
    return (1 / beta) * RadialEntropy()
