"""The Gibbs measure ρ* ∝ exp(−βΨ_λ(θ; ρ*)), where noisy dynamics come to rest."""

import itertools
import math
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._checks import count, positive
from .._shown import shown
from .._tracing import jit, traced
from ..functionals.base import AbstractFunctional
from ..functionals.free_energy import FreeEnergy, confining, physics_of
from ..functionals.risk import Risk
from ..problems.problem import Problem, is_problem
from ..states.grid import GridDensity, is_grid
from ..states.particles import Particles, is_cloud
from .boltzmann import Boltzmann, Iterate, advance, at, warmth
from .precision import double, single
from .result import Gibbs
from .stationary import by_langevin

_LEAST = 1e-14  # of a tolerance
_STEPS = 200  # of Newton's method at one β
_COOLING, _ROUGH = 4.0, 0.1  # from one β to the next; residual at which that is done
_AT_BOUNDARY = 1e-6  # mass in the outermost cells that is worth a warning
_COARSE = 1.0  # h√I: for a Gaussian, a cell as wide as its standard deviation
_PART = 0.125  # width of a concentrated start, as a share of the box


@overload
def gibbs(
    problem: Problem | AbstractFunctional, *, on: GridDensity, **options: object
) -> Gibbs[GridDensity]: ...


@overload
def gibbs(problem: Problem | AbstractFunctional, *, on: Particles, **options: object) -> Gibbs[Particles]: ...


def gibbs(
    problem: Problem | AbstractFunctional,
    *,
    beta: float | None = None,
    decay: float = 0.0,
    on: GridDensity | Particles,
    starts: int | Sequence[GridDensity] = 3,
    tol: float = 1e-10,
    key: Array | None = None,
    step: float | None = None,
    time: float | None = None,
) -> Gibbs[GridDensity] | Gibbs[Particles]:
    """The fixed point ρ* ∝ exp(−βΨ_λ(θ; ρ*)) at inverse temperature β and decay λ: those of a functional
    F = R + λ·SecondMoment − S/β (`gibbs(wf.FreeEnergy(R, beta=…, decay=…), on=…)`), or given here.

    `on` a `wf.GridDensity` solves it on that grid (whose mass is the first start) by Newton's method
    with conjugate gradients until the residual is ≤ `tol`, in float64 whatever JAX is set to. `starts` is the
    number of different ones: the given mass, the uniform law, one at each corner of the box, one in its
    middle; or it lists densities on the same grid. Coordinates that are not trained keep their given law.

    `on` some `wf.Particles` runs `wf.Langevin` with steps of `step` up to `time` instead, seeded by `key`,
    from `starts` that are stretched or mirrored, and takes the second half. Both return a
    `wf.types.Gibbs`.

    >>> wide = wf.on_grid(wf.init(line, theta=1.0), -12.0, 12.0, 32)
    >>> star = wf.gibbs(wf.Risk(line, wf.Quadrature(8)), beta=5.0, decay=0.2, on=wide)
    >>> star.status, float(star.state.weights.sum().round(12))
    ('ok', 1.0)"""
    if not isinstance(problem, Problem | AbstractFunctional):
        raise ValueError(f"gibbs(problem) must be a wf.Problem or wf.Risk(problem), got {shown(problem)}.")
    problem, beta, decay = _physics(problem, beta, decay)
    if is_cloud(on):
        functional = Risk(problem) if is_problem(problem) else problem
        return by_langevin(functional, beta, decay, on, starts, key, step, time)
    if not is_grid(on):
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
        functional = Risk(problem) if is_problem(problem) else problem
        result = _on_grid(functional, beta, decay, double(on), starts, tol)
    if result.message:
        warnings.warn(result.message, stacklevel=2)
    return replace(result, state=single(result.state)) if narrow else result


def _physics(
    problem: Problem | AbstractFunctional, beta: float | None, decay: float
) -> tuple[Problem | AbstractFunctional, float, float]:
    """The problem or risk, β and λ: of the functional, or as they were given."""
    if isinstance(problem, AbstractFunctional):
        plain, beta = physics_of("gibbs", problem, beta, decay)
        rest, decay = plain.decay_split()
        if rest is None or rest.problem is None:
            raise ValueError("gibbs needs a risk: wf.Risk(problem), or wf.FreeEnergy(R, beta=…, decay=…).")
        problem = rest
    if beta is None:
        raise ValueError("gibbs needs an inverse temperature: beta=20.0, or wf.FreeEnergy(R, beta=20.0).")
    return problem, positive("gibbs(beta)", beta), positive("gibbs(decay)", decay, zero=True)


def _on_grid(
    functional: AbstractFunctional, beta: float, decay: float, grid: GridDensity, starts: Any, tol: float
) -> Gibbs[GridDensity]:
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
    risk, free_energy, slope = (float(v) for v in _values(traced(functional), traced(F), density))
    moments, deviations = _moments(density)
    converged = residual <= tol  # then it bounds the error of log ρ in L²(ρ)
    rounding = 8 * float(np.finfo(np.float64).eps) * abs(risk)
    return Gibbs(
        state=density,
        method="newton",
        beta=beta,
        decay=decay,
        risk=risk,
        error=slope * residual + rounding if converged else math.inf,
        free_energy=free_energy,
        moments=moments,
        moment_errors=deviations * residual if converged else np.full_like(deviations, math.inf),
        residual=residual,
        spread=spread,
        status="ok" if converged else "stalled",
        message=_message(residual, tol, boundary, coarse),
        details={
            "largest": float(worst.largest),
            "iterations": tuple(steps),
            "boundary_mass": boundary,
            "coarseness": coarse,
        },
    )


_density = jit(lambda equation, phi: equation.density(phi))


@jit
def _values(risk: AbstractFunctional, energy: AbstractFunctional, rho: GridDensity) -> tuple[Array, ...]:
    """R, F, and the standard deviation of the first variation of R: dR = ∫(δR/δρ) d log ρ dρ is at most that
    times the norm of d log ρ in L²(ρ)."""
    psi = jnp.maximum(1.0, rho.alpha**2) * risk.potential(rho.theta, rho)
    centred = psi - rho.weights @ psi
    return risk.value(rho), energy.energy(rho), jnp.sqrt(rho.weights @ centred**2)


def _moments(rho: GridDensity) -> tuple[np.ndarray, np.ndarray]:
    """∫θ dρ and ∫θ² dρ, (2, D), with the standard deviations of θ and θ² under ρ."""
    theta, weights = np.asarray(rho.theta), np.asarray(rho.weights)
    powers = np.stack([theta, theta**2])
    means = np.einsum("k,pkd->pd", weights, powers)
    return means, np.sqrt(np.einsum("k,pkd->pd", weights, (powers - means[:, None]) ** 2))


def _solved(equation: Boltzmann, log_density: Array, tol: float) -> tuple[Iterate, int]:
    """Newton's method, first at a small β, where it goes straight to the solution, then at larger ones, each
    from the φ before: starting at a large β, ρ would be caught in single cells on its way."""
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
        wrong = [s for s in starts if not (is_grid(s) and s.mass.shape == grid.mass.shape)]
        if wrong or len(starts) < 2:
            raise ValueError(
                "gibbs(starts) must be a number, or two or more wf.GridDensity on the grid of `on`, of shape "
                f"{grid.mass.shape}, got {shown(starts)}."
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
    messages = []
    if not residual <= tol:
        messages.append(
            f"The Gibbs measure has residual {residual:.2g}, not {tol:g}: log ρ is rounded more coarsely, or "
            f"{_STEPS} Newton steps were not enough. Ask for less, or start from a ρ* at a smaller beta."
        )
    if boundary > _AT_BOUNDARY:
        messages.append(f"{boundary:.2g} of its mass is in the outermost cells: take a larger box.")
    if coarse > _COARSE:
        messages.append(
            f"log ρ changes by {coarse:.2g} from cell to cell (rms): the grid does not resolve it, take more "
            "cells or a smaller box."
        )
    return " ".join(messages)
