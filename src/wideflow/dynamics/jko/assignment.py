"""Whether the proximal step of particles is one of W2: the identity is an optimal assignment."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from ...functionals.base import AbstractFunctional
from ...states.particles import Particles

_MOST_SOLVED = 1000  # particles for which the assignment problem is solved
_BLOCK = 2**22  # pairs at once
_MOST_PAIRS = 2**26  # beyond, evenly chosen particles are compared with all the others


class Certificate(NamedTuple):
    """By how much the dual inequality fails at most (0 if it holds), and what rounding explains."""

    violation: Float[Array, ""]
    slack: Float[Array, ""]


@eqx.filter_jit
def certificate(
    G: AbstractFunctional,  # noqa: N803
    before: Particles,
    after: Particles,
    step: Array,
    residual: Array,
) -> Certificate:
    """A proof of optimality that costs one product of n × n inner products.

    The step says θ_j = ∇φ(θ⁺_j), φ = |·|²/2 + τΨ_λ(·; ρ⁺). If for all pairs
    φ(θ⁺_i) ≥ φ(θ⁺_j) + ⟨θ_j, θ⁺_i − θ⁺_j⟩, the dual of the transport problem has the value of the identity,
    which is then optimal, whatever the weights. It holds wherever φ is convex, so for small τ. If it fails
    by δ, the true W2² is at least Σ weights_j |θ⁺_j − θ_j|² − 2δ. Particles whose frozen coordinates
    differ are of different kinds, and are not exchanged. With more than 8192 particles only some of the pairs
    are checked: that is evidence, no longer a proof."""
    theta, moved = before.theta, after.theta
    phi = 0.5 * jnp.sum(moved**2, axis=1) + step.astype(theta.dtype) * G.potential(moved, after)
    rest = phi - jnp.sum(theta * moved, axis=1)
    frozen = jnp.where(jnp.asarray(after.neuron.moves(after.D)), 0.0, moved)

    def row(at: tuple[Array, Array, Array]) -> Array:
        place, value, kind = at
        same = jnp.all(frozen == kind, axis=1)
        return jnp.max(jnp.where(same, theta @ place - value + rest, 0.0))

    some = slice(None, None, -(-(before.n**2) // _MOST_PAIRS))
    worst = jax.lax.map(row, (moved[some], phi[some], frozen[some]), batch_size=max(1, _BLOCK // before.n))
    size = jnp.sqrt(jnp.max(jnp.sum(moved**2, axis=1)))
    # the step is solved up to its residual, which each inequality feels times the distance of the pair
    away = 4 * size * residual / jnp.sqrt(jnp.min(before.weights))
    rounding = 64 * jnp.finfo(theta.dtype).eps * jnp.maximum(jnp.max(jnp.abs(phi)), size**2)
    return Certificate(jnp.maximum(jnp.max(worst), 0.0), away + rounding)


def is_optimal(
    G: AbstractFunctional,  # noqa: N803
    before: Particles,
    after: Particles,
    step: Array,
    residual: Array,
) -> Bool[Array, ""]:
    """Whether the identity is known to be an optimal assignment between the two clouds: by the certificate,
    or, for few particles of equal weight, by solving the assignment problem."""
    proof = certificate(G, before, after, step, residual)
    proved = proof.violation <= proof.slack
    if before.n > _MOST_SOLVED:
        return proved
    moves = np.asarray(after.neuron.moves(after.D))
    solve = lambda *arrays: np.asarray(_is_shortest(moves, *map(np.asarray, arrays)))
    clouds = (before.theta, after.theta, before.weights, proof.slack)
    flag = jax.ShapeDtypeStruct((), bool)
    return jax.lax.cond(
        proved, lambda: proved, lambda: jax.pure_callback(solve, flag, *clouds, vmap_method="sequential")
    )


def _is_shortest(
    moves: np.ndarray, old: np.ndarray, new: np.ndarray, weights: np.ndarray, slack: np.ndarray
) -> bool:
    from scipy.optimize import linear_sum_assignment

    if np.ptp(weights) > 1e-6 * np.max(weights):  # an assignment problem for equal weights only
        return False
    old, new = old.astype(float), new.astype(float)
    cost = 0.5 * ((old[:, None] - new) ** 2).sum(-1)
    frozen = np.where(moves, 0.0, new)
    other = (frozen[:, None] != frozen).any(-1)
    cost = np.where(other, 1e3 * (1 + cost.max()) * len(cost), cost)
    if not np.isfinite(cost).all():
        return True  # a failed step has a message of its own
    rows, columns = linear_sum_assignment(cost)
    return bool(np.trace(cost) - cost[rows, columns].sum() <= slack)
