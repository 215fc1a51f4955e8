"""The empirical measure of a network's neurons."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import finite
from ..problems.neurons import AbstractNeuron
from .chunks import NEURONS, chunk_rows, chunked, in_blocks, is_wide, map_rows
from .trainable import AbstractTrainable, Tangent, half_square


class Particles(AbstractTrainable):
    """ρ = Σ_j weights_j δ_{θ_j}, and the network f(x; ρ) = α ∫ σ*(x; θ) ρ(dθ) that it is.

    θ is kept as the neuron's parts (see `AbstractNeuron`); `particles.theta` joins them to (n, D).
    A leading replica axis on θ and weights makes a batch of measures for `jax.vmap`."""

    parts: Any
    weights: Float[Array, "*r n"]
    alpha: Float[Array, "*r"]
    neuron: AbstractNeuron

    def __init__(self, theta, weights=None, alpha=1.0, neuron=None):
        if not isinstance(neuron, AbstractNeuron):
            raise ValueError(f'Particles(neuron) must be such as wf.Neuron("erf"), got {neuron!r}.')
        theta = _floats("Particles(theta)", theta)
        if theta.ndim < 2 or theta.shape[-2] < 1:
            raise ValueError(f"Particles(theta) must have shape (n, D), n >= 1, got {theta.shape}.")
        _check_size(theta.shape[-1], neuron)
        if weights is None:
            weights = jnp.full(theta.shape[:-1], 1.0 / theta.shape[-2], theta.dtype)
        weights = _floats("Particles(weights)", weights).astype(theta.dtype)
        if weights.shape != theta.shape[:-1]:
            raise ValueError(
                f"Particles(weights) must have shape {theta.shape[:-1]}, as theta has shape "
                f"{theta.shape}, got {weights.shape}."
            )
        alpha = _floats("Particles(alpha)", alpha).astype(theta.dtype)
        if alpha.shape not in ((), theta.shape[:-2]):
            raise ValueError(
                f"Particles(alpha) must be one number, or have shape {theta.shape[:-2]} for theta of "
                f"shape {theta.shape}, got {alpha.shape}."
            )
        if not any(isinstance(v, jax.core.Tracer) for v in (theta, weights, alpha)):
            _check_values(theta, weights, alpha)  # under jit or vmap there are no values to check
        self.parts = neuron.unpack(theta)
        self.weights = weights
        self.alpha = jnp.broadcast_to(alpha, theta.shape[:-2])
        self.neuron = neuron

    @property
    def theta(self) -> Float[Array, "*r n D"]:
        """The particles θ_j, one a row."""
        return self.neuron.pack(self.parts)

    @property
    def n(self) -> int:
        """Number of particles, the width of the network."""
        return self.weights.shape[-1]

    @property
    def D(self) -> int:  # noqa: N802 (theory's name)
        """Dimension of θ."""
        return jax.eval_shape(self.neuron.pack, self.parts).shape[-1]

    @property
    def dtype(self) -> Any:
        return self.weights.dtype

    def __call__(self, x: Float[Array, "m d"]) -> Array:
        """f(x; ρ) on the rows of x, nothing of size rows × neurons held."""
        x = _floats("A network's input x", x).astype(self.dtype)
        if x.ndim != 2 or self.neuron.size(x.shape[1]) != self.D:
            raise ValueError(
                f"A network's input x must have shape (m, d) with d such that θ is in R^{self.D}, got "
                f"{x.shape}."
            )
        if self.weights.ndim > 1:
            raise ValueError(
                f"A batch of measures of shape {self.weights.shape[:-1]} must be evaluated by jax.vmap."
            )
        return _predict(self, x)

    def has_equal_weights(self) -> bool:
        """Whether all particles weigh the same, up to rounding in float32."""
        return bool(np.ptp(self.weights) <= 1e-6 * np.max(self.weights))

    def pull(self, x, signal):
        """(1/α) Σ_i signal_i ∇σ*(x_i; θ_j): a particle's weight does not enter its own velocity."""
        pulled = self.neuron.mix_and_pull(self.parts, x, self.weights)[1](signal)
        return jax.tree.map(lambda v: v / self.alpha, pulled)

    def tangent(self):
        """√weights_j in place of weights_j, so that K = ∫⟨∇σ*, ∇σ*⟩dρ without a division by weights."""
        moves = jax.tree.map(float, self.trained())
        return Tangent(_mixed_by(self.neuron), (self.parts, jnp.sqrt(self.weights)), (moves, 0.0))

    def normal(self, key):
        shape = jax.eval_shape(self.neuron.pack, self.parts).shape
        return self.neuron.unpack(jax.random.normal(key, shape, self.dtype))

    def second_moment(self):
        """½∫|θ|²dρ over the trained coordinates."""
        each = lambda parts: half_square(parts, self.neuron.trained(parts))
        return jnp.sum(self.weights * jax.vmap(each, in_axes=-1)(self.parts))

    def trained(self):
        return self.neuron.trained(self.parts)

    def rows(self, m):
        return chunk_rows(m, self.n * self.neuron.fan, 1, self.dtype)

    def projected(self, parts):
        return self.neuron.projected(parts)

    def confined(self, parts, velocity):
        return self.neuron.confined(parts, velocity)

    def joined(self, parts):
        return self.neuron.pack(parts)


@functools.cache
def _mixed_by(neuron: AbstractNeuron) -> Callable[[Any, Array], Array]:
    return lambda params, x: neuron.mix(params[0], x, params[1])


def _floats(name: str, values: Any) -> Array:
    """`values` as a JAX array of their own float type, or the default one."""
    given = values if isinstance(values, jax.Array) else finite(name, values)
    return jnp.asarray(given, jnp.result_type(given, float))


def _check_size(D: int, neuron: AbstractNeuron) -> None:  # noqa: N803 (theory's name)
    fewest = neuron.size(1)
    if neuron.size(max(1, D - neuron.size(0))) != D:
        allowed = f"D = {fewest}" + ("" if neuron.size(2) == fewest else " or more")
        raise ValueError(f"Particles(theta) must have {allowed} columns for {neuron!r}, got {D}.")


def _check_values(theta: Array, weights: Array, alpha: Array) -> None:
    finite("Particles(theta)", theta)
    if not (np.isfinite(alpha) & (np.asarray(alpha) > 0)).all():
        raise ValueError(f"Particles(alpha) must be a number > 0, got {alpha}.")
    given = finite("Particles(weights)", weights)
    # half the digits: every weight is rounded, and n of them are summed
    if (given < 0).any() or not np.allclose(
        given.sum(-1), 1.0, rtol=0, atol=np.sqrt(np.finfo(theta.dtype).eps)
    ):
        raise ValueError(
            f"Particles(weights) must be >= 0 and sum to 1; the sum is {given.sum(-1)}, the "
            f"least {given.min()}. Try weights / weights.sum()."
        )


@eqx.filter_jit
def _predict(particles: Particles, x: Array) -> Array:
    neuron, parts, weights = particles.neuron, particles.parts, particles.weights
    if is_wide(particles.n * neuron.fan, particles.dtype):
        blocks = jax.tree.map(lambda v: in_blocks(v, NEURONS), parts)
        masses = chunked(weights, NEURONS, pad="constant")  # the copies weigh 0
        add = lambda f, block: (f + map_rows(lambda x: neuron.mix(block[0], x, block[1]), x, NEURONS), None)
        zero = jnp.zeros(jax.eval_shape(neuron.mix, parts, x, weights).shape, particles.dtype)
        return particles.alpha * jax.lax.scan(add, zero, (blocks, masses))[0]
    rows = chunk_rows(x.shape[0], particles.n * neuron.fan, x.shape[1], particles.dtype)
    if rows < x.shape[0]:
        parts = neuron.for_chunks(parts)
    return particles.alpha * map_rows(lambda x: neuron.mix(parts, x, weights), x, rows)
