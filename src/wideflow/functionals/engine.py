"""The velocity kernel: weighted data in, risk and velocity out, whatever the neuron or network."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._tracing import jit
from .._typing import Scalar
from ..problems.losses import AbstractLoss
from ..problems.nodes import Nodes
from ..states.chunks import NEURONS, chunk_rows, chunked, in_blocks, in_chunks, is_wide, joined
from ..states.particles import Particles, is_cloud
from ..states.trainable import AbstractTrainable

_FEW_ROWS = 32  # below this many rows, a new layout of the parts costs more than it saves
_BLOCK_ROWS = 256  # rows to take at once against a block of neurons


def sweep(
    state: AbstractTrainable, nodes: Nodes, loss: AbstractLoss, scale: Scalar = 1.0
) -> tuple[Float[Array, ""], PyTree]:
    """Risk R = Σ_i ω_i ℓ(f(x_i), y_i) and velocity −(1/α)∇Ψ of every particle:

        v_j = (1/α) Σ_i ω_i u_i ∇_θ σ*(x_i; θ_j),   u = −∂ℓ/∂f,

    times `scale`, in the neuron's parts. The data is scanned in chunks; two matrix products per chunk for
    a ridge neuron, and nothing of size rows × neurons is ever stored. Very wide networks are taken in
    blocks of neurons too, at the price of computing the hidden layer twice. States that are not particles
    define how a signal moves them (`vjp`)."""
    data = nodes.astype(state.dtype)
    if not is_cloud(state):
        return _by_vjp(state, data, loss, scale)
    walk = _by_blocks if is_wide(state.n * state.neuron.fan, state.dtype) else _by_chunks
    return walk(state, data, loss, scale)


@jit
def risk_of(state: AbstractTrainable, nodes: Nodes, loss: AbstractLoss) -> Float[Array, ""]:
    """The risk alone; the compiler drops the velocity."""
    return sweep(state, nodes, loss)[0]


def _signal(particles: Particles, data: Nodes, f: Array, loss: AbstractLoss, scale: Scalar) -> Array:
    """scale · ω_i u_i/α. Scaling here, row by row, spares a product for every coordinate of θ."""
    u, by = loss.signal(f, data.y), data.weights * (jnp.asarray(scale, f.dtype) / particles.alpha)
    return u * (by if u.ndim == 1 else by[:, None])


def _add(total: PyTree, more: PyTree) -> PyTree:
    return jax.tree.map(jnp.add, total, more)


def _by_vjp(state: AbstractTrainable, data: Nodes, loss: AbstractLoss, scale: Scalar) -> tuple[Array, PyTree]:
    def chunk(data: Nodes) -> tuple[Array, PyTree]:
        f = state(data.x)
        u, by = loss.signal(f, data.y), data.weights * jnp.asarray(scale, f.dtype)
        velocity = state.vjp(data.x, u * (by if u.ndim == 1 else by[:, None]))
        return jnp.sum(data.weights * loss(f, data.y)), velocity

    rows = state.rows(data.m)
    if data.m <= rows:
        return chunk(data)
    zero = jnp.zeros((), state.dtype), jax.tree.map(jnp.zeros_like, state.parts)
    return jax.lax.scan(lambda total, data: (_add(total, chunk(data)), None), zero, in_chunks(data, rows))[0]


def _by_chunks(particles: Particles, data: Nodes, loss: AbstractLoss, scale: Scalar) -> tuple[Array, PyTree]:
    neuron, weights = particles.neuron, particles.weights

    def chunk(parts: PyTree, data: Nodes) -> tuple[Array, PyTree]:
        mixed, vjp = neuron.weighted_sum_and_vjp(parts, data.x, weights)
        f = particles.alpha * mixed
        velocity = vjp(_signal(particles, data, f, loss, scale))
        return jnp.sum(data.weights * loss(f, data.y)), velocity

    rows = chunk_rows(data.m, particles.n * neuron.fan, data.x.shape[1], particles.dtype)
    if data.m <= min(rows, _FEW_ROWS):
        return chunk(particles.parts, data)
    parts, back = jax.vjp(neuron.for_chunks, particles.parts)
    zero = jnp.zeros((), particles.dtype), jax.tree.map(jnp.zeros_like, parts)
    chunks = in_chunks(data, rows)
    add = lambda total, data: (_add(total, chunk(parts, data)), None)
    risk, velocity = jax.lax.scan(add, zero, chunks)[0]
    return risk, back(velocity)[0]


def _by_blocks(particles: Particles, data: Nodes, loss: AbstractLoss, scale: Scalar) -> tuple[Array, PyTree]:
    neuron, rows = particles.neuron, min(_BLOCK_ROWS, data.m)
    blocks = jax.tree.map(lambda v: in_blocks(v, NEURONS), particles.parts)
    masses = chunked(particles.weights, NEURONS, pad="constant")  # the copies weigh 0
    chunks = in_chunks(data, rows)

    def forward(f, block):
        parts, weights = neuron.for_chunks(block[0]), block[1]
        return f + jax.lax.map(lambda x: neuron.weighted_sum(parts, x, weights), chunks.x), None

    one = jax.eval_shape(neuron.weighted_sum, particles.parts, chunks.x[0], particles.weights)
    f = jnp.zeros((chunks.x.shape[0], *one.shape), particles.dtype)
    f = particles.alpha * jax.lax.scan(forward, f, (blocks, masses))[0]
    u = jax.vmap(lambda f, chunk: _signal(particles, chunk, f, loss, scale))(f, chunks)
    risk = jnp.sum(jax.vmap(lambda f, c: jnp.sum(c.weights * loss(f, c.y)))(f, chunks))
    unit = jnp.ones(NEURONS, particles.dtype)

    def backward(block):
        parts, back = jax.vjp(neuron.for_chunks, block)
        vjp = lambda total, xu: (_add(total, neuron.weighted_sum_and_vjp(parts, xu[0], unit)[1](xu[1])), None)
        zero = jax.tree.map(jnp.zeros_like, parts)
        return back(jax.lax.scan(vjp, zero, (chunks.x, u))[0])[0]

    velocity = jax.lax.map(backward, blocks)
    return risk, jax.tree.map(lambda v: joined(v, particles.n), velocity)
