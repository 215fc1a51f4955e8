"""One law of neurons, several ways: particles, grids, minimising movements and characteristics.

Two problems in reduced coordinates, both with a = 1:

- a single neuron, y = erf(⟨w*, x⟩), x ~ N(0, I_5), neurons erf(⟨w, x⟩): θ̄ = (s, r), a density in the plane;
- two centred Gaussians in R^10, Δ = 0.5, neurons σ(⟨w, x⟩) with the truncated linear σ of Mei, Montanari and
  Nguyen, PNAS 2018: θ̄ = r, a density on the line.

Without noise R(ρ_t) comes from characteristics (`limit`), reduced particles, a grid and minimising movements.
With noise (β, λ) it comes from a grid, minimising movements (on the line by quantiles, in the plane by a
proximal step, then noise), reduced Langevin, whose radii have the drift (d_i − 1)/(βr) in a block of
dimension d_i, and Langevin in R^d, which knows nothing of that drift. Every way states its error:

- grids: cells h and 2h, (4R_h − R_2h)/3, and a third of their difference, which is the error of R_h;
- movements: steps τ, τ/2 and τ/4, 2R_{τ/4} − R_{τ/2}, and its difference from 2R_{τ/2} − R_τ;
- random ways: means over seeds of 2R(2n, η/2) − R(n, η), without bias to first order in 1/n and η, and the
  standard error, starts being points scrambled anew for each seed;
- characteristics: what `limit` states.

R is always that of the reduced problem, so neurons in R^d are judged by their (s, r) too."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from .._tracing import jit
from ..dynamics.flow import GradientFlow
from ..dynamics.grid.flow import GridFlow
from ..dynamics.jko.jko import JKO
from ..dynamics.langevin import Langevin
from ..functionals.expectations import ClosedForm, Quadrature, Sample
from ..functionals.risk import Risk
from ..loop import evolve
from ..mean_field.limit import limit
from ..problems.laws import Gaussian
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..problems.targets import single_index
from ..states.gridding import on_grid
from ..states.lifting import reduce
from ..states.particles import Particles
from ..states.replicas import stack
from ..states.starts import Law, init
from .base import Check, Outcome, Say, finished
from .several_ways_figure import draw
from .two_gaussians_dynamics import problem_of

TIMES = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.6, 2.0])
DECAY, MOVE, STEP = 0.1, 0.1, 0.02
POINTS, PROBES = 256, 512
MOST_APART = {"no noise": 5e-3, "noise": 1e-2}


class Case(NamedTuple):
    """A problem, its start in R^d, β, and how finely it is solved: nodes of E, a box and its cells."""

    name: str
    problem: Problem
    scale: float
    beta: float
    orders: tuple[int, int]  # of the mean over directions, of E over x
    low: tuple[float, ...]
    high: tuple[float, ...]
    cells: tuple[int, ...]  # of the coarser grid
    tol: float  # of the limit

    @property
    def start(self) -> Law:
        return init(self.problem, w=self.scale)

    @property
    def reduced(self) -> Risk:
        return Risk(self.problem.reduced(self.orders[0]), Quadrature(self.orders[1]))

    @property
    def law(self) -> Law:
        return self.start.reduced().on(self.reduced.problem)


class Way(NamedTuple):
    """R at TIMES with its stated error, and the law at the end in θ̄: particles, weighted, or a density."""

    risks: np.ndarray
    errors: np.ndarray
    end: Any


SINGLE = Case(
    "single neuron",
    Problem(x=Gaussian(5), target=single_index("erf"), neuron=Neuron("erf", output="unit")),
    1.0, 20.0, (8, 20), (-2.6, 0.0), (3.4, 3.2), (24, 18), 2e-4,
)  # fmt: skip
TWO = Case("two Gaussians", problem_of(10, 0.5), 0.8, 20.0, (32, 32), (0.0,), (4.0,), (200,), 5e-4)


@dataclass(frozen=True)
class Settings:
    """Which problems, and how many seeds; the defaults are the published run's."""

    cases: tuple[Case, ...] = (SINGLE, TWO)
    width: int = 256
    seeds: int = 12
    scrambles: int = 8
    most_errors: float = 5.0
    slack: float = 1.0  # on MOST_APART


FULL = Settings()
# The line alone, on half the cells. Means over 4 scrambles and 4 seeds have Student's t of 3 degrees, of
# which the largest of 9 (they are correlated) is above 12 in one of a hundred; the standard error of R is
# 8e-3, of which the largest distance allows five.
REDUCED = Settings(
    (TWO._replace(cells=(100,), tol=2e-3),), width=128, seeds=4, scrambles=4, most_errors=12.0, slack=4.0
)


def characteristics(case: Case) -> Way:
    run = finished(limit(case.problem, case.start, TIMES, case.tol, probes=PROBES, progress=False))
    theta, weights = np.asarray(run.final.theta), np.asarray(run.final.weights)
    probes = Particles(theta[weights == 0], neuron=case.reduced.problem.neuron)
    return Way(np.asarray(run["risk"]), np.full(len(TIMES), run.info["error"]), probes)


def on_grids(case: Case, beta: float, decay: float) -> Way:
    """Two grids, the finer with half the cell."""
    runs = []
    for k in (1, 2):
        start = on_grid(case.law, case.low, case.high, [k * n for n in case.cells])
        flow = GridFlow(case.reduced, beta=beta, decay=decay, tol=1e-5)
        runs.append(finished(evolve(flow, start, TIMES, progress=False)))
    coarse, fine = (np.asarray(run["risk"]) for run in runs)
    return Way((4 * fine - coarse) / 3, np.abs(fine - coarse) / 3, runs[1].final)


def movements(case: Case, beta: float, decay: float) -> Way:
    """Three steps from a law that is not random: quantiles on the line, points in the plane."""
    on_line = case.law.D == 1  # where smaller steps are cheap, and two Gaussians want them
    start, step = (case.law.nodes(64), MOVE / 2) if on_line else (case.law.points(POINTS), MOVE)
    runs = [
        finished(evolve(JKO(case.reduced, tau, beta=beta, decay=decay), start, TIMES, progress=False))
        for tau in step * np.array([1, 0.5, 0.25])
    ]
    risks = np.array([run["risk"] for run in runs])
    rough, better = 2 * risks[1:] - risks[:-1]
    return Way(better, np.abs(better - rough), runs[-1].final)


def scrambled(case: Case, scrambles: int) -> Way:
    """Gradient flow of reduced points, scrambled anew for every seed."""
    starts = stack([case.law.points(POINTS, seed=seed) for seed in range(scrambles)])
    run = finished(evolve(GradientFlow(case.reduced), starts, TIMES, progress=False))
    return _averaged(np.asarray(run["risk"]).T, [run.final.replica(r) for r in range(scrambles)])


def random(case: Case, make: Callable[[int, int], tuple[Any, Particles]], seeds: range) -> Way:
    """`make(seed, k)`: dynamics with steps η/k and a start of kn particles, in R^d or in θ̄."""
    risk, values, ends = case.reduced, [], []
    for seed in seeds:
        rows = []
        for k in (1, 2):
            dynamics, start = make(seed, k)
            key = jax.random.fold_in(jax.random.key(seed), k)
            run = finished(evolve(dynamics, start, TIMES, key=key, progress=False))
            states = [s if s.D == case.law.D else reduce(case.problem, s) for s in run.states]
            rows.append(np.array([float(_value(risk, s)) for s in states]))
        values.append(2 * rows[1] - rows[0])
        ends.append(states[-1])
    return _averaged(np.array(values), ends)


@jit
def _value(risk: Risk, state: Particles) -> Any:
    return risk.value(state)


def _averaged(values: np.ndarray, ends: list[Particles]) -> Way:
    theta = np.concatenate([np.asarray(end.theta) for end in ends])
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    return Way(values.mean(axis=0), error, Particles(theta, neuron=ends[0].neuron))


def langevin(case: Case, in_full: bool, width: int) -> Callable[[int, int], tuple[Any, Particles]]:
    """Langevin of reduced particles, or of neurons in R^d: in closed form, or each seed on its own sample."""

    def make(seed: int, k: int) -> tuple[Any, Particles]:
        risk, law = case.reduced, case.law
        if in_full:
            law = case.start
            way = ClosedForm() if case.name == SINGLE.name else Sample(4096, seed=seed)
            risk = Risk(case.problem, way)
        start = law.points(k * width, seed=seed)
        return Langevin(risk, STEP / k, beta=case.beta, decay=DECAY), start

    return make


def split(case: Case, width: int) -> Callable[[int, int], tuple[Any, Particles]]:
    """Minimising movements split from the noise, in the plane."""
    return lambda seed, k: (
        JKO(case.reduced, MOVE / k, beta=case.beta, decay=DECAY),
        case.law.points(k * width // 2, seed=seed),
    )


def without_noise(case: Case, settings: Settings, say: Say) -> dict[str, Way]:
    """The ways of the plain flow; the first is what the others are compared with."""
    say(f"{case.name}: characteristics")
    ways = {"characteristics": characteristics(case)}
    say(f"{case.name}: particles, grids, JKO")
    ways["particles"] = scrambled(case, settings.scrambles)
    ways["grid"] = on_grids(case, math.inf, 0.0)
    ways["JKO"] = movements(case, math.inf, 0.0)
    return ways


def with_noise(case: Case, settings: Settings, say: Say) -> dict[str, Way]:
    """The ways with noise; the first is what the others are compared with."""
    say(f"{case.name}, noise: grids, JKO")
    ways = {"grid": on_grids(case, case.beta, DECAY)}
    width, on_line = settings.width, case.law.D == 1
    by_seeds = lambda: random(case, split(case, width), range(settings.scrambles))
    ways["JKO"] = movements(case, case.beta, DECAY) if on_line else by_seeds()
    for i, way in enumerate(("Langevin in θ̄", "Langevin in R^d")):
        say(f"{case.name}, noise: {way}")
        first = 1000 * (1 + i)
        ways[way] = random(case, langevin(case, bool(i), width), range(first, first + settings.seeds))
    return ways


def checks(case: Case, ways: dict[str, Way], noise: str, settings: Settings = FULL) -> list[Check]:
    """Every way beside the first: the worst of TIMES in stated errors, with its sign, and absolutely."""
    (against, reference), *others = ways.items()
    most, apart_most = settings.most_errors, settings.slack * MOST_APART[noise]
    comparisons = []
    for name, way in others:
        apart = way.risks - reference.risks
        errors = np.hypot(way.errors, reference.errors)
        z = apart / errors
        i, j = int(np.argmax(np.abs(z))), int(np.argmax(np.abs(apart)))
        what = f"{case.name}, {noise}: R by {name} − by {against}"
        comparisons.append(Check(f"{what}, in stated errors", "0", float(z[i]), 1.0, -most, most))
        gap, error = float(np.abs(apart[j])), float(errors[j])
        comparisons.append(Check(f"{what}, largest", "0", gap, error, 0.0, apart_most))
    return comparisons


def run(say: Say, settings: Settings = FULL) -> Outcome:
    by_problem, claims = {}, []
    for case in settings.cases:
        plain, noisy = without_noise(case, settings, say), with_noise(case, settings, say)
        for ways, noise in ((plain, "no noise"), (noisy, "noise")):
            claims += checks(case, ways, noise, settings)
        by_problem[case.name] = (plain, noisy)
    return Outcome(tuple(claims), draw(TIMES, by_problem))
