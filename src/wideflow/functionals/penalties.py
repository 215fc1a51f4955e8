"""Penalties ∫q(θ)ρ(dθ): linear in ρ, so the first variation is q itself."""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._checks import function
from .._shown import shown
from ..problems.neurons import AbstractNeuron, Ridge
from ..states.measure import is_measure
from ..states.trainable import half_square
from .base import AbstractFunctional


class AbstractPenalty(AbstractFunctional):
    """A functional without an expectation over data."""

    def on(self, nodes):
        return self

    @property
    def problem(self):  # type: ignore[override]
        return None

    @property
    def sample(self):  # type: ignore[override]
        return None


class AbstractIntegral(AbstractPenalty):
    """F(ρ) = ∫q(θ)ρ(dθ). Parts of θ that are not trained feel no force."""

    @abc.abstractmethod
    def q(self, parts: PyTree, neuron: AbstractNeuron) -> Float[Array, ""]:
        """q(θ) of one particle, given in the neuron's parts."""

    def _each(self, parts: PyTree, neuron: AbstractNeuron) -> Float[Array, " n"]:
        return jax.vmap(lambda one: self.q(one, neuron), in_axes=-1)(parts)

    def value(self, state):
        if not is_measure(state):
            raise ValueError(
                f"{type(self).__name__} is a penalty on the law of neurons, ∫q dρ, and takes wf.Particles or "
                f"a wf.GridDensity, not a {type(state).__name__}. For decay of a network's weights use "
                "wf.SecondMoment()."
            )
        return jnp.sum(state.weights * self._each(state.parts, state.neuron))

    def energy(self, particles):
        return self.value(particles)

    def potential(self, theta, particles):
        return self._each(particles.neuron.unpack(theta), particles.neuron)

    def drift(self, state, scale=1.0):
        neuron, parts = state.neuron, state.parts
        force = jax.grad(lambda parts: jnp.sum(self._each(parts, neuron)))(parts)
        trained = neuron.trained(parts)
        return jax.tree.map(lambda moves, f: -scale * f if moves else jnp.zeros_like(f), trained, force)


class SecondMoment(AbstractPenalty):
    """½∫|θ|²dρ over the trained coordinates: the L2 penalty, whose velocity is −θ. For a network of any depth
    it is the energy whose flow, at the rates of its layers, is −W (½Σ|W_l|²/rate_l).

    >>> total = R + 0.1 * wf.SecondMoment()
    >>> bool(total.value(net) > R.value(net))
    True"""

    def value(self, state):
        return state.second_moment()

    def energy(self, particles):
        return particles.second_moment()

    def potential(self, theta, particles):
        parts = particles.neuron.unpack(theta)
        return jax.vmap(lambda one: half_square(one, particles.neuron.trained(one)), in_axes=-1)(parts)

    def decay_split(self):
        return None, 1.0

    def drift(self, state, scale=1.0):
        force = lambda moves, p: -scale * p if moves else jnp.zeros_like(p)
        return jax.tree.map(force, state.trained(), state.position())


def _norm(*vectors: Array) -> Array:
    """Euclidean norm of the joined vectors, with gradient 0 at 0."""
    square = sum(jnp.sum(v**2) for v in vectors)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


class PathNorm(AbstractIntegral):
    """∫|a||(w, b)|dρ, which bounds the variation norm of f/α for a homogeneous φ.

    >>> rho = wf.Particles([[2.0, 3.0, 0.0, 4.0]], neuron=wf.Neuron("relu"))
    >>> float(wf.PathNorm().value(rho))
    10.0"""

    def q(self, parts, neuron):
        if not isinstance(parts, Ridge):
            raise ValueError(
                f"PathNorm needs a neuron a φ(⟨w, x⟩ + b), got {shown(neuron)}; for others use wf.Moment(q)."
            )
        inner = _norm(parts.w) if parts.b is None else _norm(parts.w, parts.b)
        return inner if parts.a is None else _norm(parts.a) * inner


class ReferencePotential(AbstractIntegral):
    """−∫log m dρ̄, m the reference density of the coordinates: for reduced ones −Σ_i (d_i − 1) ∫log r_i dρ̄,
    minus the logarithm of the area of the spheres that particles stand for. 1/β times this is what noise at
    inverse temperature β adds to the reduced energy, so that r_i drifts by (d_i − 1)/(β r_i)."""

    def q(self, parts, neuron):
        return -neuron.log_reference(jax.tree.map(lambda p: p[..., None], parts))[0]


class Moment(AbstractIntegral):
    """∫q(θ)dρ for any differentiable JAX function q of one θ ∈ R^D.

    >>> fourth = wf.Moment(lambda theta: jnp.sum(theta**4))
    >>> bool(jnp.allclose(fourth.value(net), jnp.mean(jnp.sum(net.theta**4, axis=1))))
    True"""

    fn: Callable[[Array], Array] = eqx.field(static=True, converter=lambda fn: function("Moment(fn)", fn))

    def q(self, parts, neuron):
        value = jnp.asarray(self.fn(neuron.pack(jax.tree.map(lambda p: p[..., None], parts))[0]))
        if value.shape != ():
            raise ValueError(f"Moment(fn) must map one θ to one number, got shape {value.shape}.")
        return value
