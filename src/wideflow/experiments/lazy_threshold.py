"""Where training becomes lazy: the scale at which a network stays near its linearisation while it fits.

With the prefactor α_M/√M before the sum over M neurons, m samples in R^d with random labels, and a centred
start, training is lazy as soon as

    α_M ≳ √(m²/(M d)).

It comes from Lip(Df)·|y| ≪ σ_min(Df)²: |y| ~ √m, σ_min(Df)² ~ α_M² d, and the Lipschitz constant
(α_M/√M)√(m d) of the worst case. In the library's notation f = α ∫σ*dρ it is α = √M α_M ≳ m/√d, free of M.
The condition is sufficient: the threshold α_M* falls at least like M^−½ and like d^−½, and grows at most like
m. It is not necessary. Fitting moves neurons by |w(t) − w(0)| ~ √(m/d)/α, hence ⟨w, x⟩ on typical samples
(m ≥ d) by √(m/d)/α: features move for α_M below √(m/(M d)), an exponent ½ in m. The kernel and the function
feel the finite width too, as M is not ≫ m here: their thresholds fall faster with M.

All this wants σ_min(Df)² ~ α_M² d, which is an assumption on data and start. With SCALE = 1 the kernel's
least eigenvalue falls threefold from m = 32 to 256: the exponents in m are larger then (0.6 to 0.7 by
features), and that by function passes 1 at M = 256.

x ~ N(0, I_d), y = ±1 at random, neurons a erf(⟨w, x⟩), a = ±1, w ~ N(0, (SCALE²/d) I), each beside its mirror
image, by gradient flow until the linearised network has fitted the labels to UNFITTED. Three senses of lazy,
each of which locates an α_M* where it reaches LEVEL:

- features: rms over samples and neurons of ⟨w(t) − w(0), x⟩, relative to that of ⟨w(0), x⟩;
- kernel: ‖K_t − K_0‖/‖K_0‖ on the samples;
- function: network minus its linearisation on fresh points, relative to the latter."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..diagnostics.scaling import Slope, fit_slope, mean_and_error
from ..dynamics.flow import GradientFlow
from ..dynamics.kernel_flow import KernelFlow
from ..figures import COLOURS, panels
from ..functionals.risk import Risk
from ..kernels.tangent import tangent_kernel
from ..loop import evolve
from ..problems.laws import Dataset
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..states.marginals import Rademacher
from ..states.particles import Particles
from ..states.starts import init
from .base import Check, Outcome, Say, finished, slope_check

LEVEL = 0.1
SENSES = ("features", "kernel", "function")
SCALE = 2.0  # of w: erf is steep enough there for a kernel that fits random labels well
UNFITTED = 0.3  # of the labels' root mean square
FRESH = 256
LAZIEST = 64.0  # the largest α; it is halved until nothing is lazy any more
DIGITS = 1e-5


class Size(NamedTuple):
    M: int
    m: int
    d: int


@dataclass(frozen=True)
class Settings:
    """The sizes that are swept one at a time, and seeds of each; the defaults are the published run's."""

    width: int = 1024  # along the other sweeps; along d the second of the widths
    samples: int = 128
    dimension: int = 32
    widths: tuple[int, ...] = (64, 256, 1024)
    many: tuple[int, ...] = (32, 64, 128, 256)
    dimensions: tuple[int, ...] = (16, 32, 64)
    seeds: int = 3
    tolerance: float = 0.15  # on features: three error bars, and a tenth for m and d that are not large
    slack: float = 0.0  # on the bounds that the lectures' condition is for the others

    @property
    def sweeps(self) -> dict[str, list[Size]]:
        return {
            "M": [Size(M, self.samples, self.dimension) for M in self.widths],
            "m": [Size(self.width, m, self.dimension) for m in self.many],
            "d": [Size(self.widths[1], self.samples, d) for d in self.dimensions],
        }


FULL = Settings()
# Two seeds at the ends of each sweep: error bars of 0.05 to 0.1, and d is smaller still.
REDUCED = Settings(256, 128, 16, (64, 256), (32, 128), (16, 64), seeds=2, tolerance=0.3, slack=0.15)


class Task(NamedTuple):
    """Random labels, a start, and what its linearisation makes of them at the time when they are fitted."""

    risk: Risk
    start: Particles
    x: np.ndarray
    fresh: np.ndarray
    time: float
    kernel: np.ndarray
    linear: np.ndarray  # on the fresh points


def fitting_time(kernel: np.ndarray, y: np.ndarray) -> float:
    """t with |exp(−Kt/m)y| = UNFITTED |y|."""
    from scipy.optimize import brentq

    values, vectors = np.linalg.eigh(kernel / len(y))
    parts = vectors.T @ y
    left = lambda t: float(np.linalg.norm(np.exp(-values * t) * parts) / np.linalg.norm(y)) - UNFITTED
    end = 1.0
    while left(end) > 0:
        end *= 2
    return float(brentq(left, 0.0, end))


def task(size: Size, seed: int) -> Task:
    rng = np.random.default_rng([seed, *size])
    x, fresh = rng.normal(size=(size.m, size.d)), rng.normal(size=(FRESH, size.d))
    y = rng.choice([-1.0, 1.0], size.m)
    risk = Risk(Problem(x=Dataset(x, y), neuron=Neuron("erf")))
    start = init(risk.problem, a=Rademacher(), w=SCALE).sample(jax.random.key(seed), size.M, mirrored=True)
    kernel = np.asarray(tangent_kernel(start, jnp.asarray(x)))
    t = fitting_time(kernel, y)
    frozen = finished(evolve(KernelFlow(risk), start, [t], progress=False, snapshots=False))
    return Task(risk, start, x, fresh, t, kernel, np.asarray(frozen.final(fresh)))


def movements(task: Task, alpha: float) -> dict[str, float]:
    """How far training at scale α leaves the start and its linearisation, in the three senses."""
    start = Particles(task.start.theta, alpha=alpha, neuron=task.start.neuron)
    flow = GradientFlow(task.risk, rtol=DIGITS / max(1.0, alpha))
    final = finished(evolve(flow, start, [task.time], progress=False, snapshots=False)).final
    before, after = (task.x @ np.asarray(particles.theta)[:, 1:].T for particles in (start, final))
    kernel = np.asarray(tangent_kernel(final, jnp.asarray(task.x)))
    gap = np.asarray(final(task.fresh)) - task.linear
    return {
        "features": float(np.linalg.norm(after - before) / np.linalg.norm(before)),
        "kernel": float(np.linalg.norm(kernel - task.kernel) / np.linalg.norm(task.kernel)),
        "function": float(np.linalg.norm(gap) / np.linalg.norm(task.linear)),
    }


def located(size: Size, seed: int) -> dict[str, float]:
    """α_M* = α*/√M in each sense: from the lazy side, α is halved until every one has passed LEVEL."""
    case = task(size, seed)
    alphas: list[float] = []
    rows: list[dict[str, float]] = []
    while not rows or min(rows[-1].values()) <= LEVEL:
        alphas.append(LAZIEST / 2 ** len(alphas))
        rows.append(movements(case, alphas[-1]))
    at = {}
    for sense in SENSES:
        heights = np.log([row[sense] for row in rows])  # grows as α falls
        at[sense] = float(np.exp(np.interp(np.log(LEVEL), heights, np.log(alphas))) / np.sqrt(size.M))
    return at


Located = dict[Size, dict[str, tuple[float, float]]]


def thresholds(sizes: list[Size], say: Say, seeds: int) -> Located:
    """α_M* with its standard error over data and starts, for each size and sense."""
    thresholds: Located = {}
    for size in dict.fromkeys(sizes):
        say(f"the threshold for M = {size.M}, m = {size.m}, d = {size.d}")
        each = [located(size, seed) for seed in range(seeds)]
        thresholds[size] = {sense: mean_and_error([row[sense] for row in each]) for sense in SENSES}
    return thresholds


def exponent(located: Located, settings: Settings, along: str, sense: str) -> Slope:
    sizes = settings.sweeps[along]
    rows = np.array([located[size][sense] for size in sizes])
    # three draws may agree by luck: no α* is known better than to the hundredth
    return fit_slope(
        [getattr(size, along) for size in sizes], rows[:, 0], np.maximum(rows[:, 1], 0.01 * rows[:, 0])
    )


def checks_of(located: Located, settings: Settings) -> list[Check]:
    """Features follow α_M* ~ √(m/(M d)) itself, which is within the lectures' condition; of the others the
    condition is a bound."""
    bounds = {
        "M": ("-0.5 or less", -1.0, -0.45),
        "m": ("at most +1", 0.4, 1.0),
        "d": ("-0.5 or less", -1.5, -0.45),
    }
    sharp = {"M": -0.5, "m": 0.5, "d": -0.5}
    checks = []
    for along, bound in bounds.items():
        for sense in SENSES:
            slope, what = exponent(located, settings, along, sense), f"exponent in {along} of α_M* by {sense}"
            if sense == "features":
                checks.append(slope_check(what, slope, sharp[along], settings.tolerance))
            else:
                low, high = bound[1] - settings.slack, bound[2] + settings.slack
                checks.append(Check(what, bound[0], slope.value, slope.error, low, high))
    return checks


def _draw(located: Located, settings: Settings) -> Any:
    from matplotlib.ticker import FuncFormatter, LogLocator

    names = {"M": "width M", "m": "samples m", "d": "dimension d"}
    rest = {
        "M": f"m = {settings.samples}, d = {settings.dimension}",
        "m": f"M = {settings.width}, d = {settings.dimension}",
        "d": f"M = {settings.widths[1]}, m = {settings.samples}",
    }
    bound = {"M": -0.5, "m": 1.0, "d": -0.5}
    with panels(3, width=4.6, height=4.0) as (figure, axes):
        for axis, (along, sizes) in zip(axes, settings.sweeps.items(), strict=True):
            at = np.array([getattr(size, along) for size in sizes], float)
            for colour, sense in zip(COLOURS, SENSES, strict=False):
                rows = np.array([located[size][sense] for size in sizes])
                slope = exponent(located, settings, along, sense)
                label = f"by {sense}: {slope.value:+.2f} ± {slope.error:.2f}"
                axis.errorbar(at, *rows.T, fmt="o", ms=4, capsize=2, color=colour, label=label)
                axis.plot(at, slope.at(at), "--", lw=1, color=colour)
            highest, line = [located[size]["features"][0] for size in sizes], at ** bound[along]
            line *= 1.3 * max(highest / line)  # above the points: only its slope is claimed
            axis.plot(at, line, color="0.5", lw=2, label=f"slope {bound[along]:+g} of √(m²/(M d))")
            axis.set(xlabel=names[along], xscale="log", yscale="log", title=rest[along])
            axis.set_xticks(at, [f"{v:g}" for v in at])
            axis.minorticks_off()
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
            axis.legend(fontsize=7.5)
        axes[0].set(ylabel="threshold α_M* (prefactor α_M/√M)")
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    sizes = [size for sweep in settings.sweeps.values() for size in sweep]
    located = thresholds(sizes, say, settings.seeds)
    return Outcome(tuple(checks_of(located, settings)), _draw(located, settings))
