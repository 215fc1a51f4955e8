"""Newton's method with conjugate gradients for the energy of particles plus a quadratic."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from ..._typing import Scalar

_MOST = 200  # Newton steps; a handful are usual
_MOST_INNER = 100  # conjugate-gradient steps for each
_FORCING = 1e-3  # each Newton equation is solved to this fraction of its right-hand side
_HALVINGS = 40
_ARMIJO = 1e-4
_INSIDE = 0.9  # of the way to where the order of particles would break


class AbstractObjective(eqx.Module):
    """A function of parts, with its gradient in the metric ⟨p, q⟩ = Σ_j weights_j p_j q_j (neurons lie on the
    last axis): a particle's weight does not enter its own gradient."""

    @abc.abstractmethod
    def value(self, parts: PyTree) -> Float[Array, ""]:
        """The function to be minimised."""

    @abc.abstractmethod
    def gradient(self, parts: PyTree) -> PyTree:
        """Its gradient in the metric."""

    @abc.abstractmethod
    def precondition(self, parts: PyTree, residual: PyTree) -> PyTree:
        """P⁻¹ residual, P a positive part of the second derivative, self-adjoint in the metric."""

    @abc.abstractmethod
    def reach(self, parts: PyTree, direction: PyTree) -> Float[Array, ""]:
        """How far one may go in this direction, inf if anywhere."""

    @abc.abstractmethod
    def inner(self, p: PyTree, q: PyTree) -> Float[Array, ""]:
        """⟨p, q⟩ in the metric."""


class Iterate(NamedTuple):
    """A point with its value and gradient, the norm of P⁻¹ gradient there (the error in θ, roughly), the
    steps it took, and whether no further one went down."""

    parts: PyTree
    value: Float[Array, ""]
    gradient: PyTree
    residual: Float[Array, ""]
    steps: Int[Array, ""]
    stuck: Bool[Array, ""]


def minimise(objective: AbstractObjective, start: PyTree, tol: Array) -> Iterate:
    """A minimum near `start`, to |P⁻¹ gradient| ≤ tol. Where the second derivative is not positive the step
    is cut short (truncated conjugate gradients), so that the value never rises beyond its rounding."""

    def at(parts: PyTree, value: Array, steps: Array, stuck: Array) -> Iterate:
        gradient = objective.gradient(parts)
        direction = objective.precondition(parts, gradient)
        size = jnp.sqrt(objective.inner(direction, direction))
        return Iterate(parts, value, gradient, size, steps, stuck)

    def unfinished(iterate: Iterate) -> Array:
        return (iterate.residual > tol) & (iterate.steps < _MOST) & ~iterate.stuck

    def step(iterate: Iterate) -> Iterate:
        parts, value, stuck = _line_search(objective, iterate, _newton_direction(objective, iterate.parts))
        return at(parts, value, iterate.steps + 1, stuck)

    none = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    return jax.lax.while_loop(unfinished, step, at(start, objective.value(start), *none))


def _add(p: PyTree, q: PyTree, by: Scalar) -> PyTree:
    return jax.tree.map(lambda p, q: p + by * q, p, q)


def _newton_direction(objective: AbstractObjective, parts: PyTree) -> PyTree:
    """d with H d ≈ −gradient."""
    gradient, curve = jax.linearize(objective.gradient, parts)
    inner, precondition = objective.inner, lambda r: objective.precondition(parts, r)
    r = jax.tree.map(jnp.negative, gradient)
    z = precondition(r)
    rz = inner(r, z)
    zero = jax.tree.map(jnp.zeros_like, parts)
    # the search direction p, the solution so far, its residual, and whether to continue
    begin = (z, zero, r, rz, jnp.zeros((), jnp.int32), jnp.ones((), bool))

    def body(loop: PyTree) -> PyTree:
        p, d, r, rz_now, k, _ = loop
        image = curve(p)
        bend = inner(p, image)
        positive = bend > 0
        by = jnp.where(positive, rz_now / jnp.where(positive, bend, 1.0), 0.0)
        # if already the first direction has no positive curvature, take it downhill
        by = jnp.where(positive | (k > 0), by, 1.0)
        d, r = _add(d, p, by), _add(r, image, -by)
        z = precondition(r)
        rz_next = inner(r, z)
        on = positive & (rz_next > _FORCING**2 * rz)
        return _add(z, p, rz_next / jnp.where(rz_now > 0, rz_now, 1.0)), d, r, rz_next, k + 1, on

    return jax.lax.while_loop(lambda loop: loop[5] & (loop[4] < _MOST_INNER), body, begin)[1]


def _line_search(
    objective: AbstractObjective, iterate: Iterate, direction: PyTree
) -> tuple[PyTree, Array, Array]:
    """parts + s · direction with a value that falls enough, s = 1 if it may be; whether none was found."""
    slope = objective.inner(iterate.gradient, direction)
    slack = 32 * jnp.finfo(iterate.value.dtype).eps * jnp.abs(iterate.value)  # the value's own rounding
    first = jnp.minimum(1.0, _INSIDE * objective.reach(iterate.parts, direction)).astype(iterate.value.dtype)

    def halved(loop: PyTree) -> PyTree:
        s, k, _, _ = loop
        value = objective.value(_add(iterate.parts, direction, s / 2))
        return s / 2, k + 1, value, value <= iterate.value + _ARMIJO * s / 2 * slope + slack

    loop = (2 * first, jnp.zeros((), jnp.int32), iterate.value, jnp.zeros((), bool))
    loop = jax.lax.while_loop(lambda loop: ~loop[3] & (loop[1] < _HALVINGS), halved, loop)
    s, _, value, good = loop
    parts = _add(iterate.parts, direction, jnp.where(good, s, 0.0))
    return parts, jnp.where(good, value, iterate.value), ~good
