"""What a state must define to be moved by a dynamics."""

import abc
from collections.abc import Callable
from typing import NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._typing import Abstract, DType, Scalar, TypeIs
from .chunks import chunked
from .state import AbstractState


class Tangent(NamedTuple):
    """A function f(params, x) and rates whose Σ_p rate_p ∂_p f(x) ∂_p f(x')ᵀ is the kernel of a state. `f` is
    the same object for the same kind of state, so that code compiled for it is reused."""

    f: Callable[[PyTree, Array], Array]
    params: PyTree
    rates: PyTree


class AbstractTrainable(AbstractState):
    """A state with `parts` that move: f(x) = state(x), and parts ← parts + velocity.

    A signal s on rows x (ω u for a risk) moves the parts by `vjp(x, s)`: the gradient Σ_i s_i ∇f(x_i) times
    the rates of the parts, over α². The kernel of a state is what a signal at x' does to f(x)."""

    parts: Abstract[PyTree]
    alpha: Abstract[Float[Array, "*r"]]
    dtype: Abstract[DType]

    @abc.abstractmethod
    def vjp(self, x: Float[Array, "m d"], signal: Array) -> PyTree:
        """The velocity of the parts under a signal on the rows of x."""

    @abc.abstractmethod
    def tangent(self) -> Tangent:
        """What the kernel K(x, x') = ∂f(x)/∂θ · rates · ∂f(x')/∂θ is made of."""

    @abc.abstractmethod
    def normal(self, key: Array) -> PyTree:
        """Noise for the parts: independent, of the size that one unit of temperature gives each."""

    @abc.abstractmethod
    def second_moment(self) -> Float[Array, ""]:
        """The energy whose flow is −θ on the parts that are trained."""

    @property
    def base(self) -> "AbstractTrainable":
        return self

    @property
    def current(self) -> "AbstractTrainable":
        return self

    def trained(self) -> PyTree:
        """For each part, whether training moves it."""
        return jax.tree.map(lambda _: True, self.parts)

    def rates(self) -> PyTree:
        """For each part, the step that an optimiser with a scale of its own (Adam) takes per unit of η."""
        return jax.tree.map(lambda _: 1.0, self.parts)

    def objection(self, scale_free: bool) -> str:
        """Why an optimiser, free of the gradient's scale or not, does not suit the rates; "" if it does."""
        return ""

    def rows(self, m: int) -> int:
        """How many of m rows of data to take at once."""
        return m

    def projected(self, parts: PyTree) -> PyTree:
        """The nearest parts that are allowed."""
        return parts

    def confined(self, parts: PyTree, velocity: PyTree) -> PyTree:
        """The velocity, changed at the boundary of what is allowed so that it does not leave it."""
        return velocity

    def joined(self, parts: PyTree) -> PyTree:
        """The parts, or a velocity of them, as a person would read them."""
        return parts

    def with_parts(self, parts: PyTree) -> Self:
        """The same state at other parts."""
        return self._with(parts=parts)  # nothing is checked again: this runs in every step

    def position(self) -> PyTree:
        """θ itself, in parts; a state may keep its displacement from a start instead."""
        return self.parts

    def at_position(self, theta: PyTree) -> Self:
        """The same state at another θ."""
        return self.with_parts(theta)

    def moved(self, velocity: PyTree, by: Scalar = 1.0) -> Self:
        """Every part moved: parts + by · velocity."""
        return self.with_parts(jax.tree.map(lambda p, v: p + by * v, self.parts, velocity))


@eqx.filter_jit
def chunked_vjp(state: AbstractTrainable, x: Array, signal: Array) -> PyTree:
    """`state.vjp(x, signal)`, a chunk of rows at a time."""
    x, signal = x.astype(state.dtype), signal.astype(state.dtype)
    rows = state.rows(len(x))
    if rows >= len(x):
        return state.vjp(x, signal)
    add = lambda total, data: (jax.tree.map(jnp.add, total, state.vjp(*data)), None)
    zero = jax.tree.map(jnp.zeros_like, state.parts)
    return jax.lax.scan(add, zero, (chunked(x, rows), chunked(signal, rows, pad="constant")))[0]


def half_square(parts: PyTree, trained: PyTree) -> Array:
    """½ Σ |part|² over the parts that are trained."""
    squares = jax.tree.map(lambda moves, p: jnp.sum(p**2) if moves else 0.0, trained, parts)
    return jnp.asarray(0.5 * sum(jax.tree.leaves(squares)))


def is_trainable(state: object) -> TypeIs[AbstractTrainable]:
    """Whether a state is one that a dynamics can move."""
    return isinstance(state, AbstractTrainable)
