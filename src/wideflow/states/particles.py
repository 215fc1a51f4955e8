"""The empirical measure of a network's neurons."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from .._checks import finite, is_traced
from .._data import Data
from .._random import normal
from .._shown import shown
from .._tracing import jit_once, on_device
from .._typing import DType, TypeIs
from ..problems.neurons import AbstractNeuron
from ..store.registry import assembled, must_be, recorded
from .chunks import NEURONS, chunk_rows, chunked, in_blocks, is_wide, map_rows
from .measure import AbstractMeasure, EntropyEstimate
from .neighbours import neighbour_entropy
from .trainable import AbstractTrainable, Tangent


def _extended(v: Array, extra: int, mode: str) -> Array:
    """`v` with `extra` more entries along its last axis, on the host where it is there already."""
    pad = np.pad if isinstance(v, np.ndarray) else jnp.pad
    return pad(v, [(0, 0)] * (v.ndim - 1) + [(0, extra)], mode)


class Particles(AbstractTrainable, AbstractMeasure):
    """ρ = Σ_j weights_j δ_{θ_j}, and the network f(x; ρ) = α ∫ σ*(x; θ) ρ(dθ) that it is.

    θ is kept as the neuron's parts (see `AbstractNeuron`); `particles.theta` joins them to (n, D).
    A leading replica axis on θ and weights makes many networks of it, which `wf.evolve` moves as one:
    `law.sample(key, n, replicas=64)`. It then predicts (replicas, m).

    >>> rho = wf.Particles([[1.0, 0.5, 0.0, 0.0], [-1.0, 0.0, 0.5, 0.0]], neuron=wf.Neuron("erf"))
    >>> rho(jnp.ones((2, 3))), rho.weights
    (Array([0., 0.], dtype=float64), Array([0.5, 0.5], dtype=float64))"""

    shared = ("neuron",)
    parts: PyTree
    weights: Float[Array, "*r n"]
    alpha: Float[Array, "*r"]
    neuron: AbstractNeuron

    def __init__(self, theta, weights=None, alpha=1.0, neuron=None):
        if not isinstance(neuron, AbstractNeuron):
            raise ValueError(
                f'Particles(neuron) must be a neuron such as wf.Neuron("erf"), got {shown(neuron)}.'
            )
        theta = _floats("Particles(theta)", theta)
        if theta.ndim < 2 or theta.shape[-2] < 1:
            raise ValueError(f"Particles(theta) must have shape (n, D), n >= 1, got {theta.shape}.")
        _check_size(theta.shape[-1], neuron)
        if weights is None:
            weights = np.full(theta.shape[:-1], 1.0 / theta.shape[-2], theta.dtype)
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
        if not any(is_traced(v) for v in (theta, weights, alpha)):
            _check_values(theta, weights, alpha)  # under jit or vmap there are no values to check
        unpack = _unpacked if isinstance(theta, jax.Array) else lambda neuron, theta: neuron.unpack(theta)
        self.parts = jax.tree.map(on_device, unpack(neuron, theta))
        self.weights = on_device(weights)
        self.alpha = _repeated(alpha, theta.shape[:-2])
        self.neuron = neuron

    @property
    def theta(self) -> Float[Array, "*r n D"]:  # type: ignore[override]
        """The particles θ_j, one per row."""
        on_host = isinstance(self.weights, np.ndarray)  # where no program is needed
        return self.neuron.pack(self.parts) if on_host else _packed(self.neuron, self.parts)

    @property
    def n(self) -> int:
        """Number of particles, the width of the network."""
        return self.weights.shape[-1]

    @property
    def D(self) -> int:  # noqa: N802 (theory's name)
        """Dimension of θ."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.parts)) // self.weights.size

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.weights.dtype

    def __call__(self, x: Float[Array, "m d"]) -> Array:
        """f(x; ρ) on the rows of x, without storing anything of size rows × neurons."""
        x = _floats("A network's input x", x).astype(self.dtype)
        if x.ndim != 2 or self.neuron.size(x.shape[1]) != self.D:
            raise ValueError(
                f"A network's input x must have shape (m, d) with d such that θ is in R^{self.D}, got "
                f"{x.shape}."
            )
        if self.replicas is not None:
            return jax.vmap(lambda one: one(x), in_axes=(self.axes(),))(self)
        return _predict(self, x)

    @property
    def cloud(self) -> "Particles":
        return self

    def has_equal_weights(self) -> bool:
        """Whether all particles weigh the same, up to rounding in float32."""
        return _are_equal(np.asarray(self.weights))

    def padded(self, n: int) -> "Particles":
        """The same measure with n particles: copies of the last one that weigh 0, so that networks of several
        widths have one shape. They move, as probes do, but affect nothing."""
        extra = n - self.n
        parts = jax.tree.map(lambda v: _extended(v, extra, "edge"), self.parts)
        return self._with(parts=parts, weights=_extended(self.weights, extra, "constant"))

    def first(self, n: int) -> "Particles":
        """The first n particles alone, with the weights that they have."""
        parts = jax.tree.map(lambda v: v[..., :n], self.parts)
        return self._with(parts=parts, weights=self.weights[..., :n])

    def vjp(self, x, signal):
        """(1/α) Σ_i signal_i ∇σ*(x_i; θ_j): a particle's weight does not enter its own velocity."""
        velocity = self.neuron.weighted_sum_and_vjp(self.parts, x, self.weights)[1](signal)
        return jax.tree.map(lambda v: v / self.alpha, velocity)

    def tangent(self):
        """√weights_j in place of weights_j, so that K = ∫⟨∇σ*, ∇σ*⟩dρ without a division by weights."""
        moves = jax.tree.map(float, self.trained())
        return Tangent(_weighted_sum_of(self.neuron), (self.parts, jnp.sqrt(self.weights)), (moves, 0.0))

    def normal(self, key):
        shape = jax.eval_shape(self.neuron.pack, self.parts).shape
        return self.neuron.unpack(normal(key, shape, self.dtype))

    def second_moment(self):
        return AbstractMeasure.second_moment(self)

    @property
    def has_density(self):
        return False

    def with_weights(self, weights):
        return self._with(weights=weights)

    def log_density(self, theta):
        raise ValueError("Particles have no density: put them on a grid, wf.on_grid(particles, …).")

    def coordinate_entropy(self, neighbours):
        if neighbours is None:
            raise ValueError(
                f"{self.n} particles have no density, so their entropy is -inf; that of a wf.GridDensity "
                "(wf.on_grid) is exact. For an estimate with an error bar ask for "
                "wf.Entropy(neighbours=4).estimate(particles)."
            )
        shape = jax.ShapeDtypeStruct((), self.dtype)
        value = lambda theta, weights: np.asarray(_entropy(theta, weights, neighbours).value, self.dtype)
        return jax.pure_callback(value, shape, self.theta, self.weights, vmap_method="sequential")

    def entropy_estimate(self, neighbours):
        return _entropy(self.theta, self.weights, neighbours)

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
def _weighted_sum_of(neuron: AbstractNeuron) -> Callable[[PyTree, Array], Array]:
    return lambda params, x: neuron.weighted_sum(params[0], x, params[1])


def _are_equal(weights: np.ndarray) -> bool:
    return bool(np.ptp(weights) <= 1e-6 * np.max(weights))


def _entropy(theta: Array, weights: Array, neighbours: int | None) -> EntropyEstimate:
    return neighbour_entropy(np.asarray(theta), neighbours, _are_equal(np.asarray(weights)))


def _floats(name: str, values: ArrayLike) -> PyTree:
    """`values` as an array of their own float type, or the default one; on the host if they are there, where
    nothing has to be compiled for them."""
    if isinstance(values, jax.Array):
        return jnp.asarray(values, jnp.result_type(values, float))
    array = finite(name, values)
    return np.asarray(array, jnp.result_type(array, float))


def _repeated(alpha: PyTree, shape: tuple[int, ...]) -> Array:
    """One α for each replica."""
    if alpha.shape == shape:
        return on_device(alpha)
    return (
        on_device(np.broadcast_to(alpha, shape))
        if isinstance(alpha, np.ndarray)
        else jnp.broadcast_to(alpha, shape)
    )


_packed = jit_once(lambda neuron, parts: neuron.pack(parts))
_unpacked = jit_once(lambda neuron, theta: neuron.unpack(theta))


def _check_size(D: int, neuron: AbstractNeuron) -> None:  # noqa: N803 (theory's name)
    fewest = neuron.size(1)
    if neuron.size(max(1, D - neuron.size(0))) != D:
        allowed = f"D = {fewest}" + ("" if neuron.size(2) == fewest else " or more")
        raise ValueError(f"Particles(theta) must have {allowed} columns for {shown(neuron)}, got {D}.")


def _check_values(theta: Array, weights: Array, alpha: Array) -> None:
    finite("Particles(theta)", theta)
    if not (np.isfinite(alpha) & (np.asarray(alpha) > 0)).all():
        raise ValueError(f"Particles(alpha) must be a number > 0, got {alpha}.")
    checked = finite("Particles(weights)", weights)
    # half the digits: every weight is rounded, and n of them are summed
    if (checked < 0).any() or not np.allclose(
        checked.sum(-1), 1.0, rtol=0, atol=np.sqrt(np.finfo(theta.dtype).eps)
    ):
        raise ValueError(
            f"Particles(weights) must be >= 0 and sum to 1; the sum is {checked.sum(-1)}, the "
            f"least {checked.min()}. Try weights / weights.sum()."
        )


@eqx.filter_jit
def _predict(particles: Particles, x: Array) -> Array:
    neuron, parts, weights = particles.neuron, particles.parts, particles.weights
    if is_wide(particles.n * neuron.fan, particles.dtype):
        blocks = jax.tree.map(lambda v: in_blocks(v, NEURONS), parts)
        masses = chunked(weights, NEURONS, pad="constant")  # the copies weigh 0
        add = lambda f, block: (
            f + map_rows(lambda x: neuron.weighted_sum(block[0], x, block[1]), x, NEURONS),
            None,
        )
        zero = jnp.zeros(jax.eval_shape(neuron.weighted_sum, parts, x, weights).shape, particles.dtype)
        return particles.alpha * jax.lax.scan(add, zero, (blocks, masses))[0]
    rows = chunk_rows(x.shape[0], particles.n * neuron.fan, x.shape[1], particles.dtype)
    if rows < x.shape[0]:
        parts = neuron.for_chunks(parts)
    return particles.alpha * map_rows(lambda x: neuron.weighted_sum(parts, x, weights), x, rows)


def _fields(rho: Particles) -> Data:
    """θ as it is defined, whatever layout the engine prefers."""
    here = jax.device_get(rho)
    theta = np.ascontiguousarray(here.theta)  # row by row on the disk too
    return {"theta": theta, "weights": here.weights, "alpha": here.alpha, "neuron": rho.neuron}


def _rebuilt(theta: Array, weights: Array, alpha: Array, neuron: AbstractNeuron) -> Particles:
    """As it was stored, with any replica axes in front."""
    _check_size(theta.shape[-1], must_be("neuron", neuron, AbstractNeuron))
    if theta.ndim < 2 or weights.shape != theta.shape[:-1] or alpha.shape != theta.shape[:-2]:
        shapes = f"{theta.shape}, {weights.shape} and {alpha.shape}"
        raise ValueError(
            f"particles need θ (n, D), weights (n,) and one α, each replica's own, got {shapes}."
        )
    return assembled(Particles)(parts=neuron.unpack(theta), weights=weights, alpha=alpha, neuron=neuron)


recorded(Particles, fields=_fields, build=_rebuilt)


def is_cloud(state: object) -> TypeIs[Particles]:
    """Whether a state is a cloud of neurons."""
    return isinstance(state, Particles)
