"""The dissipation identity dF/dt = −∫|∇(Ψ_λ + β⁻¹ log ρ)|²dρ, on grids and on particles without noise."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import positive
from .._tracing import jit, traced
from .._typing import Scalar
from ..dynamics.grid import scharfetter_gummel as sg
from ..functionals.base import AbstractFunctional
from ..functionals.free_energy import FreeEnergy, confining
from ..run import Run
from ..states.grid import GridDensity, is_grid
from ..states.particles import is_cloud
from ..states.state import AbstractState
from .balance import Balance, balance, snapshots


@dataclass(frozen=True)
class DissipationRate:
    """The observer I = ∫|∇(Ψ_λ + β⁻¹ log ρ)|²dρ, by which F falls in unit time.

    On a grid with noise it is Σ J (μ₋ − μ₊) over the faces, J the Scharfetter–Gummel flux and μ = Ψ_λ +
    β⁻¹ log ρ at the centres: exactly what that scheme takes from F, and ≥ 0 face by face. Without noise it is
    Σ ρ (∂Ψ_λ)² with the mean of ρ at the faces, of second order in h. On particles without noise it is
    ∫|velocity|²dρ; with noise log ρ is not known there."""

    functional: AbstractFunctional
    beta: float = math.inf
    decay: float = 0.0

    def __call__(self, t: float, state: AbstractState) -> Scalar:
        beta = positive("beta", self.beta, infinite=True)
        total = traced(confining(self.functional, beta=beta, decay=self.decay))
        if is_grid(state):
            return _on_grid(total, state, jnp.asarray(beta, state.dtype), beta < math.inf)
        if not is_cloud(state):
            raise ValueError(
                f"DissipationRate takes a wf.GridDensity or wf.Particles, got {type(state).__name__}."
            )
        if beta < math.inf:
            raise ValueError(
                "The dissipation of noisy particles needs ∇ log ρ, and a cloud has no density: put the law "
                "on a grid (wf.GridFlow), or test the weak form, "
                "wf.diagnostics.weak_form(run, R, tests, beta=…)."
            )
        return total.dissipation(state)


@jit
def _on_grid(total: AbstractFunctional, rho: GridDensity, beta: Array, noisy: bool) -> Float[Array, ""]:
    psi = total.potential(rho.theta, rho).reshape(rho.mass.shape)
    lost = jnp.zeros((), rho.dtype)
    for i, moves in enumerate(rho.moves):
        if moves:
            mass, along, h = jnp.moveaxis(rho.mass, i, 0), jnp.moveaxis(psi, i, 0), rho.widths[i]
            lost = lost + (_with_noise(mass, along, beta, h) if noisy else _without(mass, along, h))
    return lost


def _with_noise(mass: Array, psi: Array, beta: Array, h: Array) -> Array:
    flux = sg.flux(mass, sg.rates(psi, beta, h))
    tiny = jnp.finfo(mass.dtype).tiny
    level = psi + jnp.log(jnp.maximum(mass, tiny)) / beta
    return -jnp.sum(flux * jnp.diff(level, axis=0))


def _without(mass: Array, psi: Array, h: Array) -> Array:
    return jnp.sum(0.5 * (mass[1:] + mass[:-1]) * (jnp.diff(psi, axis=0) / h) ** 2)


def dissipation(
    run: Run, functional: AbstractFunctional, *, beta: float = math.inf, decay: float = 0.0
) -> Balance:
    """F(t_{k+1}) − F(t_k) beside −∫I dt over each interval of saved times, I as in
    `wf.diagnostics.DissipationRate`. The residual is that of the integral, O(Δt⁴) for saved times Δt apart,
    that of the run's own steps and, on grids without noise, O(h²)."""
    t, states = snapshots("dissipation", run)
    rate = DissipationRate(functional, beta, decay)
    energy = traced(FreeEnergy(functional, beta=beta, decay=decay))
    lost = [-float(rate(float(when), state)) for when, state in zip(t, states, strict=True)]
    return balance(t, [float(_energy(energy, state)) for state in states], lost)


_energy = jit(lambda functional, state: functional.energy(state))
