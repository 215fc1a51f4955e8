"""Gradient descent."""

from ..functionals.base import AbstractFunctional
from .batches import FullBatch
from .descent import Descent
from .rules import Euler


def GradientDescent(functional: AbstractFunctional, step: float) -> Descent:  # noqa: N802
    """θ_j ← θ_j − (η/α)∇Ψ(θ_j; ρ): Euler's method for the gradient flow, of order 1 in η."""
    return Descent(functional, step, FullBatch(), Euler(), "GradientDescent", ("chizat2018",))
