"""Known digits of a mean-field limit, and d = ∞ as what finite dimensions extrapolate to.

y = erf(⟨w*, x⟩), neurons a erf(⟨w, x⟩), x ~ N(0, I_d), a ~ N(0, 1), w ~ N(0, I/d). In d = ∞ the start has
R(0) = asin(2/3)/π, and R(1), R(2), R(5) are known to the digits of the table, in d = 50 to six. As the law
of |P⊥w|² has a variance of order 1/d, R_d is a power series in 1/d: with R_d for three dimensions

    R_d = R_∞ + c/d + e/d² + O(d⁻³)

gives R_∞, which must be that of the library's own d = inf."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..figures import COLOURS, panels
from .base import Check, Outcome, Say
from .three_ways import limit_risks, problem_of

TABLE = {  # (t, digits as known) by dimension
    math.inf: ((0, "0.232279527"), (1, "0.109047313"), (2, "0.050656744"), (5, "0.0042973")),
    50: ((1, "0.107199"), (2, "0.049445")),
}
DIMENSIONS = (50, 100, 200)  # for the extrapolation


@dataclass(frozen=True)
class Settings:
    """To which tolerance of the limit; the defaults are the published run's."""

    # by dimension: a quarter of the last digit
    table: dict[float, float] = field(default_factory=lambda: {math.inf: 2.4e-10, 50: 2.4e-7})
    extrapolation: float = 2e-6
    most_apart: float = 3e-5  # the term in 1/d³, and the tolerance, which the fit multiplies by 4


FULL = Settings()
# The table to four tolerances of the limit, which at full size are one unit of its last digit; the fit
# multiplies the tolerance by 4, and its result is within two and a half of that.
REDUCED = Settings(table={math.inf: 1e-6, 50: 2e-5}, extrapolation=2e-5, most_apart=2e-4)


def table_checks(settings: Settings, say: Say) -> tuple[list[Check], dict[float, float]]:
    """The table to a unit of its last digit, or to four tolerances if that is more; R(1) by dimension."""
    checks: list[Check] = []
    at_one: dict[float, float] = {}
    for d, entries in TABLE.items():
        say(f"the table of the limit, d = {d:g}")
        risks, error = limit_risks(problem_of("erf", d), [t for t, _ in entries], settings.table[d])
        for (t, digits), risk in zip(entries, risks, strict=True):
            at_one |= {d: float(risk)} if t == 1 else {}
            unit = 10.0 ** -len(digits.split(".")[1])
            off = abs(float(risk) - float(digits)) / unit
            what = f"d = {d:g}: R({t}) = {risk:.{len(digits)}f}, units off the last digit"
            checks.append(
                Check(
                    what,
                    f"{digits}, 0 units",
                    off,
                    error / unit,
                    0.0,
                    max(1.0, 4 * settings.table[d] / unit),
                )
            )
    return checks, at_one


def extrapolation_check(at_one: dict[float, float], settings: Settings, say: Say) -> tuple[Check, np.ndarray]:
    """R_∞(1) by the parabola in 1/d through three dimensions; and its points."""
    points = []
    for d in DIMENSIONS:
        say(f"R(1) for the extrapolation to d = inf, d = {d}")
        known = at_one.get(d)
        risk = (
            limit_risks(problem_of("erf", d), [1.0], settings.extrapolation)[0][0] if known is None else known
        )
        points.append((1 / d, float(risk)))
    x, y = np.array(points).T
    value = float(np.polyfit(x, y, 2)[-1])
    what = f"R_∞(1) extrapolated from d = {DIMENSIONS}: {value:.7f}, minus that of d = inf"
    apart = value - at_one[math.inf]
    most = settings.most_apart
    return Check(what, "0", apart, 4 * settings.extrapolation, -most, most), np.array(points)


def _draw(points: np.ndarray, infinite: float) -> Any:
    x, y = points.T
    fit, fine = np.polyfit(x, y, 2), np.linspace(0, x.max(), 50)
    with panels(1, width=5.2, height=3.8) as (figure, (axis,)):
        axis.plot(fine, np.polyval(fit, fine), "--", color=COLOURS[0], label="R + c/d + e/d²")
        axis.plot(x, y, "o", ms=5, color=COLOURS[0], label="finite d")
        axis.plot([0], [infinite], "*", ms=10, color=COLOURS[1], label="d = ∞")
        axis.set(xlabel="1/d", ylabel="risk R at t = 1", title="erf neurons, erf target")
        axis.set_xticks([0, *x], ["0", *(f"1/{d}" for d in DIMENSIONS)])
        axis.legend()
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    checks, at_one = table_checks(settings, say)
    extrapolated, points = extrapolation_check(at_one, settings, say)
    return Outcome((*checks, extrapolated), _draw(points, at_one[math.inf]))
