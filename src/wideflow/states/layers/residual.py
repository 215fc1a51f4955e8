"""A residual block: a branch beside what it starts from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._checks import number
from ..._shown import shown
from ...store.registry import recorded
from .base import AbstractLayer, AbstractStep
from .covariance import Randomness, Tables
from .equality import labels_of


@dataclass(frozen=True)
class Residual(AbstractLayer):
    """h ↦ h + c · branch(h), c the `multiplier`; a network of L blocks stays of order 1 as L grows with
    c = L^−½, and with c = 1/L follows an ordinary differential equation.

    The branch, such as (Elementwise(φ), Dense()), keeps the shape of h. Its weight layers count like all
    others: each has its own row of the parametrisation and its own part of the tangent kernel; predicted
    exponents in n hold where hidden layers are of order 1 (a + b = ½, as in "ntk", "standard" and "mup"). At
    n = ∞ the fresh weights at the end of the branch make it independent of h, and both tables add:

        Σ ← Σ + c² Σ_branch(Σ),    Θ ← Θ + c² Θ_branch(Σ, Θ)."""

    layers: tuple[AbstractLayer, ...]
    multiplier: float = 1.0

    def __init__(self, layers: Sequence[AbstractLayer], multiplier: float = 1.0):
        branch = tuple(layers) if isinstance(layers, Sequence) else (layers,)
        wrong = [layer for layer in branch if not isinstance(layer, AbstractLayer)]
        if wrong or not branch:
            raise ValueError(
                "Residual(layers) must be one or more layers such as (Elementwise(phi), Dense()), got "
                f"{shown(wrong[0] if wrong else branch)}."
            )
        object.__setattr__(self, "layers", branch)
        object.__setattr__(self, "multiplier", number("Residual(multiplier)", multiplier))

    def __str__(self) -> str:
        scale = "" if self.multiplier == 1 else f"{self.multiplier:g}·"
        return f"(1 + {scale}[{' → '.join(map(str, self.layers))}])"

    def steps(self):
        branch = (step for layer in self.layers for step in layer.steps())
        return (_Fork(), *branch, _Join(self.multiplier))


@dataclass(frozen=True)
class _Fork(AbstractStep):
    """Keeps what enters the branch."""

    def pass_shapes(self, stack, n):
        return (*stack, stack[-1])

    def pass_values(self, stack, forward):
        return (*stack, stack[-1])

    def pass_covariances(self, stack, at):
        return (*stack, stack[-1])

    def pass_labels(self, stack):
        return (*stack, stack[-1])

    def pass_randomness(self, stack):
        return (*stack, Randomness(stack[-1].gaussian, fresh=False))


@dataclass(frozen=True)
class _Join(AbstractStep):
    """h + c · branch of the two on top of the stack."""

    multiplier: float

    @property
    def homogeneous(self):
        return False  # where the branch's weights change its size, that of h stays

    def pass_shapes(self, stack, n):
        *below, kept, branch = stack
        if kept != branch:
            raise ValueError(
                f"A residual branch must keep the shape of what enters it, at every width n: got {kept} → "
                f"{branch} at n = {n}. End it with Dense() or Conv(window), and put a weight layer before "
                "the first block."
            )
        return (*below, kept)

    def pass_values(self, stack, forward):
        *below, kept, branch = stack
        return (*below, kept + self.multiplier * branch)

    def pass_covariances(self, stack, at):
        *below, kept, branch = stack
        c2 = self.multiplier**2
        return (*below, Tables(*(one + c2 * other for one, other in zip(kept, branch, strict=True))))

    def pass_labels(self, stack):
        *below, kept, branch = stack
        return (*below, labels_of(np.stack([kept, branch], axis=-1)))

    def pass_randomness(self, stack):
        *below, kept, branch = stack
        if not (branch.gaussian and branch.fresh):
            raise ValueError(
                "A residual branch must end with weights to have a limit as n → ∞, or it is not independent "
                "of what it is added to (a block alone keeps that). Try (Elementwise(phi), Dense())."
            )
        return (*below, kept)


recorded(Residual)
