"""Every unit sees all inputs."""

from dataclasses import dataclass

import jax.numpy as jnp

from ..._checks import count
from ...store.registry import recorded
from .base import AbstractWeighted


@dataclass(frozen=True)
class Dense(AbstractWeighted):
    """h = W x, W (fan-in, units): every unit sees all of x."""

    units: int | None = None

    def __post_init__(self):
        if self.units is not None:
            count("Dense(units)", self.units)

    def __str__(self) -> str:
        return f"Dense({self.units or 'n'})"

    @property
    def outputs(self):
        return self.units

    @property
    def units_or_none(self):
        return self.units

    def shape(self, inputs, n):
        if len(inputs) != 1:
            raise ValueError(
                f"Dense needs a vector, got an image of shape {inputs}: put Flatten or GlobalAverage first."
            )
        return (self.units or n,)

    def weight_shape(self, inputs, n):
        return (inputs[0], self.units or n)

    def apply(self, w, x):
        return x @ w

    def patches(self, x):
        return x[:, None, :]

    def gram(self, x1, x2, pairs):
        return jnp.sum(x1 * x1, axis=1) if x2 is None else jnp.matmul(x1, x2.T, precision="highest")

    def covariance(self, tables, at):
        return at.affine(tables, lambda table: table)


recorded(Dense)
