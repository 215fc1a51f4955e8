"""The tangent kernel of neurons a φ(⟨w, x⟩ + b), by two matrix products."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...problems.neurons import Neuron
from ...states.particles import Particles

MOST = 2**25  # numbers of size rows × neurons that are held at once; beyond it, the general way


def are_ridges(state: Any, m1: int, m2: int) -> bool:
    """Whether the kernel of this state on so many rows can be taken here."""
    return (
        isinstance(state, Particles)
        and isinstance(state.neuron, Neuron)
        and state.neuron.outputs == 1
        and state.weights.ndim == 1
        and (m1 + m2) * state.n <= MOST
    )


@eqx.filter_jit
def ridge_kernels(
    particles: Particles, x1: Float[Array, "m1 d"], x2: Float[Array, "m2 d"]
) -> dict[str, Float[Array, "m1 m2"]]:
    """K by part of θ, for f = ∫ a φ(h) dρ, h = ⟨w, x⟩ + b:

    K_a = ∫ φ(h)φ(h') dρ,   K_w = ⟨x, x'⟩ ∫ a² φ'(h)φ'(h') dρ,   K_b = ∫ a² φ'(h)φ'(h') dρ.

    A part that is not trained has K = 0."""
    neuron, (a, w, b), mass = particles.neuron, particles.parts, particles.weights
    assert isinstance(neuron, Neuron)
    phi = neuron.activation
    rows = [x.astype(particles.dtype) for x in (x1, x2)]
    inner = [x @ w if b is None else x @ w + b for x in rows]
    (f1, d1), (f2, d2) = (jax.jvp(phi, (h,), (jnp.ones_like(h),)) for h in inner)
    squares = mass if a is None else mass * a**2
    moved = (d1 * squares) @ d2.T
    found = {}
    if a is not None:
        moves = neuron.output == "trained"
        found["a"] = (f1 * mass) @ f2.T if moves else jnp.zeros_like(moved)
    found["w"] = (rows[0] @ rows[1].T) * moved
    if b is not None:
        found["b"] = moved
    return found
