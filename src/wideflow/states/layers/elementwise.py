"""Activations."""

from dataclasses import dataclass

from ...problems.activations import Activation, is_named
from ...problems.activations import activation as as_activation
from ...store.registry import recorded
from .base import AbstractUnweighted
from .covariance import Randomness

_HOMOGENEOUS = ("relu", "leaky_relu", "identity")


@dataclass(frozen=True)
class Elementwise(AbstractUnweighted):
    """x = φ(h)."""

    activation: Activation

    def __str__(self) -> str:
        return self.activation.name

    @property
    def phi(self):
        return self.activation

    @property
    def homogeneous(self):
        return is_named(self.activation) and self.activation.name in _HOMOGENEOUS

    def shape(self, inputs, n):
        return inputs

    def apply(self, x):
        return self.activation(x)

    def covariance(self, tables, at):
        return at.activated(self.activation, tables)

    def randomness(self, entering):
        if not entering.gaussian:
            raise ValueError(
                f"{self.activation.name} acts on what another activation made, with no weight layer in "
                "between: that is not Gaussian at n = ∞. Put one activation in the place of both."
            )
        return Randomness(gaussian=False, fresh=False)


recorded(Elementwise, build=lambda activation: Elementwise(as_activation(activation)))
