"""A state linearised at its start."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._typing import DType
from ..store.registry import assembled, must_be, recorded
from .particles import Particles
from .trainable import AbstractTrainable, is_trainable


class Linearisation(AbstractTrainable):
    """f_lin(x) = f(x; θ₀) + ⟨∇f(x; θ₀), θ − θ₀⟩: its kernel is that of the state `at` θ₀, and stays. What is
    kept is the displacement θ − θ₀, which at a large α would be lost in the rounding of θ."""

    parts: PyTree
    at: AbstractTrainable

    def __init__(self, at: AbstractTrainable, parts: PyTree = None):
        if isinstance(at, Linearisation) or not is_trainable(at):
            raise ValueError(f"Only a network or particles can be linearised, got a {type(at).__name__}.")
        self.at, self.parts = at, jax.tree.map(jnp.zeros_like, at.parts)
        if parts is not None:
            self.parts = jax.tree.map(lambda p, p0: p - p0, parts, at.parts)

    def __repr__(self) -> str:
        return f"Linearisation({self.at!r})"

    @property
    def base(self) -> AbstractTrainable:
        return self.at

    @property
    def current(self) -> AbstractTrainable:
        return self.at.with_parts(self.position())

    @property
    def cloud(self) -> Particles | None:
        return self.current.cloud

    @property
    def alpha(self) -> Float[Array, "*r"]:  # type: ignore[override]
        return self.at.alpha

    @property
    def n(self) -> int:
        """The width of what is linearised."""
        return self.at.n  # type: ignore[attr-defined]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.at.dtype

    def __call__(self, x):
        if self.replicas is not None:
            return jax.vmap(lambda one: one(x), in_axes=(self.axes(),))(self)
        f0, change = jax.jvp(lambda parts: self.at.with_parts(parts)(x), (self.at.parts,), (self.parts,))
        return f0 + change

    def position(self):
        return jax.tree.map(lambda p0, moved: p0 + moved, self.at.parts, self.parts)

    def at_position(self, theta):
        return self.with_parts(jax.tree.map(lambda p, p0: p - p0, theta, self.at.parts))

    def preactivations(self, x):
        return self.at.preactivations(x)

    def vjp(self, x, signal):
        return self.at.vjp(x, signal)

    def tangent(self):
        return self.at.tangent()

    def normal(self, key):
        return self.at.normal(key)

    def second_moment(self):
        return self.current.second_moment()

    def trained(self):
        return self.at.trained()

    def rates(self):
        return self.at.rates()

    def objection(self, scale_free):
        return self.at.objection(scale_free)

    def rows(self, m):
        return self.at.rows(m)


def linearised(state: AbstractTrainable) -> Linearisation:
    """The state linearised where it is; one that is linear already stays as it is."""
    return state if isinstance(state, Linearisation) else Linearisation(state)


def _rebuilt(parts: PyTree, at: AbstractTrainable) -> Linearisation:
    """As it was stored; the displacement must have the shapes of the parts."""
    shapes = lambda tree: jax.tree.map(jnp.shape, tree)
    if shapes(parts) != shapes(must_be("at", at, AbstractTrainable).parts):
        raise ValueError(
            f"a displacement has the shapes of the parts, {shapes(at.parts)}, got {shapes(parts)}."
        )
    return assembled(Linearisation)(parts=parts, at=at)


recorded(Linearisation, build=_rebuilt)
