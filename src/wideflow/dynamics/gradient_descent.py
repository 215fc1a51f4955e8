"""Gradient descent."""

from ..functionals.base import AbstractFunctional
from .batches import FullBatch
from .descent import Descent
from .rules import Euler


def GradientDescent(functional: AbstractFunctional, step: float) -> Descent:  # noqa: N802
    """θ_j ← θ_j − (η/α)∇Ψ(θ_j; ρ): Euler's method for the gradient flow, of order 1 in η.
    - `functional`: what is lowered, such as wf.Risk(problem); its expectation is taken in full.
    - `step`: η; time is t = kη after k steps.

    >>> run = wf.evolve(wf.GradientDescent(R, step=0.01), net, ts)
    >>> run["risk"].round(3)
    array([0.235, 0.211, 0.19 ])"""
    return Descent(functional, step, FullBatch(), Euler(), "GradientDescent", ("chizat2018",))
