"""The tangent kernel of neurons a φ(⟨w, x⟩ + b), by two matrix products."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._tracing import jit
from ...problems.neurons import is_ridge
from ...states.particles import Particles, is_cloud
from ...states.trainable import AbstractTrainable

MOST = 2**25  # numbers of size rows × neurons that are held at once; beyond it, the general way


def fits_ridges(state: AbstractTrainable, shape1: tuple[int, ...], shape2: tuple[int, ...]) -> bool:
    """Whether the kernel of this state on rows of such shapes (m, d) can be taken here."""
    if not (is_cloud(state) and is_ridge(state.neuron)):
        return False
    small = (shape1[0] + shape2[0]) * state.n <= MOST
    one = state.neuron.outputs == 1 and state.weights.ndim == 1
    return one and small and state.neuron.size(shape1[1]) == state.D


@jit
def ridge_kernels(
    particles: Particles, x1: Float[Array, "m1 d"], x2: Float[Array, "m2 d"]
) -> dict[str, Float[Array, "m1 m2"]]:
    """K by part of θ, for f = ∫ a φ(h) dρ, h = ⟨w, x⟩ + b:

    K_a = ∫ φ(h)φ(h') dρ,   K_w = ⟨x, x'⟩ ∫ a² φ'(h)φ'(h') dρ,   K_b = ∫ a² φ'(h)φ'(h') dρ.

    A part that is not trained has K = 0."""
    neuron, (a, w, b), mass = particles.neuron, particles.parts, particles.weights
    assert is_ridge(neuron)
    phi = neuron.activation
    rows = [x.astype(particles.dtype) for x in (x1, x2)]
    inner = [x @ w if b is None else x @ w + b for x in rows]
    (f1, d1), (f2, d2) = (jax.jvp(phi, (h,), (jnp.ones_like(h),)) for h in inner)
    squares = mass if a is None else mass * a**2
    moved = (d1 * squares) @ d2.T
    kernels = {}
    if a is not None:
        moves = neuron.output == "trained"
        kernels["a"] = (f1 * mass) @ f2.T if moves else jnp.zeros_like(moved)
    kernels["w"] = (rows[0] @ rows[1].T) * moved
    if b is not None:
        kernels["b"] = moved
    return kernels
