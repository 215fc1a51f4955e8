"""The distributional dynamics on a grid."""

import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from ..._checks import count, positive
from ...functionals.base import AbstractFunctional
from ...functionals.free_energy import FreeEnergy, physics_of
from ...states.grid import GridDensity, is_grid
from ..adaptive import AbstractAdaptive, Attempt, clipped
from .steps import AbstractStep, Cells, DriftDiffusion, Transport

_EXCESS = 3.0  # diffusion by the grid, as a fraction of 1/β, that is worth a warning
_AT_BOUNDARY = 1e-5  # mass in the outermost cells that is worth a warning
_ROUNDINGS = 64  # of the free energy, within which two values are one
_FIRST = 1e-3  # the first step


class GridMemory(eqx.Module):
    """The next step, the potential and the free energy of the last accepted density, and the most mass that
    has ever been in the outermost cells."""

    dt: Float[Array, ""]
    potential: Float[Array, "..."]
    energy: Float[Array, ""]
    boundary: Float[Array, ""]


class GridFlow(AbstractAdaptive):
    """∂tρ = ∇·(ρ∇Ψ_λ(θ; ρ)) + β⁻¹Δρ for a `wf.GridDensity`, Ψ_λ = Ψ/α + λ|θ|²/2: finite volumes without flux
    through the boundary.

    With noise (β < ∞) Scharfetter–Gummel fluxes, implicit in ρ and of any step size; ρ ∝ e^{−βΨ_λ} is kept
    exactly. Without, upwind fluxes of second order. The potential is that of the density at the start of each
    sub-step, through the nodes of the functional's expectation: cells × nodes, never cells × cells. Every
    accepted step keeps masses positive, their sum 1 and lowers F = R/α² + (λ/2)∫|θ|²dρ − S/β; its estimated
    error in L1 is below `tol`. The steps do not depend on the saved times: a density between two steps comes
    from a shorter one (of two such, the later may have the larger F, by far less than `tol`). On a reduced
    problem noise brings the drift (d_i − 1)/(βr_i) of the radius of each block of dimension d_i. A run
    records F as `free_energy`. λ and β are those of the functional, a `wf.FreeEnergy(R, beta=…, decay=…)`, or
    given here. A run that needs more than `max_steps` steps stalls.

    Of second order in the cells' size h as long as β|∇Ψ|h ≲ 2; beyond, mass diffuses by |∇Ψ|h/2 more:
    `run.info["grid_diffusion"]` is the mean of that over 1/β.

    >>> run = wf.evolve(wf.GridFlow(F), density, ts)
    >>> run["free_energy"].round(3)
    array([-0.02 , -0.033, -0.044])"""

    functional: FreeEnergy
    scheme: AbstractStep
    tol: float
    max_steps: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    sources: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        functional: AbstractFunctional,
        *,
        beta: float | None = None,
        decay: float = 0.0,
        tol: float = 1e-6,
        max_steps: int = 1_000_000,
    ):
        plain, beta = physics_of("GridFlow", functional, beta, decay)
        self.functional = FreeEnergy(plain, beta=math.inf if beta is None else beta)
        beta, noisy = self.functional.beta, self.functional.is_noisy
        self.scheme = DriftDiffusion(beta) if noisy else Transport()
        self.tol = positive("GridFlow(tol)", tol)
        self.max_steps = count("max_steps", max_steps)
        self.name = "GridFlow"
        papers = ("scharfetter1969", "chizat2018") if noisy else ("koren1993", "chizat2018")
        self.sources = (*papers, "jordan1998")

    def check_state(self, state):
        if not is_grid(state):
            kind = type(state).__name__
            raise ValueError(
                f"GridFlow moves a wf.GridDensity, got a {kind}. Put a law or a cloud on a grid: "
                "wf.on_grid(law, low, high, cells)."
            )

    def at(self, state):
        """Cells do not move, so that their features are taken once."""
        return eqx.tree_at(lambda flow: flow.functional, self, self.functional.on_cells(state))

    def begin(self, state):
        zero, k = jnp.zeros((), state.dtype), jnp.zeros((), jnp.int32)
        first = self._potential(state)(state.mass)
        dt = jnp.minimum(jnp.asarray(_FIRST, state.dtype), self.scheme.longest(first, _cells(state)))
        return Attempt(zero, state.mass, GridMemory(dt, first, self._energy(state), zero), k, k)

    def step_size(self, now):
        return now.memory.dt

    def passed(self, now, t1):
        return now.t + now.memory.dt > t1

    def with_value(self, state, value):
        return state.with_mass(value)

    def is_finite(self, carry):
        return jnp.isfinite(carry.attempt.memory.energy)

    def attempted(self, state, now, t1, clip):
        grid, before = _cells(state), now.memory
        dtype, potential = now.t.dtype, self._potential(state)
        eps = jnp.finfo(dtype).eps
        # below this, rounding of the masses dominates the estimate
        tol = jnp.maximum(jnp.asarray(self.tol, dtype), 64 * eps)
        dt = jnp.where(clip, jnp.minimum(before.dt, t1 - now.t), before.dt)
        mass, error = self.scheme(now.value, before.potential, potential, grid, dt)
        new = mass / jnp.sum(mass)
        density = state.with_mass(new)
        energy, phi = self._energy(density), potential(new)
        lowers = energy <= before.energy + _ROUNDINGS * eps * (jnp.abs(energy) + 1)
        keep = (error <= tol) & lowers & (jnp.min(mass) >= 0)
        safe = jnp.where(error > 0, 0.9 * (tol / error) ** (1 / self.scheme.order), 4.0)
        factor = jnp.where(lowers, jnp.clip(safe, 0.2, jnp.where(keep, 4.0, 0.9)), 0.5)
        choose = lambda new, old: jnp.where(keep, new, old)
        longest = self.scheme.longest(choose(phi, before.potential), grid)
        t = jnp.where(clip & (dt >= t1 - now.t), t1, now.t + dt)
        memory = GridMemory(
            jnp.minimum(dt * jnp.nan_to_num(factor, nan=0.2), longest),
            choose(phi, before.potential),
            choose(energy, before.energy),
            jnp.maximum(before.boundary, choose(density.boundary_mass(), 0.0)),
        )
        counts = now.taken + keep, now.rejected + ~keep
        return Attempt(choose(t, now.t), choose(new, now.value), memory, *counts)

    def noted(self, carry):
        memory = carry.attempt.memory
        excess = self.scheme.excess(carry.state.mass, memory.potential, _cells(carry.state))
        return {"boundary_mass": memory.boundary, "grid_diffusion": excess}

    def cautions(self, noted):
        messages = {}
        if (excess := float(np.max(noted["grid_diffusion"]))) > _EXCESS:
            messages["steep"] = (
                f"The potential is so steep from cell to cell that the grid adds {excess:.2g} of the noise's"
                " own diffusion 1/beta: take more cells, or beta = inf for transport of second order."
            )
        if (share := float(np.max(noted["boundary_mass"]))) > _AT_BOUNDARY:
            messages["boundary"] = (
                f"{share:.2g} of the mass is in the outermost cells of the grid: what would leave is held "
                "there. Take a larger box."
            )
        return messages

    def read(self, carry, t):
        return clipped(self, carry, self.target(t)).state

    def _potential(self, state: GridDensity) -> PyTree:
        theta = state.theta
        psi = lambda mass: self.functional.confining.potential(theta, state.with_mass(mass))
        return lambda mass: psi(mass).astype(mass.dtype).reshape(mass.shape)

    def _energy(self, state: GridDensity) -> Array:
        return self.functional.energy(state).astype(state.dtype)

    def advice(self, state, key):
        return (
            f"The steps became too small or too many (tol = {self.tol:g}, at most {self.max_steps}). Try a "
            "larger tol, a coarser grid, a larger max_steps, or a box in which the potential is tamer."
        )


def _cells(state: GridDensity) -> Cells:
    return Cells(state.widths, state.moves)
