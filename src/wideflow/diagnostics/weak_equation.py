"""The weak form d/dt ∫q dρ = −∫⟨∇q, ∇Ψ_λ⟩dρ + β⁻¹∫Δq dρ for test functions of your choice."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import function, positive
from .._tracing import jit, traced
from ..functionals.base import AbstractFunctional
from ..functionals.free_energy import confining
from ..run import Run
from ..states.measure import AbstractMeasure, is_measure
from ..states.particles import is_cloud
from ..states.state import AbstractState
from .balance import Balance, balance, snapshots


class Terms(NamedTuple):
    """∫q dρ; −∫⟨∇q, ∇Ψ_λ⟩dρ + β⁻¹∫Δq dρ; and (2/β)Σ_j ω_j²|∇q(θ_j)|², the rate at which the noise of the
    particles adds variance to the first. For each test function."""

    mean: Float[Array, " k"]
    generator: Float[Array, " k"]
    variance: Float[Array, " k"]


def weak_form(
    run: Run,
    functional: AbstractFunctional,
    tests: Callable[[Array], Array] | Iterable[Callable[[Array], Array]],
    *,
    beta: float = math.inf,
    decay: float = 0.0,
) -> Balance:
    """The weak form over each interval of saved times, for test functions q(θ) of one θ ∈ R^D (JAX functions,
    twice differentiable); a column for each of them.

    On a grid the residual is O(h²), as long as no mass is at the boundary, beside that of the time integral.
    On particles without noise the flow solves the weak form exactly. With noise n particles miss it by
    √(2/β ∫Σω_j²|∇q|²dt), the exact standard error of the martingale that is left: `standardised` is then
    nearly N(0, 1) in each interval, and independent between intervals."""
    t, states = snapshots("weak_form", run)
    chosen = tuple(function("weak_form(tests)", q) for q in ([tests] if callable(tests) else tests))
    if not chosen:
        raise ValueError("weak_form(tests) needs one function q(θ) or more, such as lambda z: z[0] ** 2.")
    beta = positive("beta", beta, infinite=True)
    total = traced(confining(functional, beta=beta, decay=decay))
    rows = [terms(total, chosen, state, 1 / beta) for state in states]
    mean, generator, variance = (np.stack([np.asarray(row[i]) for row in rows]) for i in range(3))
    noisy = is_cloud(states[0]) and beta < math.inf
    return balance(t, mean, generator, variance if noisy else None)


def terms(
    total: AbstractFunctional, tests: tuple[Callable, ...], state: AbstractState, temperature: float
) -> Terms:
    """The terms of the weak form at one state; `total` has the first variation Ψ_λ."""
    if not is_measure(state):
        raise ValueError(f"weak_form is about wf.Particles and wf.GridDensity, not a {type(state).__name__}.")
    point = jax.ShapeDtypeStruct((state.D,), state.dtype)
    for q in tests:
        shape = jax.eval_shape(q, point).shape
        if shape != ():
            raise ValueError(
                f"weak_form(tests) must map one θ in R^{state.D} to one number, got shape {shape}."
            )
    return _terms(total, tests, state, jnp.asarray(temperature, state.dtype))


@jit
def _terms(
    total: AbstractFunctional, tests: tuple[Callable, ...], state: AbstractMeasure, temperature: Array
) -> Terms:
    theta, weights, moves = state.theta, state.weights, jnp.asarray(state.neuron.moves(state.D), state.dtype)
    velocity = _velocity(total, state) * moves
    rows = []
    for q in tests:
        slope = jax.vmap(jax.grad(q))
        gradient = slope(theta) * moves
        along = jnp.sum(gradient * velocity, axis=1) + temperature * _laplacian(slope, theta, moves)
        noise = 2 * temperature * jnp.sum(weights**2 * jnp.sum(gradient**2, axis=1))
        rows.append((weights @ jax.vmap(q)(theta), weights @ along, noise))
    return Terms(*(jnp.stack(column) for column in zip(*rows, strict=True)))


def _laplacian(slope: Callable, theta: Array, moves: Array) -> Array:
    """Δq over the trained coordinates, one after the other: nothing of size n × D × D is stored."""

    def second(i):
        unit = jnp.zeros(theta.shape[1], theta.dtype).at[i].set(1.0)
        return jax.jvp(slope, (theta,), (jnp.broadcast_to(unit, theta.shape),))[1][:, i] * moves[i]

    return jnp.sum(jax.lax.map(second, jnp.arange(theta.shape[1])), axis=0)


def _velocity(total: AbstractFunctional, state: AbstractMeasure) -> Float[Array, "n D"]:
    """−∇Ψ_λ at the particles, or at the centres of the cells (there through the nodes)."""
    if is_cloud(state):
        return state.joined(total.drift(state))
    return -jax.grad(lambda theta: jnp.sum(total.potential(theta, state)))(state.theta)
