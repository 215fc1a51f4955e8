"""The Gibbs measure ρ* ∝ exp(−βΨ_λ(θ; ρ*)), where noisy dynamics come to rest."""

import itertools
import math
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._checks import count, positive
from .._tracing import traced
from ..functionals.base import AbstractFunctional
from ..functionals.entropy import FreeEnergy, confining
from ..functionals.risk import Risk
from ..problems.problem import Problem
from ..states.grid import GridDensity
from ..states.particles import Particles
from .boltzmann import Boltzmann, Iterate, advance, at, warmth
from .precision import double, single
from .stationary import GibbsCloud, stationary_cloud

_LEAST = 1e-14  # of a tolerance
_STEPS = 200  # of Newton's method at one β
_COOLING, _ROUGH = 4.0, 0.1  # from one β to the next; residual at which that is done
_AT_BOUNDARY = 1e-6  # mass in the outermost cells that is worth a warning
_COARSE = 1.0  # h√I: for a Gaussian, a cell as wide as its standard deviation
_PART = 0.125  # width of a concentrated start, as a share of the box


@dataclass(frozen=True)
class Gibbs:
    """ρ* ∝ exp(−βΨ_λ(θ; ρ*)) on a grid.

    - `density`: ρ*; `risk` its R, `free_energy` its F = R/α² + (λ/2)∫|θ|²dρ − S/β.
    - `residual`: of the worst start, √∫(log ρ + βΨ_λ(·; ρ) + log Z)²dρ (ρ and its image exp(−βΨ_λ)/Z, the
      larger in each cell). Near ρ* it bounds the error of log ρ in that norm, as the equation's derivative
      is ≥ 1 (the grid's own error apart). `largest`: the largest of |…| over all cells, even empty ones.
    - `iterations`: Newton steps from each start.
    - `spread`: the largest L1 distance between what was reached from any two starts; ρ* is unique where R is
      convex, so it is of the size of the residual if all is well.
    - `boundary_mass`: in the outermost cells; much of it means that the box cuts ρ* off.
    - `coarseness`: h√∫|∂ log ρ|²dρ, the largest over the axes: cell over standard deviation for a Gaussian.
    - `status`: "ok", or "stalled" when some start did not come to the tolerance; `message` says more."""

    density: GridDensity
    beta: float
    decay: float
    residual: float
    largest: float
    iterations: tuple[int, ...]
    risk: float
    free_energy: float
    spread: float
    boundary_mass: float
    coarseness: float
    status: Literal["ok", "stalled"]
    message: str

    @property
    def converged(self) -> bool:
        """Whether every start came to the tolerance."""
        return self.status == "ok"

    @property
    def state(self) -> GridDensity:
        return self.density


def gibbs(
    problem: Problem | AbstractFunctional,
    *,
    beta: float,
    decay: float,
    on: GridDensity | Particles,
    starts: int | Sequence[GridDensity] = 3,
    tol: float = 1e-10,
    key: Array | None = None,
    step: float | None = None,
    time: float | None = None,
) -> Gibbs | GibbsCloud:
    """The fixed point ρ* ∝ exp(−βΨ_λ(θ; ρ*)) at inverse temperature β and decay λ.

    `on` a `wf.GridDensity` solves it on that grid (of which the mass is the first start) by Newton's method
    with conjugate gradients until the residual is ≤ `tol`, in float64 whatever JAX is set to. `starts` are so
    many different ones: the given mass, the uniform law, one at each corner of the box, one in its middle;
    or densities on the same grid. Coordinates that are not trained keep their given law.

    `on` some `wf.Particles` runs `wf.Langevin` with steps of `step` up to `time` instead, seeded by `key`,
    and looks at the second half: see `wf.GibbsCloud` for what comes back."""
    if not isinstance(problem, Problem | AbstractFunctional):
        raise ValueError(f"gibbs(problem) must be a wf.Problem or wf.Risk(problem), got {problem!r}.")
    beta = positive("gibbs(beta)", beta)
    decay = positive("gibbs(decay)", decay, zero=True)
    if isinstance(on, Particles):
        functional = Risk(problem) if isinstance(problem, Problem) else problem
        return stationary_cloud(functional, beta, decay, on, starts, key, step, time)
    if not isinstance(on, GridDensity):
        raise ValueError(
            "gibbs(on) must be a wf.GridDensity (wf.on_grid(law, low, high, cells)) or wf.Particles, got "
            f"{type(on).__name__}."
        )
    if (key, step, time) != (None, None, None):
        raise ValueError("gibbs(key, step, time) are for particles; on a grid there is only tol.")
    tol = positive("gibbs(tol)", tol)
    if tol < _LEAST:
        raise ValueError(f"gibbs(tol) must be {_LEAST:.0e} or more, as log ρ is rounded, got {tol:g}.")
    narrow = jnp.result_type(float) == jnp.float32
    with jax.enable_x64(True) if narrow else nullcontext():
        problem = double(problem)
        functional = Risk(problem) if isinstance(problem, Problem) else problem
        found = _on_grid(functional, beta, decay, double(on), starts, tol)
    if found.message:
        warnings.warn(found.message, stacklevel=2)
    return replace(found, density=single(found.density)) if narrow else found


def _on_grid(
    functional: AbstractFunctional, beta: float, decay: float, grid: GridDensity, starts: Any, tol: float
) -> Gibbs:
    moving = tuple(i for i, moves in enumerate(grid.moves) if moves)
    grid = grid.with_mass(grid.mass / jnp.sum(grid.mass))  # single precision masses sum to 1 to 1e-7 only
    total = confining(functional, beta=beta, decay=decay)
    equation = traced(Boltzmann(total, grid, jnp.asarray(beta), moving))
    ends, steps = zip(*(_solved(equation, start, tol) for start in _starts(grid, starts)), strict=True)
    densities = [_density(equation, end.phi) for end in ends]
    worst = max(ends, key=lambda end: float(end.residual))
    density = densities[int(np.argmin([float(end.residual) for end in ends]))]
    spread = max((float(jnp.sum(jnp.abs(a.mass - b.mass))) for a, b in itertools.combinations(densities, 2)))
    residual, boundary = float(worst.residual), float(density.boundary_mass())
    coarse = _coarseness(density, moving)
    F = FreeEnergy(functional, beta=beta, decay=decay)
    risk, free_energy = _values(traced(functional), traced(F), density)
    return Gibbs(
        density=density,
        beta=beta,
        decay=decay,
        residual=residual,
        largest=float(worst.largest),
        iterations=tuple(steps),
        risk=float(risk),
        free_energy=float(free_energy),
        spread=spread,
        boundary_mass=boundary,
        coarseness=coarse,
        status="ok" if residual <= tol else "stalled",
        message=_message(residual, tol, boundary, coarse),
    )


_density = eqx.filter_jit(lambda equation, phi: equation.density(phi))
_values = eqx.filter_jit(lambda risk, energy, rho: (risk.value(rho), energy.energy(rho)))


def _solved(equation: Boltzmann, log_density: Array, tol: float) -> tuple[Iterate, int]:
    """Newton's method, first at a small β, where it goes straight to the solution, then at larger ones, each
    from the φ before: at a large β at once ρ would be caught in single cells on its way."""
    target, beta = float(equation.beta), float(warmth(equation, log_density))
    phi, steps = -log_density / beta, 0
    while True:
        final = beta >= target
        stage = eqx.tree_at(lambda e: e.beta, equation, jnp.asarray(min(beta, target)))
        now, taken = _newton(stage, phi, tol if final else _ROUGH)
        phi, steps = now.phi, steps + taken
        if final:
            return now, steps
        beta *= _COOLING


def _newton(equation: Boltzmann, phi: Array, tol: float) -> tuple[Iterate, int]:
    """Steps until the tolerance holds or none helps any more."""
    now, steps = at(equation, phi), 0
    while float(now.residual) > tol and steps < _STEPS:
        after = advance(equation, now)
        if float(after.taken) == 0.0:
            break
        now, steps = after, steps + 1
    return now, steps


def _starts(grid: GridDensity, starts: Any) -> list[Array]:
    """Logarithms of densities to start from, up to constants."""
    if isinstance(starts, Sequence) and not isinstance(starts, str):
        wrong = [s for s in starts if not (isinstance(s, GridDensity) and s.mass.shape == grid.mass.shape)]
        if wrong or len(starts) < 2:
            raise ValueError(
                "gibbs(starts) must be a number, or two or more wf.GridDensity on the grid of `on`, of shape "
                f"{grid.mass.shape}, got {starts!r}."
            )
        return [_log(double(s)) for s in starts]
    most = 3 + 2**grid.D
    if count("gibbs(starts)", starts, least=2) > most:
        raise ValueError(f"gibbs(starts) has {most} starts of its own on {grid.D} axes, got {starts}.")
    ends = itertools.product(*((0.0, 1.0) for _ in range(grid.D)))
    places = [np.array(end) for end in ends] + [np.full(grid.D, 0.5)]
    size = grid.high - grid.low
    at = (jnp.sum(((grid.theta - grid.low - p * size) / (_PART * size)) ** 2, axis=1) for p in places)
    peaks = [-0.5 * square.reshape(grid.mass.shape) for square in at]
    return [_log(grid), jnp.zeros(grid.mass.shape), *peaks][:starts]


def _log(rho: GridDensity) -> Array:
    """log ρ, with a trace of mass in empty cells."""
    return jnp.log(rho.mass + 1e-30)


def _coarseness(rho: GridDensity, moving: tuple[int, ...]) -> float:
    """The largest h√I over the axes, I = ∫|∂ log ρ|²dρ by I = 4∫|∂√ρ|² on faces."""
    root = np.sqrt(np.asarray(rho.mass))
    return max((2 * math.sqrt(np.sum(np.diff(root, axis=i) ** 2)) for i in moving), default=0.0)


def _message(residual: float, tol: float, boundary: float, coarse: float) -> str:
    said = []
    if not residual <= tol:
        said.append(
            f"The Gibbs measure has residual {residual:.2g}, not {tol:g}: log ρ is rounded more coarsely, or "
            f"{_STEPS} Newton steps were not enough. Ask for less, or start from a ρ* at a smaller beta."
        )
    if boundary > _AT_BOUNDARY:
        said.append(f"{boundary:.2g} of its mass is in the outermost cells: take a larger box.")
    if coarse > _COARSE:
        said.append(
            f"log ρ changes by {coarse:.2g} from cell to cell (rms): the grid does not resolve it, take more "
            "cells or a smaller box."
        )
    return " ".join(said)
