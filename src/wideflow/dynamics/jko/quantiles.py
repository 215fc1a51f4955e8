"""The minimising movement on the line, in quantiles: W2 is exact, the entropy included."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, PyTree

from ...problems.radial import room
from .newton import AbstractObjective, minimise
from .proximal import Movement, check_particles
from .scheme import AbstractScheme, Moved, tolerance

_FEWEST = 4


class Rule(NamedTuple):
    """Distances Δz_k of neighbouring Gaussian quantiles, and the weights c_k of the gaps, Σ c_k = 1."""

    gaps: Float[Array, " n-1"]
    weights: Float[Array, " n-1"]


@jax.jit
def gap_rule(weights: Float[Array, " n"]) -> Rule:
    """The quadrature of ∫log T'(z)γ(dz), γ = N(0, 1), from differences of an increasing T at the quantiles
    z_j of γ, standardised to Σ w_j z_j = 0, Σ w_j z_j² = 1.

    The weight of gap k is c_k = Δz_k φ_k, φ_k = −Σ_{j≤k} w_j z_j (the Gaussian density there, as φ' = −zφ).
    It is well balanced: the gradient of Σ c_k log ΔT_k at an affine T is that of the
    continuum, −w_j z_j/T', so that Gaussians stay Gaussian exactly, tails beyond the last particles included;
    and Σ c_k = Σ w_j z_j² = 1. For other laws the error is of
    second order in the gaps and, from the tails, about 1/n."""
    n = weights.shape[0]
    left = jnp.arange(n) < n // 2
    # from the nearer end, as small weights at the other one would be rounded away
    below, above = jnp.cumsum(weights), jnp.cumsum(weights[::-1])[::-1]
    z = jnp.where(left, ndtri(below - weights / 2), -ndtri(above - weights / 2))
    z = z - jnp.sum(weights * z)
    z = z / jnp.sqrt(jnp.sum(weights * z**2))
    moment = weights * z
    phi = jnp.where(left, -jnp.cumsum(moment), jnp.cumsum(moment[::-1])[::-1] - moment)[:-1]
    gaps = jnp.diff(z)
    return Rule(gaps, gaps * phi)


@eqx.filter_jit
def line_entropy(theta: Float[Array, " n"], weights: Float[Array, " n"]) -> Float[Array, ""]:
    """S = ∫log T' dγ + ½log(2πe) of the law whose quantiles the particles are, T the increasing map from
    γ = N(0, 1) to it."""
    order = jnp.argsort(theta)
    rule = gap_rule(weights[order])
    spread = jnp.sum(rule.weights * jnp.log(jnp.diff(theta[order]) / rule.gaps))
    return spread + 0.5 * math.log(2 * math.pi * math.e)


class LineMovement(AbstractObjective):
    """The movement of sorted particles with −S/β beside it."""

    movement: Movement
    rule: Rule
    beta: Array

    def _line(self, parts: PyTree) -> Array:
        return self.movement.start.neuron.pack(parts)[:, 0]

    def _parts(self, line: Array) -> PyTree:
        return self.movement.start.neuron.unpack(line[:, None])

    def value(self, parts):
        entropy = jnp.sum(self.rule.weights * jnp.log(jnp.diff(self._line(parts))))
        return self.movement.value(parts) - entropy / self.beta

    def gradient(self, parts):
        pressure = self.rule.weights / jnp.diff(self._line(parts)) / self.beta
        force = jnp.diff(pressure, prepend=0.0, append=0.0)  # minus the gradient of S/β, as S grows with gaps
        entropic = self._parts(force / self.movement.start.weights)
        return jax.tree.map(jnp.add, self.movement.gradient(parts), entropic)

    def precondition(self, parts, residual):
        """P = 1/τ + the second derivative of −S/β, which is tridiagonal."""
        weights = self.movement.start.weights
        stiff = self.rule.weights / jnp.diff(self._line(parts)) ** 2 / self.beta
        zero = jnp.zeros(1, stiff.dtype)
        diagonal = weights / self.movement.step + jnp.append(stiff, zero) + jnp.append(zero, stiff)
        solved = jax.lax.linalg.tridiagonal_solve(
            jnp.append(zero, -stiff),
            diagonal,
            jnp.append(-stiff, zero),
            (weights * self._line(residual))[:, None],
        )
        return self._parts(solved[:, 0])

    def reach(self, parts, direction):
        gaps, change = jnp.diff(self._line(parts)), jnp.diff(self._line(direction))
        return jnp.minimum(room(gaps, change), self.movement.reach(parts, direction))

    def inner(self, p, q):
        return self.movement.inner(p, q)


class Quantiles(AbstractScheme):
    """X⁺ = argmin G(X⁺) − S(X⁺)/β + Σ_j w_j |X⁺_j − X_j|²/(2τ) over particles in the order of X.

    Particle j is the quantile of the law at the level in the middle of its weight, so that the sum is W2²
    of the laws; S is taken by `gap_rule`, exact for Gaussians and to about 1/n for others.
    Convex where Ψ_λ is; the line search keeps the order."""

    tol: float | None = None

    def check(self, state, step, beta):
        check_particles(state)
        if state.n < _FEWEST:
            raise ValueError(f"JKO with noise on the line needs {_FEWEST} particles or more, got {state.n}.")
        places = np.sort(np.asarray(state.theta)[:, 0])
        same = int((np.diff(places) <= 0).sum())
        if same:
            raise ValueError(
                f"JKO with noise on the line takes particles as quantiles of a density, but {same} of "
                f"{state.n} are at the place of another. Start from distinct ones, as law.nodes(n) has."
            )
        if not state.neuron.is_flat and (places <= 0).any():
            raise ValueError("JKO with noise needs radii > 0.")

    def move(self, G, state, step, beta, key):  # noqa: N803
        order = jnp.argsort(state.theta[:, 0])
        back = jnp.argsort(order)
        pick = lambda parts, places: jax.tree.map(lambda p: p[..., places], parts)
        ranked = eqx.tree_at(
            lambda s: (s.parts, s.weights), state, (pick(state.parts, order), state.weights[order])
        )
        movement = Movement(G, ranked, step.astype(state.dtype))
        objective = LineMovement(movement, gap_rule(ranked.weights), beta.astype(state.dtype))
        scale = jnp.maximum(1.0, jnp.sqrt(objective.inner(ranked.parts, ranked.parts)))
        tol = tolerance(self.tol, state.dtype) * scale
        minimum = minimise(objective, ranked.parts, tol)
        return Moved(state.with_parts(pick(minimum.parts, back)), minimum.residual, minimum.residual <= tol)
