"""Starts that split: panels of the start, cut where the flow map is not resolved.

Where some neurons shrink and others grow, a point of the start divides them. The map from a neuron at
time 0 to the same at time t is smooth, but steeper and steeper around that point, and a Gauss rule of order p
for the whole start errs by 1/p. On panels, cut again and again where the map is steep, the mass whose fate is
not known falls by the number of parts at every cut."""

import math

import numpy as np
from numpy.polynomial import legendre

from ..run import Run
from ..states.marginals import Panels
from .resolution import Resolution
from .solver import Solver

_PARTS = 8  # of a panel that is cut
_CUTS = 10
_SHARE = 0.05  # of the tolerance, that a panel may miss
_WORST = 0.05  # panels within this factor of the worst are cut with it


def part_to_split(solve: Solver) -> str | None:
    """The part of the start that panels can be laid on: the only one with a density, of one coordinate."""
    free = [name for name in _coordinates(solve) if name not in solve.fixed]
    return free[0] if len(free) == 1 else None


def _coordinates(solve: Solver) -> list[str]:
    """The part of every coordinate of the start."""
    parts = zip(solve.law.names, solve.law.widths, strict=True)
    return [name for name, width in parts for _ in range(width)]


def split(solve: Solver, name: str, resolution: Resolution, tol: float) -> Resolution:
    """The resolution with panels for this part, cut until each one misses a share of `tol`."""
    from scipy.special import ndtri

    reach = float(ndtri(1 - 1e-3 * tol))  # the rest weighs nothing
    panels = Panels(tuple(np.linspace(-reach, reach, 13)), max(6, round(1.2 * math.log10(1 / tol))))
    for _ in range(_CUTS):
        level = resolution.with_order(name, panels)
        if solve.cost(level) > solve.work:
            break
        solve.tell(f"{len(panels.edges) - 1} panels of {name}")
        run = solve(level)
        if run.status != "ok":
            break
        missed = _missed(run, solve, level, name, panels)
        solve.say(f"{len(missed)} panels of {name}", level, float(missed.sum()))
        marked = missed > max(_SHARE * tol, _WORST * missed.max())
        if not marked.any():
            break
        panels = panels.cut(marked, _PARTS)
    return resolution.with_order(name, panels)


def _missed(run: Run, solve: Solver, level: Resolution, name: str, panels: Panels) -> np.ndarray:
    """For each panel its mass times the last two Legendre coefficients of θ_t on it, of the largest
    coordinate and time: about what the rule on the panel misses of ∫θ_t dρ₀."""
    names = _coordinates(solve)
    sizes, axis = [int(level.order(part)) for part in names], names.index(name)
    x, _ = legendre.leggauss(panels.order)
    project = np.linalg.inv(legendre.legvander(x, panels.order - 1))[-2:]
    worst = np.zeros(len(panels.edges) - 1)
    for state in run.states:
        theta = np.moveaxis(np.asarray(state.theta).reshape(*sizes, -1), axis, 0)
        on_panels = theta.reshape(len(worst), panels.order, -1)
        last = np.abs(np.einsum("kp,gpc->gkc", project, on_panels)).sum(axis=1)
        worst = np.maximum(worst, last.max(axis=1))
    weights = np.moveaxis(np.asarray(run.states[0].weights).reshape(sizes), axis, 0)
    return worst * weights.reshape(len(worst), -1).sum(axis=1)
