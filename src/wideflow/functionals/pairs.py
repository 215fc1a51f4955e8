"""Expectations in closed form: for Gaussian x and the squared loss, V and U are dual activations."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from .._shown import shown
from .._typing import DType, Scalar
from ..problems.activations import Activation
from ..problems.dual_quadrature import gauss_mean, quadrature_dual
from ..problems.dual_series import series_dual
from ..problems.duals import closed_dual, closed_mean
from ..problems.laws import Gaussian
from ..problems.neurons import Neuron, is_ridge
from ..problems.problem import Problem
from ..problems.targets import Ridges
from ..states.chunks import in_blocks, joined
from ..states.particles import Particles

# Pairs of neurons held at once: 2¹⁹ keeps a block of U and its cotangents near the cache (measured).
_PAIRS = 2**19
# Terms or nodes for E φ*(u)φ(v) where the link φ* and the neuron's φ have no common closed form.
ORDER = 128


def why_not(problem: Problem, numeric: bool = False) -> str | None:
    """Why the risk of this problem has no closed form here; None if it has one. `numeric`: the neuron's own
    dual may be one by a series or by quadrature."""
    neuron = problem.neuron
    if not problem.loss.is_squared:
        return f"the loss is {type(problem.loss).__name__}, not squared"
    if problem.x.gaussians() is None:
        return f"x is {type(problem.x).__name__}, not Gaussian"
    if not is_ridge(neuron):
        return "the neuron is not of the form a φ(⟨w, x⟩)"
    if neuron.bias or neuron.outputs > 1:
        return "the neuron has a bias or several outputs"
    if not numeric and closed_dual(neuron.activation, neuron.activation) is None:
        name = shown(neuron.activation.name)
        return f"the activation {name} has no dual in closed form (see ClosedForm(order))"
    if problem.target is not None and not isinstance(problem.target, Ridges):
        return "the target is not a sum of ridge functions"
    if problem.target is not None and problem.target.b is not None:
        return "the target has biases"
    return None


def _like(number: Scalar, like: Array) -> Array:
    return jnp.asarray(number, like.dtype)


class Pairs(eqx.Module):
    """R = ½E[y²] + α∫V dρ + ½α²∬U dρdρ with, over the Gaussian components c of the law of x,

        V(θ) = −a Σ_c p_c E_c[y φ(⟨w, x⟩)],   U(θ, θ') = aa' Σ_c p_c E_c[φ(⟨w, x⟩)φ(⟨w', x⟩)].

    Cost n², in blocks of neurons against all neurons."""

    problem: Problem
    order: int = eqx.field(static=True, default=ORDER)

    # `why_not` has made sure that neuron and target are of these kinds.

    @property
    def _phi(self) -> Activation:
        return cast(Neuron, self.problem.neuron).activation

    @property
    def _target(self) -> Ridges | None:
        return cast(Ridges | None, self.problem.target)

    def _gaussians(self) -> Any:
        return self.problem.x.gaussians()

    def without_dual(self) -> list[str]:
        """The pairs of link and activation whose dual is taken by a series or by quadrature."""
        phi, target = self._phi, self._target
        pairs = [(phi, phi)] + ([] if target is None else [(target.link, phi), (target.link, target.link)])
        return list(dict.fromkeys(f"{a.name}–{b.name}" for a, b in pairs if closed_dual(a, b) is None))

    def _dual(self, phi1: Activation, phi2: Activation, q1: Array, q2: Array, q12: Array) -> Array:
        closed = closed_dual(phi1, phi2)
        if closed:
            return closed(q1, q2, q12)
        numeric = quadrature_dual if phi1.kinks or phi2.kinks else series_dual
        return numeric(phi1, phi2, q1, q2, q12, self.order)

    def _label_overlap(self, gaussian: Gaussian, label: Any, w: Array) -> Float[Array, " k"]:
        """E[y φ(⟨w_i, x⟩)] under one Gaussian."""
        phi, target = self._phi, self._target
        white = gaussian.adjoint(w)
        q = jnp.sum(white**2, axis=-1)
        if target is None:
            mean = closed_mean(phi) or partial(gauss_mean, phi, order=self.order)
            return _like(label, q) * mean(jnp.zeros_like(q), q)
        directions = gaussian.adjoint(target.directions(self.problem.d, w.dtype))
        q_star = jnp.sum(directions**2, axis=-1)
        overlaps = self._dual(target.link, phi, q_star, q[:, None], white @ directions.T)
        return overlaps @ target.a.astype(w.dtype)

    def v(self, parts: PyTree) -> Float[Array, " k"]:
        """V(θ_i)."""
        w = parts.w.T
        overlaps = [_like(p, w) * self._label_overlap(g, label, w) for p, g, label in self._gaussians()]
        total = sum(overlaps, start=jnp.zeros((), w.dtype))
        return -total if parts.a is None else -parts.a * total

    def u(self, parts: PyTree, others: PyTree) -> Float[Array, "k l"]:
        """U(θ_i, θ'_j)."""
        phi, total = self._phi, jnp.zeros((), parts.w.dtype)
        for p, gaussian, _ in self._gaussians():
            left, right = gaussian.adjoint(parts.w.T), gaussian.adjoint(others.w.T)
            q1, q2 = jnp.sum(left**2, axis=-1), jnp.sum(right**2, axis=-1)
            total = total + _like(p, q1) * self._dual(phi, phi, q1[:, None], q2, left @ right.T)
        return total if parts.a is None else parts.a[:, None] * total * others.a

    def psi(self, parts: PyTree, particles: Particles) -> Float[Array, " k"]:
        """Ψ(θ_i; ρ) = V(θ_i) + α∫U(θ_i, ·)dρ."""
        return self.v(parts) + particles.alpha * (self.u(parts, particles.parts) @ particles.weights)

    def half_square(self, dtype: DType) -> Float[Array, ""]:
        """½E[y²], label noise included."""
        target, total = self._target, jnp.zeros((), dtype)
        for p, gaussian, label in self._gaussians():
            if target is None:
                total = total + p * label**2
                continue
            directions = gaussian.adjoint(target.directions(self.problem.d, dtype))
            q, a = jnp.sum(directions**2, axis=-1), target.a.astype(dtype)
            gram = self._dual(target.link, target.link, q[:, None], q, directions @ directions.T)
            total = total + p * (a @ gram @ a)
        return (0.5 * (total + self.problem.noise**2)).astype(dtype)

    @staticmethod
    def in_blocks(fn: Callable[[PyTree], PyTree], parts: PyTree, n: int) -> PyTree:
        """fn over blocks of neurons, so that one block × n pairs are held at once."""
        k = jax.tree.leaves(parts)[0].shape[-1]
        size = max(1, min(k, _PAIRS // n))
        if size == k:
            return fn(parts)
        out = jax.lax.map(fn, jax.tree.map(lambda p: in_blocks(p, size), parts))
        return jax.tree.map(lambda o: joined(o, k), out)

    @eqx.filter_jit
    def value(self, particles: Particles) -> Float[Array, ""]:
        """R = ½E[y²] + ½α∫(V + Ψ)dρ."""
        both = lambda block: self.v(block) + self.psi(block, particles)
        total = self.in_blocks(both, particles.parts, particles.n) @ particles.weights
        return self.half_square(particles.dtype) + 0.5 * particles.alpha * total

    def magnitude(self, particles: Particles) -> Float[Array, ""]:
        """½E[y²] + α∫|V|dρ + ½(α∫√U(θ, θ)dρ)², at least what the terms of the risk add up to without
        cancelling (|U(θ, θ')|² ≤ U(θ, θ)U(θ', θ')), so that rounding is a few units in the last place of this
        number."""
        sizes = jnp.sqrt(jnp.maximum(on_diagonal(self.u, particles.parts), 0.0))
        return self.bound(particles, jnp.abs(self.v(particles.parts)), sizes)

    def bound(self, at: Particles, overlaps: Array, sizes: Array) -> Float[Array, ""]:
        """½E[y²] + α∫overlaps dρ + ½(α∫sizes dρ)²."""
        square = 0.5 * (at.alpha * (sizes @ at.weights)) ** 2
        return self.half_square(at.dtype) + at.alpha * (overlaps @ at.weights) + square

    @eqx.filter_jit
    def potential(self, parts: PyTree, particles: Particles) -> Float[Array, " k"]:
        """Ψ(θ_i; ρ), blocked."""
        return self.in_blocks(lambda block: self.psi(block, particles), parts, particles.n)

    def drift(self, particles: Particles, scale: Scalar = 1.0) -> PyTree:
        """−(scale/α)∇Ψ at every particle."""

        def force(block):
            gradient = jax.grad(lambda block: jnp.sum(self.psi(block, particles)))(block)
            return jax.tree.map(lambda g: -(scale / particles.alpha) * g, gradient)

        forces = self.in_blocks(force, particles.parts, particles.n)
        trained = particles.neuron.trained(particles.parts)
        return jax.tree.map(lambda moves, f: f if moves else jnp.zeros_like(f), trained, forces)


def on_diagonal(fn: Callable[[PyTree, PyTree], Array], parts: PyTree) -> Float[Array, " n"]:
    """fn(θ_i, θ_i) of a function of two families of neurons."""
    alone = lambda v: jax.tree.map(lambda leaf: leaf[..., None], v)
    return jax.vmap(lambda one: fn(alone(one), alone(one))[0, 0], in_axes=-1)(parts)
