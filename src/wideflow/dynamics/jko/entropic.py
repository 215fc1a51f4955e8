"""The minimising movement on a grid, with entropic transport in the log domain."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from ..._typing import Scalar
from ...states.grid import GridDensity
from .scheme import AbstractScheme, Moved, tolerance

_MOST = 2000  # rounds of scaling
_LEAST_DAMPING = 1 / 256
_TILE = 2**21  # numbers at once in a blur


class Blur(NamedTuple):
    """ε; the diffusion ε/(2τ) that the blur adds to each step; and how much of it is too much, the bias:
    ε/(2τ) − 1/β where positive, else 0."""

    epsilon: Scalar
    diffusion: Scalar
    bias: Scalar


def blur_of(state: GridDensity, step: Scalar, beta: Scalar, epsilon: Scalar | None) -> Blur:
    """What ε is for this grid (by default max(τ/β, h²), h the largest cell of a trained axis), and what it
    does."""
    if not any(state.moves):
        raise ValueError("JKO has nothing to move: no coordinate of this neuron is trained.")
    h = _largest_cell(state)
    epsilon = jnp.maximum(step / beta, h**2) if epsilon is None else jnp.asarray(epsilon)
    return Blur(epsilon, epsilon / (2 * step), jnp.maximum(0.0, epsilon / (2 * step) - 1 / beta))


def _largest_cell(state: GridDensity) -> Array:
    return jnp.max(state.widths[np.flatnonzero(state.moves)]).astype(jnp.result_type(float))


class Entropic(AbstractScheme):
    """γ = argmin (1/τ)(Σ γ(θ, θ')|θ − θ'|²/2 + ε KL(γ | ρ_k ⊗ dθ')) + G(ρ) + κ∫ρ log ρ, first marginal ρ_k,
    second marginal ρ, the next one.

    Entropic transport blurs: without G each step adds the variance ε to every trained axis, a diffusion
    ε/(2τ). That much is taken out of the entropy of F, κ = max(0, 1/β − ε/(2τ)): for ε ≤ 2τ/β what is left
    of the bias is of order τ, like the error of the movement itself; beyond, the diffusion is too large by
    ε/(2τ) − 1/β, at β = ∞ by all of ε/(2τ) (see `JKO.blur`).

    γ = a(θ)e^{−|θ−θ'|²/(2ε)}b(θ'), a = ρ_k/(Kb), b = ((Kᵀa)^{−κ}e^{−Ψ_λ})^{1/(ε/τ + κ)}, ρ = b Kᵀa,
    with Ψ_λ taken at ρ itself: one damped fixed point for log b, all in logarithms. K acts axis by axis;
    nothing of size cells × cells is stored. Mass is kept to rounding, and ρ ≥ 0."""

    epsilon: Scalar
    tol: float | None = None

    def check(self, state, step, beta):
        h, epsilon = float(_largest_cell(state)), float(self.epsilon)
        if epsilon < h**2 / 2:
            raise ValueError(
                f"JKO(epsilon={epsilon:.3g}) blurs by less than a cell of size {h:.3g}, across which no mass "
                f"would pass; allowed is {h**2 / 2:.3g} or more. Use more cells, or epsilon=None."
            )

    def move(self, G, state, step, beta, key):  # noqa: N803
        per_step = self.epsilon / step  # ε/τ
        kappa = jnp.maximum(0.0, 1 / beta - per_step / 2)
        blur = _Kernel(state, self.epsilon)
        before = jnp.log(state.mass)  # −inf where there is no mass
        theta, shape, tol = state.theta, state.mass.shape, tolerance(self.tol, state.dtype)

        def scaled(log_b: Array) -> tuple[Array, Array]:
            """log Kᵀa and log ρ."""
            spread = blur(before - blur(log_b))
            return spread, log_b + spread

        def wanted(spread: Array, log_rho: Array) -> Array:
            psi = G.potential(theta, state.with_mass(jnp.exp(log_rho))).reshape(shape)
            return ((-kappa * spread - psi) / (per_step + kappa)).astype(state.dtype)

        def residual(log_b: Array) -> tuple[Array, Array]:
            spread, log_rho = scaled(log_b)
            rho, change = jnp.exp(log_rho), wanted(spread, log_rho) - log_b
            change = change - jnp.sum(rho * change)  # a constant factor of b can be moved into a
            return change, jnp.sum(rho * jnp.abs(change))

        def turn(loop: _Turn) -> _Turn:
            log_b = loop.log_b + loop.damping * loop.change
            change, size = residual(log_b)
            slower = jnp.maximum(loop.damping / 2, _LEAST_DAMPING)
            damping = jnp.where(size < loop.size, jnp.minimum(1.0, 1.1 * loop.damping), slower)
            return _Turn(log_b, change, size, damping.astype(state.dtype), loop.k + 1)

        log_b = wanted(jnp.zeros_like(before), before)
        first = _Turn(log_b, *residual(log_b), jnp.ones((), state.dtype), jnp.zeros((), jnp.int32))
        last = jax.lax.while_loop(lambda loop: (loop.size > tol) & (loop.k < _MOST), turn, first)
        rho = jnp.exp(scaled(last.log_b)[1])
        return Moved(state.with_mass(rho), last.size, last.size <= tol)


class _Turn(NamedTuple):
    log_b: Array
    change: Array
    size: Array
    damping: Array
    k: Array


class _Kernel:
    """f ↦ log Σ_θ' e^{−|θ−θ'|²/(2ε)} e^{f(θ')}, one trained axis after the other."""

    def __init__(self, state: GridDensity, epsilon: Scalar):
        self.axes: dict[int, Float[Array, "N N"]] = {}
        for i, moves in enumerate(state.moves):
            if moves:
                places = state.axis(i)
                self.axes[i] = (-((places[:, None] - places) ** 2) / (2 * epsilon)).astype(state.dtype)

    def __call__(self, f: Array) -> Array:
        for i, kernel in self.axes.items():
            lines = jnp.moveaxis(f, i, 0)
            row = lambda k, lines=lines: logsumexp(k.reshape((-1,) + (1,) * (lines.ndim - 1)) + lines, axis=0)
            blurred = jax.lax.map(row, kernel, batch_size=max(1, _TILE // f.size))
            f = jnp.moveaxis(blurred, 0, i)
        return f
