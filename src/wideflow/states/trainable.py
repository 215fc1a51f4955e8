"""What a state must answer to be moved by a dynamics."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._typing import Abstract
from .chunks import chunked


class Tangent(NamedTuple):
    """A function f(params, x) and rates whose Σ_p rate_p ∂_p f(x) ∂_p f(x')ᵀ is the kernel of a state. `f` is
    the same object for the same kind of state, so that code compiled for it is found again."""

    f: Callable[[Any, Array], Array]
    params: Any
    rates: Any


class AbstractTrainable(eqx.Module):
    """A state with `parts` that move: f(x) = state(x), and parts ← parts + velocity.

    A signal s on rows x (ω u for a risk) moves the parts by `pull(x, s)`: the gradient Σ_i s_i ∇f(x_i) times
    the rates of the parts, over α². The kernel of a state is what a signal at x' does to f(x)."""

    parts: Abstract[Any]
    alpha: Abstract[Float[Array, "*r"]]
    dtype: Abstract[Any]

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "m d"]) -> Array:
        """f on the rows of x: (m,) for one output, (m, outputs) for more."""

    @abc.abstractmethod
    def pull(self, x: Float[Array, "m d"], signal: Array) -> Any:
        """The velocity of the parts under a signal on the rows of x."""

    @abc.abstractmethod
    def tangent(self) -> Tangent:
        """What the kernel K(x, x') = ∂f(x)/∂θ · rates · ∂f(x')/∂θ is made of."""

    @abc.abstractmethod
    def normal(self, key: Array) -> Any:
        """Noise for the parts: independent, of the size that one unit of temperature gives each."""

    @abc.abstractmethod
    def second_moment(self) -> Float[Array, ""]:
        """The energy whose flow is −θ on the parts that are trained."""

    def trained(self) -> Any:
        """For each part, whether training moves it."""
        return jax.tree.map(lambda _: True, self.parts)

    def rates(self) -> Any:
        """For each part, the step that an optimiser with a scale of its own (Adam) takes per unit of η."""
        return jax.tree.map(lambda _: 1.0, self.parts)

    def objection(self, scale_free: bool) -> str:
        """Why an optimiser, free of the gradient's scale or not, does not suit the rates; "" if it does."""
        return ""

    def rows(self, m: int) -> int:
        """How many of m rows of data to take at once."""
        return m

    def projected(self, parts: Any) -> Any:
        """The nearest parts that are allowed."""
        return parts

    def confined(self, parts: Any, velocity: Any) -> Any:
        """A velocity that does not leave what is allowed, at its boundary."""
        return velocity

    def joined(self, parts: Any) -> Any:
        """The parts, or a velocity of them, as a person would read them."""
        return parts

    def with_parts(self, parts: Any) -> Any:
        """The same state at other parts."""
        other = object.__new__(type(self))  # nothing is checked anew: this runs in every step
        for field in dataclasses.fields(self):
            object.__setattr__(other, field.name, getattr(self, field.name))
        object.__setattr__(other, "parts", parts)
        return other

    def position(self) -> Any:
        """θ itself, in parts; a state may keep its displacement from a start instead."""
        return self.parts

    def at_position(self, theta: Any) -> Any:
        """The same state at another θ."""
        return self.with_parts(theta)

    def moved(self, velocity: Any, by: Any = 1.0) -> Any:
        """Every part moved: parts + by · velocity."""
        return self.with_parts(jax.tree.map(lambda p, v: p + by * v, self.parts, velocity))


@eqx.filter_jit
def pulled(state: AbstractTrainable, x: Array, signal: Array) -> Any:
    """`state.pull(x, signal)`, a chunk of rows at a time."""
    x, signal = x.astype(state.dtype), signal.astype(state.dtype)
    rows = state.rows(len(x))
    if rows >= len(x):
        return state.pull(x, signal)
    add = lambda total, data: (jax.tree.map(jnp.add, total, state.pull(*data)), None)
    zero = jax.tree.map(jnp.zeros_like, state.parts)
    return jax.lax.scan(add, zero, (chunked(x, rows), chunked(signal, rows, pad="constant")))[0]


def half_square(parts: Any, trained: Any) -> Array:
    """½ Σ |part|² over the parts that are trained."""
    squares = jax.tree.map(lambda moves, p: jnp.sum(p**2) if moves else 0.0, trained, parts)
    return jnp.asarray(0.5 * sum(jax.tree.leaves(squares)))
