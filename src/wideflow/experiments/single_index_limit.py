"""The mean-field limit of a single-index target, the same risk curve in three independent ways.

y = φ(⟨w*, x⟩), x ~ N(0, I_d), a ~ N(0, 1), w ~ N(0, I/d), for φ = erf, relu and tanh; Mei, Montanari and
Nguyen, PNAS 2018. By symmetry the law of (a, s = ⟨w, w*⟩, r = |P⊥w|) closes. R(ρ_t) comes from

1. `limit`: Gauss nodes of (a, s, r), carried along the reduced flow;
2. neurons in R^d, unreduced, by gradient flow: E in closed form for erf and relu, and for tanh, which has
   no closed dual, on a large fixed sample, a new one for every seed;
3. neurons in R^d by SGD on fresh samples.

Ways 2 and 3 have a bias of first order in 1/n, way 3 one in the step η too. The combination

    2R(2n, η/2) − R(n, η)

of two runs from one seed has neither; its mean over seeds has a standard error, to which the distance
from way 1 is compared. The digits of the limit are those of the reference table, and d = ∞ is also
what finite dimensions extrapolate to, R_d = R_∞ + c/d + e/d²."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ..diagnostics.scaling import mean_and_error
from ..dynamics.flow import GradientFlow
from ..dynamics.sgd import SGD
from ..evolve import evolve
from ..functionals.expectations import ClosedForm, Sample
from ..functionals.risk import Risk
from ..limit import limit
from ..problems.laws import Gaussian
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..problems.targets import single_index
from ..references import REFERENCES
from ..report.figures import COLOURS, panels
from ..states.starts import init
from .base import Check, Experiment, Outcome, finished

LINKS, DIMENSIONS = ("erf", "relu", "tanh"), (5, 50)
TIMES = (1.0, 2.0, 5.0)  # where the three ways are compared
CURVE = tuple(np.linspace(0, 5, 21))  # holds TIMES
TOLERANCE = 1e-5
FLOW_WIDTH, FLOW_SEEDS, FLOW_RTOL = 128, 24, 1e-5
SAMPLE_SEEDS, SAMPLE = 10, 8000  # for tanh
SGD_WIDTH, SGD_SEEDS, SGD_STEP, SGD_BATCH = 256, 16, 0.02, 20
MOST_ERRORS, MOST_APART = 4.0, 3e-3
TABLE = {  # (t, digits as printed) by dimension, for erf
    math.inf: ((0, "0.2322795272"), (1, "0.109047313"), (2, "0.050656744"), (5, "0.0042973")),
    50: ((1, "0.107199"), (2, "0.049445")),
}
TABLE_TOLERANCE = {math.inf: 1e-8, 50: 1e-6}
EXTRAPOLATED = (50, 100, 200)

Say = Callable[[str], None]


class Case(NamedTuple):
    """One link in one dimension: the limit at CURVE, and (mean, error) at TIMES of the other ways."""

    link: str
    d: int
    limit: np.ndarray
    flow: np.ndarray
    sgd: np.ndarray


def problem_of(link: str, d: Any) -> Problem:
    return Problem(x=Gaussian(d), target=single_index(link), neuron=Neuron(link))


def limit_risks(link: str, d: float, ts: Any, tol: float) -> np.ndarray:
    """R(ρ_t) at ts, from the reduced characteristics."""
    problem = problem_of(link, d)
    return np.asarray(finished(limit(problem, init(problem), ts, tol, progress=False))["risk"])


def _risk(problem: Problem, link: str, seed: int) -> Risk:
    """E in closed form, or on a fixed sample where the link has no dual."""
    return Risk(problem, Sample(SAMPLE, seed) if link == "tanh" else ClosedForm())


def _combined(runs: Callable[[int, int], Any], seeds: int) -> np.ndarray:
    """Rows (mean, error) over seeds of 2R(2n, η/2) − R(n, η); `runs(seed, k)` is R for kn and η/k."""
    values = np.array([2 * runs(seed, 2) - runs(seed, 1) for seed in range(seeds)])
    return np.array([mean_and_error(column) for column in values.T])


def flow_risks(link: str, d: int) -> np.ndarray:
    """Gradient flow of unreduced neurons, extrapolated in the width: rows (mean, error) at TIMES."""
    problem = problem_of(link, d)

    def risks(seed: int, k: int) -> Any:
        start = init(problem).sample(jax.random.key(1000 * d + seed), k * FLOW_WIDTH)
        flow = GradientFlow(_risk(problem, link, seed), rtol=FLOW_RTOL)
        return finished(evolve(flow, start, TIMES, snapshots=False))["risk"]

    return _combined(risks, SAMPLE_SEEDS if link == "tanh" else FLOW_SEEDS)


def sgd_risks(link: str, d: int) -> np.ndarray:
    """One-pass SGD, extrapolated in width and step at once: rows (mean, error) at TIMES."""
    problem = problem_of(link, d)

    def risks(seed: int, k: int) -> Any:
        start = init(problem).sample(jax.random.key(5000 * d + seed), k * SGD_WIDTH)
        sgd = SGD(_risk(problem, link, 77 + seed), SGD_STEP / k, SGD_BATCH, one_pass=True)
        key = jax.random.key(9000 * d + 2 * seed + k)
        return finished(evolve(sgd, start, TIMES, key=key, snapshots=False))["risk"]

    return _combined(risks, SGD_SEEDS)


def case(link: str, d: int, say: Say) -> Case:
    """The three ways for one link and dimension."""
    say(f"{link}, d = {d}: the limit")
    exact = limit_risks(link, d, CURVE, TOLERANCE)
    say(f"{link}, d = {d}: flow of unreduced neurons")
    flow = flow_risks(link, d)
    say(f"{link}, d = {d}: SGD on fresh samples")
    return Case(link, d, exact, flow, sgd_risks(link, d))


def case_checks(found: Case) -> list[Check]:
    """Way 2 and way 3 against way 1, in standard errors and absolutely: the worst of TIMES."""
    exact = np.interp(TIMES, CURVE, found.limit)  # TIMES are points of CURVE
    checks = []
    for way, rows in (("flow in R^d", found.flow), ("SGD", found.sgd)):
        apart = rows[:, 0] - exact
        z = np.abs(apart) / rows[:, 1]
        worst, what = int(np.argmax(np.abs(apart))), f"{found.link}, d = {found.d}, {way} − limit"
        checks.append(Check(f"{what}, in standard errors", "0", float(z.max()), 1.0, 0.0, MOST_ERRORS))
        gap, error = float(np.abs(apart[worst])), float(rows[worst, 1])
        checks.append(Check(f"{what}, largest", "0", gap, error, 0.0, MOST_APART))
    return checks


def table_checks(say: Say) -> tuple[list[Check], dict[float, float]]:
    """The reference table to half a unit of its last digit, and R(1) by dimension."""
    checks: list[Check] = []
    at_one: dict[float, float] = {}
    for d, entries in TABLE.items():
        say(f"the table of the limit, d = {d:g}")
        tol = TABLE_TOLERANCE[d]
        risks = limit_risks("erf", d, [t for t, _ in entries], tol)
        for (t, digits), risk in zip(entries, risks, strict=True):
            at_one |= {d: float(risk)} if t == 1 else {}
            unit = 10.0 ** -len(digits.split(".")[1])
            off = abs(float(risk) - float(digits)) / unit
            what = f"erf, d = {d:g}: R({t}) = {risk:.{len(digits)}f}, units off the last digit"
            checks.append(Check(what, f"{digits}, 0 units", off, tol / unit, 0.0, 0.5))
    return checks, at_one


def extrapolation_check(at_one: dict[float, float], say: Say) -> tuple[Check, list[tuple[float, float]]]:
    """R_d(1) = R_∞ + c/d + e/d² through three dimensions, at 1/d = 0."""
    points = []
    for d in EXTRAPOLATED:
        say(f"R(1) for the extrapolation to d = inf, d = {d}")
        tol = TABLE_TOLERANCE[50]
        points.append((1 / d, at_one[d] if d in at_one else float(limit_risks("erf", d, [1.0], tol)[0])))
    x, y = np.array(points).T
    value = float(np.polyfit(x, y, 2)[-1])
    gap = value - at_one[math.inf]
    what = f"erf: R_∞(1) extrapolated from d = {EXTRAPOLATED} ({value:.7f}), minus that of d = inf"
    return Check(what, "0", gap, 5 * TABLE_TOLERANCE[50], -1e-5, 1e-5), points


def _draw(cases: list[Case], points: list[tuple[float, float]], infinite: float) -> Any:
    """Risk curves for each dimension, and R(1) against 1/d."""
    with panels(3) as (figure, axes):
        for found in cases:
            axis, colour = axes[DIMENSIONS.index(found.d)], COLOURS[LINKS.index(found.link)]
            axis.plot(CURVE, found.limit, color=colour, lw=1.5, label=f"{found.link}, limit")
            for marker, rows, shift in (("o", found.flow, -0.06), ("s", found.sgd, 0.06)):
                style = {"fmt": marker, "ms": 4, "mfc": "white", "capsize": 2, "color": colour}
                axis.errorbar(np.add(TIMES, shift), rows[:, 0], rows[:, 1], **style)
        for axis, d in zip(axes, DIMENSIONS, strict=False):
            axis.plot([], [], "o", mfc="white", color="black", ms=4, label="flow in R$^d$")
            axis.plot([], [], "s", mfc="white", color="black", ms=4, label="SGD")
            axis.set(xlabel="time t", ylabel="risk R", yscale="log", title=f"d = {d}")
            axis.legend(fontsize=8)
        x, y = np.array(points).T
        fit, fine = np.polyfit(x, y, 2), np.linspace(0, x.max(), 50)
        axes[2].plot(fine, np.polyval(fit, fine), "--", color=COLOURS[0], label="R + c/d + e/d²")
        axes[2].plot(x, y, "o", ms=4, color=COLOURS[0], label="finite d")
        axes[2].plot([0], [infinite], "*", ms=9, color=COLOURS[1], label="d = ∞")
        axes[2].set(xlabel="1/d", ylabel="R(1), erf", title="d → ∞")
        axes[2].legend()
    return figure


def run(say: Say) -> Outcome:
    cases = [case(link, d, say) for link in LINKS for d in DIMENSIONS]
    checks, at_one = table_checks(say)
    extrapolated, points = extrapolation_check(at_one, say)
    compared = [check for found in cases for check in case_checks(found)]
    figure = _draw(cases, points, at_one[math.inf])
    return Outcome((*compared, *checks, extrapolated), figure)


EXPERIMENT = Experiment(
    "single-index-limit",
    "The mean-field limit of a single-index target is the same from the reduced flow, from neurons in R^d "
    "and from SGD, and has the digits of the reference table.",
    REFERENCES["mei2018"],
    run,
)
