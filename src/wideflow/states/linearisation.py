"""A state linearised at its start."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .trainable import AbstractTrainable


class Linearisation(AbstractTrainable):
    """f_lin(x) = f(x; θ₀) + ⟨∇f(x; θ₀), θ − θ₀⟩: its kernel is that of the state `at` θ₀, and stays. What is
    kept is the displacement θ − θ₀, which at a large α would be lost in the rounding of θ."""

    parts: Any
    at: AbstractTrainable

    def __init__(self, at: AbstractTrainable, parts: Any = None):
        if isinstance(at, Linearisation) or not isinstance(at, AbstractTrainable):
            raise ValueError(f"Only a network or particles can be linearised, got a {type(at).__name__}.")
        self.at, self.parts = at, jax.tree.map(jnp.zeros_like, at.parts)
        if parts is not None:
            self.parts = jax.tree.map(lambda p, p0: p - p0, parts, at.parts)

    def __repr__(self) -> str:
        return f"Linearisation({self.at!r})"

    @property
    def alpha(self) -> Float[Array, "*r"]:  # type: ignore[override]
        return self.at.alpha

    @property
    def n(self) -> Any:
        """The width of what is linearised."""
        return self.at.n  # type: ignore[attr-defined]

    @property
    def dtype(self) -> Any:
        return self.at.dtype

    def __call__(self, x):
        f0, change = jax.jvp(lambda parts: self.at.with_parts(parts)(x), (self.at.parts,), (self.parts,))
        return f0 + change

    def position(self):
        return jax.tree.map(lambda p0, moved: p0 + moved, self.at.parts, self.parts)

    def at_position(self, theta):
        return self.with_parts(jax.tree.map(lambda p, p0: p - p0, theta, self.at.parts))

    def pull(self, x, signal):
        return self.at.pull(x, signal)

    def tangent(self):
        return self.at.tangent()

    def normal(self, key):
        return self.at.normal(key)

    def second_moment(self):
        return self.at.with_parts(self.position()).second_moment()

    def trained(self):
        return self.at.trained()

    def rates(self):
        return self.at.rates()

    def objection(self, scale_free):
        return self.at.objection(scale_free)

    def rows(self, m):
        return self.at.rows(m)
