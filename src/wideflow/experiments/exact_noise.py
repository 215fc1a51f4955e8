"""A linear neuron with noise, known exactly at all times, by particles, on grids, by JKO and at its end.

σ* = ⟨θ, x⟩, y = ⟨w*, x⟩, x ~ N(0, I_D), noise β, decay λ, start N(m₀, s₀² I): the law of θ stays Gaussian,

    m(t) = w*/(1+λ) + (m₀ − w*/(1+λ)) e^{−(1+λ)t},   C(t) = (s₀² e^{−2λt} + (1 − e^{−2λt})/(βλ)) I,
    F = ½|w* − m|² + λ/2 (|m|² + tr C) − β⁻¹(½ log det C + D/2 (1 + log 2π)).

1. Langevin, many clouds of n particles, D = 1 and 2. Exactly known too: E of the cloud's mean is m(t) and
   of its covariance (over n − 1) C(t), with Var m̂ = (s₀² e^{−2(1+λ)t} + (1 − e^{−2(1+λ)t})/(β(1+λ)))/n and
   Var Ĉ_ij = (C_ii C_jj + C_ij²)/(n − 1). The bias of the step η, below η(1+λ)|m₀ − w*/(1+λ)|/(2e) in m and
   η/(2β) in C at rest, is a fifth of a standard error. F is estimated from 2 and 4 neighbours, 2F₂ − F₄ being
   without the bias that grows with their number, and with a standard error over the clouds.
2. Densities on grids, D = 1 and 2: order 2 in the cell's size h, in L1.
3. Minimising movements by quantiles, D = 1: of first order in the step τ. One step keeps Gaussians,
   m⁺ = (m + τw*)/(1 + τ(1+λ)), and s⁺ the positive root of (1 + τλ)s² − s₀s = τ/β.
4. The fixed point ρ* ∝ exp(−βΨ_λ(·; ρ*)), D = 1, which is N(w*/(1+λ), 1/(βλ))."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from ..diagnostics.scaling import Slope, fit_slope, mean_and_error
from ..dynamics.grid.flow import GridFlow
from ..dynamics.jko.jko import JKO
from ..dynamics.jko.quantiles import line_entropy
from ..dynamics.langevin import Langevin
from ..figures import COLOURS, panels
from ..functionals.free_energy import FreeEnergy
from ..loop import evolve
from ..mean_field.gibbs import gibbs
from ..states.grid import GridDensity
from ..states.particles import Particles
from .base import Check, Outcome, Say, finished
from .noisy_linear import (
    BETA,
    DECAY,
    S0,
    Moments,
    distances,
    exact,
    exact_mass,
    gaussian_step,
    law_of,
    risk_of,
)

TIMES = np.array([0.0, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
WIDTH, STEP = 1000, 0.0025
NEIGHBOURS = 2
BOX, UNTIL = 6.0, 1.0  # of the grids; where orders are measured
NODES = 24  # quantiles


@dataclass(frozen=True)
class Settings:
    """How finely it is solved; the defaults are the published run's."""

    clouds: int = 32
    width: int = WIDTH
    line: tuple[int, ...] = (50, 100, 200, 400)  # cells along an axis
    plane: tuple[int, ...] = (24, 36, 54, 72)
    shown: int = 54  # cells of the plane that are followed to the end
    moves: tuple[float, ...] = (0.2, 0.1, 0.05, 0.025)  # the steps τ
    most_errors: float = 4.0  # of a cloud's mean, covariance and F


FULL = Settings()
# F has its standard error from eight clouds, and Student's t of 7 degrees is above 5.5 in one of a thousand.
REDUCED = Settings(8, 500, (50, 100, 200), (24, 36), 36, (0.2, 0.1, 0.05), most_errors=5.5)


def on_cells(D: int, cells: int) -> GridDensity:  # noqa: N803
    """The start on a grid, exactly."""
    corner = BOX * np.ones(D)
    grid = GridDensity(np.full((cells,) * D, cells**-D), -corner, corner, neuron=risk_of(D).problem.neuron)
    mass = exact_mass(0.0, grid)
    return grid.with_mass(jax.numpy.asarray(mass / mass.sum()))


def clouds(D: int, seeds: range, n: int = WIDTH) -> Moments:  # noqa: N803
    """Langevin at TIMES, one cloud for each seed: the first axis is that of the clouds."""
    risk, moments = risk_of(D), []
    free = [FreeEnergy(risk, beta=BETA, decay=DECAY, neighbours=k * NEIGHBOURS) for k in (1, 2)]
    noisy, keys = Langevin(risk, STEP, beta=BETA, decay=DECAY), jax.vmap(jax.random.key)
    starts = law_of(risk).sample(keys(np.array(seeds)), n, replicas=len(seeds))
    run = finished(evolve(noisy, starts, TIMES, key=keys(1000 + np.array(seeds)), progress=False))
    for r in range(len(seeds)):
        states = [state.replica(r) for state in run.states]
        theta = [np.asarray(state.theta) for state in states]
        covariance = [np.cov(v, rowvar=False).reshape(D, D) for v in theta]
        energy = [float(2 * free[0].energy(state) - free[1].energy(state)) for state in states]
        moments.append(Moments([v.mean(axis=0) for v in theta], covariance, energy))
    return Moments(*(np.array(v) for v in zip(*moments, strict=True)))


def in_standard_errors(moments: Moments, D: int, n: int = WIDTH) -> Moments:  # noqa: N803
    """Distances of the clouds' means from the exact law, in standard errors."""
    many, truth = len(moments.mean), exact(TIMES, D)
    left = np.exp(-2 * (1 + DECAY) * TIMES)[:, None]
    mean_bar = np.sqrt((S0**2 * left + (1 - left) / (BETA * (1 + DECAY))) / (n * many))
    c = truth.covariance
    diagonal = np.einsum("tii->ti", c)
    bar = np.sqrt((diagonal[:, :, None] * diagonal[:, None] + c**2) / ((n - 1) * many))
    energies = [mean_and_error(column) for column in moments.energy.T]
    z = [(m - e) / error for (m, error), e in zip(energies, truth.energy, strict=True)]
    mean, covariance = moments.mean.mean(axis=0) - truth.mean, moments.covariance.mean(axis=0) - c
    return Moments(mean / mean_bar, covariance / bar, np.array(z))


def cloud_checks(z: Moments, D: int, most: float = FULL.most_errors) -> list[Check]:  # noqa: N803
    """The worst of all times and coordinates, with its sign."""
    checks = []
    for what, values in zip(("mean", "covariance", "free energy"), z, strict=True):
        worst = float(values.flat[np.argmax(np.abs(values))])
        name = f"D = {D}, particles: {what} − exact, in standard errors, worst of {values.size}"
        checks.append(Check(name, "0", worst, 1.0, -most, most))
    return checks


def grid_moments(states: Any, D: int) -> Moments:  # noqa: N803
    free = FreeEnergy(risk_of(D), beta=BETA, decay=DECAY)
    rows = [(s.mean(), s.covariance(), free.energy(s)) for s in states]
    return Moments(*(np.array(v) for v in zip(*rows, strict=True)))


def flow_on(start: GridDensity, ts: Any, tol: float = 1e-6) -> Any:
    flow = GridFlow(risk_of(start.D), beta=BETA, decay=DECAY, tol=tol)
    return finished(evolve(flow, start, ts, progress=False))


def grid_errors(D: int, cells: tuple[int, ...]) -> np.ndarray:  # noqa: N803
    """Distance in L1 from the exact masses at UNTIL, for each number of cells."""
    ends = [flow_on(on_cells(D, n), [UNTIL]).final for n in cells]
    return np.array([np.abs(np.asarray(end.mass) - exact_mass(UNTIL, end)).sum() for end in ends])


def line_moments(state: Particles) -> Moments:
    """Of quantiles, the entropy that of the law behind them."""
    theta, weights = np.asarray(state.theta), np.asarray(state.weights)
    mean = weights @ theta
    variance = weights @ (theta - mean) ** 2
    entropy = line_entropy(state.theta[:, 0], state.weights)
    risk = float(risk_of(1).value(state))
    energy = risk + DECAY * float(state.second_moment()) - float(entropy) / BETA
    return Moments(mean, np.diag(variance), energy)


def moved(step: float, ts: Any) -> Moments:
    """Minimising movements with steps of `step`, at times ts."""
    risk = risk_of(1)
    movement = JKO(risk, step, beta=BETA, decay=DECAY)
    run = finished(evolve(movement, law_of(risk).nodes(NODES), ts, progress=False))
    return Moments(*(np.array(v) for v in zip(*map(line_moments, run.states), strict=True)))


def order(x: Any, errors: Any) -> Slope:
    """The slope; its error is the scatter about the line, as these errors have no noise."""
    return fit_slope(x, errors, 1e-3 * np.asarray(errors))


def grid_checks(
    errors: dict[int, np.ndarray], line: Moments, plane: Moments, settings: Settings
) -> list[Check]:
    """`errors`: in L1 at UNTIL; `line` and `plane`: at all TIMES, on the finest line and `shown`² cells."""
    checks = []
    for D, cells in ((1, settings.line), (2, settings.plane)):
        slope = order(2 * BOX / np.array(cells), errors[D])
        what = f"D = {D}, grid: order in h of the L1 error at t = {UNTIL:g}"
        checks.append(Check(what, "2", slope.value, slope.error, 1.8, 2.3))
    for D, moments, number in ((1, line, settings.line[-1]), (2, plane, settings.shown)):
        h = 2 * BOX / number
        apart = distances(moments, exact(TIMES, D)).max(axis=1)
        for what, gap in zip(("mean", "standard deviation", "free energy"), apart, strict=True):
            name = f"D = {D}, grid of {number}{'²' * (D - 1)} cells: {what} − exact, largest over t"
            checks.append(Check(name, "O(h²)", float(gap), 1e-6, 0.0, 0.5 * h**2))
    return checks


def move_checks(errors: np.ndarray, moves: tuple[float, ...]) -> list[Check]:
    """`errors`: one row for each of the steps, of mean, standard deviation and F at UNTIL."""
    checks = []
    for what, column in zip(("mean", "standard deviation", "free energy"), errors.T, strict=True):
        slope = order(moves, column)
        name = f"JKO: order in τ of the {what} at t = {UNTIL:g}"
        checks.append(Check(name, "1", slope.value, slope.error, 0.9, 1.1))
    for count in (1, round(UNTIL / moves[0])):
        step = moved(moves[0], [count * moves[0]])
        gap = distances(Moments(*(v[0] for v in step)), gaussian_step(moves[0], count)).max()
        name = f"JKO: {count} step{'s' * (count > 1)} of {moves[0]} − closed form, mean, s.d. and F"
        checks.append(Check(name, "0", float(gap), 1e-9, 0.0, 1e-6))
    return checks


def rest(cells: int = FULL.line[-1]) -> tuple[Moments, list[Check]]:
    """The fixed point from three starts, and how far it is from the Gaussian that it is."""
    fixed_point: Any = gibbs(risk_of(1), beta=BETA, decay=DECAY, on=on_cells(1, cells))
    truth, h = exact(math.inf, 1), 2 * BOX / cells
    law = Moments(*(v[0] for v in grid_moments([fixed_point.state], 1)))
    l1 = np.abs(np.asarray(fixed_point.state.mass) - exact_mass(math.inf, fixed_point.state)).sum()
    apart = float(distances(law, truth).max())
    return law, [
        Check("fixed point: mean, s.d. and F − exact", "O(h²)", apart, 1e-8, 0.0, 0.5 * h**2),
        Check("fixed point: L1 distance from exact", "O(h²)", float(l1), 1e-8, 0.0, 0.5 * h**2),
        Check("fixed point: L1 distance between what three starts reach", "0", fixed_point.spread,
              fixed_point.residual, 0.0, 1e-8),
    ]  # fmt: skip


class Curves(NamedTuple):
    """What the figure shows, each at TIMES."""

    particles: Moments  # means over the clouds, D = 1
    bars: np.ndarray  # standard errors of mean, standard deviation and F
    line: Moments
    plane: Moments
    moves: Moments
    extrapolated: Moments


def _series(moments: Moments, D: int = 1) -> list[np.ndarray]:  # noqa: N803
    """Mean and standard deviation of the first coordinate, and F − F*."""
    least = exact(math.inf, D).energy
    return [moments.mean[:, 0], np.sqrt(moments.covariance[:, 0, 0]), moments.energy - least]


def _averaged(moments: Moments) -> tuple[Moments, np.ndarray]:
    """Of clouds the mean over them, and the standard errors of `_series`."""
    rows = np.array([_series(Moments(*v)) for v in zip(*moments, strict=True)])
    return Moments(*(v.mean(axis=0) for v in moments)), rows.std(axis=0, ddof=1) / math.sqrt(len(rows))


def _draw(shown: Curves, gibbs_law: Moments, settings: Settings) -> Any:
    fine, ways, moves = np.linspace(0, TIMES[-1], 200), shown._asdict(), settings.moves
    marks = {
        "particles": (f"particles, {settings.clouds} × {settings.width}", "o", 5, 0),
        "line": (f"grid, D = 1, {settings.line[-1]} cells", "x", 6, 1),
        "plane": (f"grid, D = 2, {settings.shown}² cells", "+", 8, 2),
        "moves": (f"JKO, τ = {moves[1]:g}", "s", 4, 3),
        "extrapolated": (f"JKO, τ = {moves[1]:g}, {moves[2]:g} → 0", "D", 3.5, 4),
    }
    labels = "mean of θ₁", "standard deviation of θ₁", "free energy F − F*"
    with panels(4, width=4.0, height=3.6) as (figure, axes):
        for i, (axis, label) in enumerate(zip(axes, labels, strict=False)):
            axis.plot(fine, _series(exact(fine, 1))[i], color="black", lw=1, label="exact, D = 1")
            if i == 2:
                axis.plot(
                    fine, _series(exact(fine, 2), 2)[i], "--", color="black", lw=1, label="exact, D = 2"
                )
            for name, (text, marker, size, j) in marks.items():
                values = _series(ways[name], 2 if name == "plane" else 1)[i]
                if name == "particles" and i == 2:  # elsewhere the estimate is noise about 0
                    values, text = np.where(values > 2 * shown.bars[i], values, np.nan), f"{text} (> 2 s.e.)"
                style = {"ls": "", "marker": marker, "ms": size, "mfc": "none", "color": COLOURS[j]}
                axis.plot(TIMES, values, label=text, **style)
            rest = _series(Moments(*(np.array([v]) for v in gibbs_law)))[i]
            if i < 2:
                axis.axhline(rest[0], color="0.6", lw=1, ls=":", label="fixed point")
            axis.set(xlabel="time t", ylabel=label)
        axes[2].set_yscale("log")
        axes[2].legend(fontsize=7)
        for name, (text, marker, size, j) in marks.items():
            D = 2 if name == "plane" else 1
            apart = np.abs(np.array(_series(ways[name], D)) - np.array(_series(exact(TIMES, D), D)))
            style = {"ls": "-", "lw": 0.7, "marker": marker, "ms": size, "mfc": "none", "color": COLOURS[j]}
            axes[3].plot(TIMES, apart.max(axis=0), label=text, **style)
        axes[3].plot(TIMES, shown.bars.max(axis=0), "--", color=COLOURS[0], lw=1, label="1 s.e. of particles")
        axes[3].set(xlabel="time t", ylabel="largest error of the three", yscale="log")
        axes[3].legend(handles=axes[3].lines[-1:], fontsize=7, loc="lower right")
        axes[0].legend(fontsize=7)
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    say("fixed point")
    law, checks = rest(settings.line[-1])
    say("minimising movements")
    errors = [distances(moved(step, [UNTIL]), exact([UNTIL], 1))[:, 0] for step in settings.moves]
    checks += move_checks(np.array(errors), settings.moves)
    coarse, fine = (moved(step, TIMES) for step in settings.moves[1:3])
    extrapolated = Moments(*(2 * b - a for a, b in zip(coarse, fine, strict=True)))
    say("grids")
    line = grid_moments(flow_on(on_cells(1, settings.line[-1]), TIMES).states, 1)
    plane = grid_moments(flow_on(on_cells(2, settings.shown), TIMES).states, 2)
    orders = {1: grid_errors(1, settings.line), 2: grid_errors(2, settings.plane)}
    checks += grid_checks(orders, line, plane, settings)
    moments = {}
    for D in (1, 2):
        say(f"particles, D = {D}, {settings.clouds} clouds")
        moments[D] = clouds(D, range(100 * D, 100 * D + settings.clouds), settings.width)
        checks += cloud_checks(in_standard_errors(moments[D], D, settings.width), D, settings.most_errors)
    curves = Curves(*_averaged(moments[1]), line, plane, coarse, extrapolated)
    return Outcome(tuple(checks), _draw(curves, law, settings))
