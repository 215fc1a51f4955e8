"""Resolutions refined until two levels agree."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..run import Run
from .resolution import Resolution
from .solver import Solver, StoppedError
from .spectral import rows_of
from .splitting import part_to_split, split

LEVELS = 8
_GROWTH = 1.5  # of an order that is tried alone, to see its error
_FINER = 1.25  # of all orders, from the level that is checked to the one that is returned
_PART = 0.2  # of tol, that each of the errors of E over x and of the mean in a neuron may take
_SAFETY = 3.0  # on the errors of E over x and of the mean in a neuron, not followed along the flow
_SCALE = 0.1  # errors are taken to fall like _SCALE · exp(−κ order): that of a rule with no node at all


class Level(NamedTuple):
    """A solution of the limit, the estimated error of its risk, and its resolution."""

    run: Run
    error: float
    resolution: Resolution


def refined(solve: Solver, first: Resolution, tol: float) -> Level:
    """The first level that differs from the next coarser one by `tol` at most, or the last that the work
    allows. Interrupted, it is the best so far, with that status."""
    levels: list[Level] = []
    try:
        for level in _levels(solve, first, tol):
            levels[:] = [level]  # those before are not needed
    except StoppedError as stopped:
        best = levels[0] if levels else Level(stopped.run, math.inf, first)
        return best._replace(run=replace(best.run, status="interrupted", message=stopped.run.message))
    return levels[0]


def _levels(solve: Solver, first: Resolution, tol: float) -> Iterator[Level]:
    """Levels until one and the next finer differ by tol at most, each better than the one before.

    They are compared along the whole trajectory. A level refines the nodes of the start, the time steps and
    E over x, whose error adds up along the flow. The error that is told is that of the coarser of the last
    two, so it is on the safe side, and what the control of the steps lets pass, and what higher orders of x
    and of the mean inside the neuron change at the states of the finer one (the order of that mean is the
    same in both, as each one compiles). A start of one coordinate is cut into panels, which see where neurons
    go different ways."""
    moving = [name for name in (*first.nodes, "time") if name not in solve.fixed]
    still = [name for name in ("x", "u") if name not in solve.fixed]
    both = moving + [name for name in still if name == "x"]
    solve.tell("first guess")
    base = solve(first)
    yield Level(base, math.inf, first)
    if base.status != "ok":
        return
    part = part_to_split(solve)
    check = _predicted(solve, first, base, tol, [name for name in moving if name != part], still)
    check = check.with_order("time", min(check.rtol, tol / max(_of_one_step(base, 1.0), 1.0)))
    check = check if part is None else split(solve, part, check, tol)
    before, growth, error = None, _growth(solve, tol), math.inf
    for level in range(LEVELS):
        finer = check.scaled(both, growth)
        if solve.cost(finer) > solve.work:
            break
        if before is None:
            solve.tell(f"level {level + 1}, the coarser half", error, solve.cost(finer) / solve.cost(check))
            before = solve(check, like=finer)
            if before.status != "ok":
                yield Level(before, math.inf, check)
                return
        planned, finer = finer, _deepened(finer, check, _inner(solve, before, check, still), tol)
        deeper = finer.x > planned.x
        solve.tell(f"level {level + 1}", error, 0.0)
        after = solve(finer)
        if after.status != "ok":
            yield Level(after, math.inf, finer)
            return
        inner = _inner(solve, after, finer, still)
        gap, stepping = _gap(after, before), _of_one_step(after, finer.rtol)
        error = gap + stepping + sum(inner.values()) + 1e-15
        solve.say(f"level {level + 1}", finer, error)
        yield Level(after, error, finer)
        if error <= tol:
            break
        coarse = [name for name in still if inner[name] > _PART * tol]
        enough = coarse and gap < 0.5 * tol  # of the start and the steps: then those of x and u alone
        if solve.modes is not None and not coarse:
            ahead = check.scaled([name for name in moving if name != "time"], _farther(gap, tol))
            if solve.cost(ahead) > solve.cost(finer):  # else the finer level is the coarser of the next two
                check, before = replace(ahead, x=finer.x if deeper else ahead.x, u=finer.u), None
                continue
        check, before = (check if enough else finer).scaled(coarse, _GROWTH), None if coarse else after
        growth = _growth(solve, tol) if gap < 30 * tol else 2.0


def _farther(gap: float, tol: float) -> float:
    """By how much orders must grow for an error that falls like exp(−κ√order) to fall from `gap` to tol/2."""
    return min((1 + math.log(2 * gap / tol) / math.log(_SCALE / min(gap, 0.1 * _SCALE))) ** 2, 2.0)


def _growth(solve: Solver, tol: float) -> float:
    """Of all orders, from the level that is checked to the one that is returned. By modes, where orders are
    large and errors fall like exp(−κ√order), as much as brings an error of tol to a quarter: the difference
    of the levels is then thrice the error of the finer."""
    if solve.modes is None:
        return _FINER
    return (1 + math.log(4) / math.log(_SCALE / min(tol, 0.1 * _SCALE))) ** 2


def _inner(solve: Solver, run: Run, level: Resolution, still: list[str]) -> dict[str, float]:
    """The errors of E over x and of the mean in a neuron, at the states of a run, on the safe side."""
    return {n: _SAFETY * solve.static_gap(run, level, level.scaled([n], _GROWTH)) for n in still}


def _deepened(finer: Resolution, check: Resolution, inner: dict[str, float], tol: float) -> Resolution:
    """With higher orders of x and u where their errors, seen at the coarser level, are too large."""
    for name, error in inner.items():
        if error > _PART * tol:
            falls = math.log(_SCALE / (0.5 * _PART * tol)) / math.log(_SCALE / min(error, 0.5 * _SCALE))
            enough = check.scaled([name], min(falls**2, _GROWTH)).order(name)
            finer = finer.with_order(name, max(enough, finer.order(name)))
    return finer


def _predicted(
    solve: Solver, first: Resolution, base: Run, tol: float, moving: list[str], still: list[str]
) -> Resolution:
    """The orders that should bring every dimension's share of the error to its part of tol: each is
    refined alone, which shows its error, and errors fall exponentially with the order. The two
    quadratures are refined at the states of the first run, without a run of their own. By modes many nodes
    are cheap, so that those of the start are taken to converge like exp(−κ√order), as Gauss–Hermite rules do
    where the flow map is not entire (saturated neurons)."""
    share, found = tol / (2 * len(moving + still)), first
    for name in [name for name in moving + still if name != "time"]:
        alone = first.scaled([name], _GROWTH)
        solve.tell(f"more nodes of {name}")
        seen = solve.static_gap(base, first, alone) if name in still else _gap(solve(alone), base)
        power, most = (2, 16) if solve.modes is not None and name in moving else (1, 4)
        falls = math.log(_SCALE / share) / math.log(_SCALE / min(max(seen, 1e-16), 0.5 * _SCALE))
        needed = math.ceil(min(falls**power, most) * first.order(name))
        found = found.with_order(name, max(needed, int(first.order(name)) if name in still else 3))
    return found


def _of_one_step(run: Run, rtol: float) -> float:
    """What the control of the steps lets one of them add to the risk; two levels can share their first steps
    and do not see it. dR = −α²∫⟨v, dθ⟩dρ is at most α²‖v‖‖dθ‖ in L²(ρ), where ‖v‖² is the rate at which the
    flow lowers its energy, and ‖dθ‖ is rtol‖θ‖/max(1, α)."""
    alpha = float(run.final.alpha)
    energy = run["energy"] if "energy" in run else run["risk"] / alpha**2
    speed = np.sqrt(max(float(np.max(-np.diff(energy) / np.diff(run.t), initial=0.0)), 0.0))
    rows = map(rows_of, run.states)
    size = max(float(np.sqrt(np.sum(weights @ theta**2))) for theta, weights in rows)
    return alpha**2 * speed * size * rtol / max(1.0, alpha)


def _gap(run: Run, other: Run) -> float:
    """The largest difference of the risk over the whole trajectory, at the asked times and between them."""
    if run.status != "ok" or other.status != "ok":
        return math.inf
    return float(np.max(np.abs(run["risk"] - other["risk"])))
