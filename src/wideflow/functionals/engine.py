"""The velocity kernel: one sweep over weighted data for risk and velocity, whatever the neuron."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..problems.losses import AbstractLoss
from ..problems.nodes import Nodes
from ..states.chunks import chunk_rows, chunked
from ..states.particles import Particles


def sweep(particles: Particles, nodes: Nodes, loss: AbstractLoss) -> tuple[Float[Array, ""], Any]:
    """Risk R = Σ_i ω_i ℓ(f(x_i), y_i) and velocity −(1/α)∇Ψ of every particle:

        v_j = (1/α) Σ_i ω_i u_i ∇_θ σ*(x_i; θ_j),   u = −∂ℓ/∂f,

    in the neuron's parts. The data is scanned in chunks; two matrix products a chunk for a ridge
    neuron, and nothing of size rows × neurons is ever held."""
    neuron, parts, weights = particles.neuron, particles.parts, particles.weights
    x = nodes.x.astype(particles.dtype)
    # A particle's weight does not enter its own velocity: pull back through unit weights. The
    # compiler shares the features between the two sums and drops the value of this one.
    unit = jnp.ones_like(weights)

    def chunk(x: Array, y: Array, omega: Array) -> tuple[Array, Any]:
        _, pull = jax.vjp(lambda parts: neuron.mix(parts, x, unit), parts)
        f = particles.alpha * neuron.mix(parts, x, weights)
        u = loss.signal(f, y)
        omega = omega.astype(f.dtype)
        (velocity,) = pull(u * (omega if u.ndim == 1 else omega[:, None]))
        return jnp.sum(omega * loss(f, y)), velocity

    rows = chunk_rows(particles.n, x.shape[1], particles.dtype)
    if nodes.m <= rows:
        risk, velocity = chunk(x, nodes.y, nodes.weights)
    else:
        zero = jnp.zeros((), particles.dtype), jax.tree.map(jnp.zeros_like, parts)
        data = tuple(chunked(v, rows) for v in (x, nodes.y, nodes.weights))
        add = lambda total, data: (jax.tree.map(jnp.add, total, chunk(*data)), None)  # noqa: E731
        (risk, velocity), _ = jax.lax.scan(add, zero, data)
    return risk, jax.tree.map(lambda v: v / particles.alpha, velocity)
