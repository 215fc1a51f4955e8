"""Particles with noise: a proximal step, then the heat equation."""

import jax
import jax.numpy as jnp

from .proximal import Proximal
from .scheme import AbstractScheme, Moved


class Splitting(AbstractScheme):
    """θ' = θ + τ v(θ'), then θ⁺ = θ' + √(2τ/β) g, g ~ N(0, I) on the trained coordinates.

    Lie splitting of F: the proximal step for R/α² + (λ/2)∫|θ|²dρ, then the heat equation for time τ, which is
    the exact flow of −S/β. Of first order in τ (weakly), like the minimising movement itself; the law of the
    particles follows F, while one cloud of them has no entropy."""

    tol: float | None = None

    def check(self, state, step, beta):
        Proximal(self.tol).check(state, step, beta)

    def move(self, G, state, step, beta, key):  # noqa: N803
        moved = Proximal(self.tol).move(G, state, step, beta, key)
        size = jnp.sqrt(2 * step / beta).astype(state.dtype)
        heated = jax.tree.map(
            lambda p, g, moves: p + size * g if moves else p,
            moved.state.parts,
            state.normal(key),
            state.trained(),
        )
        return Moved(state.with_parts(state.projected(heated)), moved.residual, moved.solved)
