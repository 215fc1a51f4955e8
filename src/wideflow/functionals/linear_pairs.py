"""The closed form for a network that is linearised at its start."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._typing import Scalar
from .pairs import Pairs, on_diagonal

_TERMS = 4  # U and its three derivatives are held at once


class LinearPairs(eqx.Module):
    """f_lin = f(θ₀) + ⟨∇f(θ₀), δ⟩ is linear in the features, so that its risk is that of `Pairs` with

        V → V + ∂V·δ,   U → U + ∂₁U·δ + ∂₂U·δ' + ∂₁∂₂U·(δ, δ')

    at θ₀: derivatives of dual activations, which for a smooth activation are smooth also where θ = θ'."""

    pairs: Pairs

    def v(self, parts: PyTree, moved: PyTree) -> Float[Array, " k"]:
        return _first_order(self.pairs.v, parts, moved)

    def u(self, parts: PyTree, moved: PyTree, others: PyTree, others_moved: PyTree) -> Float[Array, "k l"]:
        right = lambda parts: _first_order(lambda others: self.pairs.u(parts, others), others, others_moved)
        return _first_order(right, parts, moved)

    def psi(self, parts: PyTree, moved: PyTree, state: Any) -> Float[Array, " k"]:
        """Ψ of f_lin for the particles of `parts`, displaced by `moved`: affine in `moved`."""
        at = state.at
        return self.v(parts, moved) + at.alpha * (self.u(parts, moved, at.parts, state.parts) @ at.weights)

    def _blocks(self, fn: Callable[[PyTree, PyTree], PyTree], state: Any) -> PyTree:
        return self.pairs.in_blocks(lambda both: fn(*both), (state.at.parts, state.parts), _TERMS * state.n)

    @eqx.filter_jit
    def value(self, state: Any) -> Float[Array, ""]:
        """R = ½E[y²] + ½α∫(V + Ψ)dρ."""
        both = lambda parts, moved: self.v(parts, moved) + self.psi(parts, moved, state)
        total = self._blocks(both, state) @ state.at.weights
        return self.pairs.half_square(state.dtype) + 0.5 * state.alpha * total

    def magnitude(self, state: Any) -> Float[Array, ""]:
        """A bound of what the terms of the risk add up to without cancelling, as for `Pairs`: the size of a
        linearised neuron is at most √U(θ, θ) + √∂₁∂₂U(δ, δ). Rounding is a few units in its last place."""
        root = lambda squares: jnp.sqrt(jnp.maximum(squares, 0.0))
        still = root(on_diagonal(self.pairs.u, state.at.parts))
        moved = root(on_diagonal(self._mixed, (state.at.parts, state.parts)))
        return self.pairs.bound(state.at, _sizes(self.pairs.v, state.at.parts, state.parts), still + moved)

    def _mixed(self, one: tuple[PyTree, PyTree], other: tuple[PyTree, PyTree]) -> Float[Array, "k l"]:
        """∂₁∂₂U(δ, δ') for neurons and their displacements."""
        second = lambda parts: jax.jvp(lambda others: self.pairs.u(parts, others), (other[0],), (other[1],))[
            1
        ]
        return jax.jvp(second, (one[0],), (one[1],))[1]

    def drift(self, state: Any, scale: Scalar = 1.0) -> PyTree:
        """−(scale/α)∇Ψ at every particle: the derivative in its displacement."""

        def force(parts: PyTree, moved: PyTree) -> PyTree:
            gradient = jax.grad(lambda moved: jnp.sum(self.psi(parts, moved, state)))(moved)
            return jax.tree.map(lambda g: -(scale / state.alpha) * g, gradient)

        forces = self._blocks(force, state)
        return jax.tree.map(lambda moves, f: f if moves else jnp.zeros_like(f), state.trained(), forces)


def _first_order(fn: Callable[[PyTree], Array], at: PyTree, moved: PyTree) -> Array:
    """fn + ∂fn·moved."""
    value, change = jax.jvp(fn, (at,), (moved,))
    return value + change


def _sizes(fn: Callable[[PyTree], Array], at: PyTree, moved: PyTree) -> Array:
    value, change = jax.jvp(fn, (at,), (moved,))
    return jnp.abs(value) + jnp.abs(change)
