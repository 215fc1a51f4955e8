"""The distributional dynamics on a grid."""

import math
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._checks import count, positive
from ..._tracing import traced
from ...functionals.base import AbstractFunctional
from ...functionals.entropy import FreeEnergy
from ...states.grid import GridDensity
from ..base import AbstractDynamics, Info
from .steps import AbstractStep, Cells, DriftDiffusion, Transport

_EXCESS = 3.0  # diffusion by the grid, as a part of 1/β, that is worth a warning
_AT_BOUNDARY = 1e-5  # mass in the outermost cells that is worth a warning
_ROUNDINGS = 64  # of the free energy, within which two values are one
_FIRST = 1e-3  # the first step


class Carry(eqx.Module):
    """The last accepted step, with the potential and the free energy of its density."""

    t: Float[Array, ""]
    dt: Float[Array, ""]
    state: GridDensity
    potential: Float[Array, "..."]
    energy: Float[Array, ""]
    reached: Float[Array, ""]  # the most mass that has been seen in the outermost cells
    taken: Int[Array, ""]
    rejected: Int[Array, ""]


class GridFlow(AbstractDynamics):
    """∂tρ = ∇·(ρ∇Ψ_λ(θ; ρ)) + β⁻¹Δρ for a `wf.GridDensity`, Ψ_λ = Ψ/α + λ|θ|²/2: finite volumes without flux
    through the boundary.

    With noise (β < ∞) Scharfetter–Gummel fluxes, implicit in ρ and of any step size; ρ ∝ e^{−βΨ_λ} is kept
    exactly. Without, upwind fluxes of second order. The potential is that of the density at the start of each
    sub-step, through the nodes of the functional's expectation: cells × nodes, never cells × cells. Every
    accepted step keeps masses positive, their sum 1 and lowers F = R/α² + (λ/2)∫|θ|²dρ − S/β; its estimated
    error in L1 is below `tol`. The steps do not depend on the saved times: a density between two steps comes
    from a shorter one (of two such, the later may have the larger F, by far less than `tol`). On a reduced
    problem noise brings the drift (d_i − 1)/(βr_i) of the radius of each block of dimension d_i. A run
    records F as `free_energy`.

    Of second order in the cells' size h as long as β|∇Ψ|h ≲ 2; beyond, mass diffuses by |∇Ψ|h/2 more:
    `run.info["grid_diffusion"]` is the mean of that over 1/β."""

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
        beta: float = math.inf,
        decay: float = 0.0,
        tol: float = 1e-6,
        max_steps: int = 1_000_000,
    ):
        if not isinstance(functional, AbstractFunctional):
            given = type(functional).__name__
            raise ValueError(f"GridFlow needs a functional such as wf.Risk(problem), got a {given}.")
        beta = positive("beta", beta, infinite=True)
        self.functional = FreeEnergy(functional, beta=beta, decay=decay)
        self.scheme = DriftDiffusion(beta) if beta < math.inf else Transport()
        self.tol = positive("GridFlow(tol)", tol)
        self.max_steps = count("max_steps", max_steps)
        self.name = "GridFlow"
        papers = ("scharfetter1969", "chizat2018") if beta < math.inf else ("koren1993", "chizat2018")
        self.sources = (*papers, "jordan1998")

    def init(self, state, key):
        if not isinstance(state, GridDensity):
            given = type(state).__name__
            raise ValueError(
                f"GridFlow moves a wf.GridDensity, got a {given}. Put a law or a cloud on a grid: "
                "wf.on_grid(law, low, high, cells)."
            )
        carry = _init(traced(self), state)
        excess = float(_excess(traced(self), carry))
        if excess > _EXCESS:
            warnings.warn(
                f"The potential is so steep from cell to cell that the grid adds {excess:.2g} of the noise's"
                " own diffusion 1/beta: take more cells, or beta = inf for transport of second order.",
                stacklevel=2,
            )
        return carry

    def advance(self, carry, t0, t1, budget=2**30):
        left = max(0, self.max_steps - int(carry.taken) - int(carry.rejected))
        t1, most = jnp.asarray(t1, carry.t.dtype), jnp.asarray(min(budget, left), jnp.int32)
        before = float(carry.reached)
        carry, collapsed = _advance(traced(self), carry, t1, most, jnp.asarray(False))
        if before <= _AT_BOUNDARY < float(carry.reached):
            warnings.warn(
                f"{float(carry.reached):.2g} of the mass is in the outermost cells of the grid by t = "
                f"{float(carry.t):.4g}: what would leave is held there. Take a larger box.",
                stacklevel=2,
            )
        reached = bool(carry.t + carry.dt > t1)
        spent = int(carry.taken) + int(carry.rejected) >= self.max_steps
        stalled = not reached and (bool(collapsed) or spent)
        finite = bool(jnp.isfinite(carry.energy))
        noted = {"boundary_mass": float(carry.reached), "grid_diffusion": float(_excess(traced(self), carry))}
        return carry, Info(reached, finite, stalled, int(carry.taken), int(carry.rejected), noted)

    def read(self, carry, t):
        t = jnp.asarray(t, carry.t.dtype)
        if bool(t <= carry.t):
            return carry.state
        most = jnp.asarray(self.max_steps, jnp.int32)
        return _advance(traced(self), carry, t, most, jnp.asarray(True))[0].state

    def time(self, carry):
        return float(carry.t)

    def advice(self, state, key):
        return (
            f"The steps became too small or too many (tol = {self.tol:g}, at most {self.max_steps}). Try a "
            "larger tol, a coarser grid, a larger max_steps, or a box in which the potential is tamer."
        )


def _potential(flow: GridFlow, state: GridDensity) -> Any:
    theta = state.theta
    psi = lambda mass: flow.functional.confining.potential(theta, state.with_mass(mass))
    return lambda mass: psi(mass).astype(mass.dtype).reshape(mass.shape)


@eqx.filter_jit
def _init(flow: GridFlow, state: GridDensity) -> Carry:
    zero, k = jnp.zeros((), state.dtype), jnp.zeros((), jnp.int32)
    first = _potential(flow, state)(state.mass)
    dt = jnp.minimum(jnp.asarray(_FIRST, state.dtype), flow.scheme.longest(first, _cells(state)))
    return Carry(zero, dt, state, first, _energy(flow, state), zero, k, k)


def _energy(flow: GridFlow, state: GridDensity) -> Array:
    return flow.functional.energy(state).astype(state.dtype)


@eqx.filter_jit
def _excess(flow: GridFlow, carry: Carry) -> Array:
    return flow.scheme.excess(carry.state.mass, carry.potential, _cells(carry.state))


def _cells(state: GridDensity) -> Cells:
    return Cells(state.widths, state.moves)


@eqx.filter_jit
def _advance(flow: GridFlow, carry: Carry, t1: Array, most: Array, clip: Array) -> tuple[Carry, Array]:
    """Steps until the next one would pass t1, or `most` of them are done; with `clip` the last ends at t1."""
    potential, grid = _potential(flow, carry.state), _cells(carry.state)
    dtype, last = carry.t.dtype, carry.taken + carry.rejected + most
    eps = jnp.finfo(dtype).eps
    # below this, rounding of the masses rules the estimate
    tol = jnp.maximum(jnp.asarray(flow.tol, dtype), 64 * eps)

    def collapsed(c: Carry) -> Array:
        return ~(c.dt > 4 * eps * jnp.abs(c.t)) | ~(c.dt > 0)

    def goes_on(c: Carry) -> Array:
        ends = jnp.where(clip, c.t < t1, c.t + c.dt <= t1)
        return ends & (c.taken + c.rejected < last) & ~collapsed(c)

    def step(c: Carry) -> Carry:
        dt = jnp.where(clip, jnp.minimum(c.dt, t1 - c.t), c.dt)
        mass, error = flow.scheme(c.state.mass, c.potential, potential, grid, dt)
        state = c.state.with_mass(mass / jnp.sum(mass))
        energy, phi = _energy(flow, state), potential(state.mass)
        lowers = energy <= c.energy + _ROUNDINGS * eps * (jnp.abs(energy) + 1)
        keep = (error <= tol) & lowers & (jnp.min(mass) >= 0)
        safe = jnp.where(error > 0, 0.9 * (tol / error) ** (1 / flow.scheme.order), 4.0)
        factor = jnp.where(lowers, jnp.clip(safe, 0.2, jnp.where(keep, 4.0, 0.9)), 0.5)
        longest = flow.scheme.longest(jnp.where(keep, phi, c.potential), grid)
        choose = lambda new, old: jax.tree.map(lambda a, b: jnp.where(keep, a, b), new, old)
        return Carry(
            jnp.where(keep, jnp.where(clip & (dt >= t1 - c.t), t1, c.t + dt), c.t),
            jnp.minimum(dt * jnp.nan_to_num(factor, nan=0.2), longest),
            choose(state, c.state),
            choose(phi, c.potential),
            choose(energy, c.energy),
            jnp.maximum(c.reached, jnp.where(keep, state.boundary_mass(), 0.0)),
            c.taken + keep,
            c.rejected + ~keep,
        )

    carry = jax.lax.while_loop(goes_on, step, carry)
    return carry, collapsed(carry)
