"""The table of scalings: measured exponents of |Δh| and |Δf| against the predicted ones, and the verdict.

Two layers: NTK (½, 0, 0), naive (½, 0, −½), compromise (1, 0, −½), mean field (1, 0, −1); three hidden
layers: NTK, standard, muP. On the same networks the usual width check, which records the size |h_t| of the
features instead of their change |h_t − h_0|, has one exponent for all of them, 0: it cannot tell a lazy
network from one that learns features."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..diagnostics.widths.report import WidthReport, width_check
from ..figures import COLOURS, panels
from ..states.family import MLP
from ..verdicts import FEATURES, LAZY, TRIVIAL, UNSTABLE
from .base import Check, Outcome, Say

CASES = (
    ("ntk", 1, LAZY),
    ("naive", 1, UNSTABLE),
    ("compromise", 1, TRIVIAL),
    ("mean_field", 1, FEATURES),
    ("ntk", 3, LAZY),
    ("standard", 3, LAZY),
    ("mup", 3, FEATURES),
)


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    cases: tuple[tuple[str, int, str], ...] = CASES
    widths: dict[int, tuple[int, ...]] = field(  # by depth
        default_factory=lambda: {1: (128, 256, 512, 1024), 3: (128, 256, 512)}
    )
    within: float = 0.05  # of an exponent, with seeds until its error bar is below 0.02
    blind: float = 0.03  # of the exponent of |h_t|


FULL = Settings()
# The scalings of two layers on narrower networks, whose exponents are as near to the predicted ones.
REDUCED = Settings(CASES[:4], {1: (64, 128, 256)})


def data() -> tuple[np.ndarray, np.ndarray]:
    """16 rows of a Gaussian in R⁴, y = tanh(x_1)."""
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    return x, np.tanh(x[:, 0])


def measured(name: str, depth: int, widths: tuple[int, ...], say: Say) -> WidthReport:
    say(f"{name}, {depth} hidden layer(s)")
    x, y = data()
    return width_check(MLP(4, depth, "tanh"), widths, x=x, y=y, parametrisation=name)


def _moves(report: WidthReport) -> list[Any]:
    return [c for name, c in report.curves.items() if name.startswith("Δ") and c.slope is not None]


def _sizes(report: WidthReport) -> list[float]:
    named = [c for name, c in report.curves.items() if name.startswith("h") and name.endswith("(t)")]
    return [c.slope.value for c in named if c.slope is not None]


def run(say: Say, settings: Settings = FULL) -> Outcome:
    within, cases = settings.within, settings.cases
    reports = {(name, depth): measured(name, depth, settings.widths[depth], say) for name, depth, _ in cases}
    checks = []
    for (name, depth), report in reports.items():
        worst = max(_moves(report), key=lambda c: abs(c.slope.value - c.predicted))
        what = f"{name}, depth {depth}: largest gap of an exponent of Δh, Δf (centred: {report.centred})"
        gap = worst.slope.value - worst.predicted
        error = max(c.slope.error for c in _moves(report))
        checks.append(Check(what, "0", gap, error, -within, within))
    right = sum(reports[name, depth].verdict == word for name, depth, word in cases)
    count = len(cases)
    checks.append(Check("verdicts that are right", f"{count}", right, 0.0, count - 0.5, count + 0.5))
    blind = max(abs(v) for report in reports.values() for v in _sizes(report))
    what, most = "largest exponent of the size |h_t|: blind", settings.blind
    checks.append(Check(what, "0 for all", blind, 0.0, -most, most))
    return Outcome(tuple(checks), _draw(reports))


def _last(report: WidthReport, start: str, end: str) -> Any:
    """The curve of the deepest layer of this kind: Δh3 of Δh1, Δh2, Δh3."""
    return [c for name, c in report.curves.items() if name.startswith(start) and name.endswith(end)][-1]


def _draw(reports: dict[tuple[str, int], WidthReport]) -> Any:
    """Exponents of the last hidden layer and of f, measured beside predicted; the size of h on the right."""
    labels = [f"{name}\ndepth {depth}" for name, depth in reports]
    place = np.arange(len(labels))
    with panels(2, width=6.4) as (figure, axes):
        for i, (kind, mark) in enumerate((("Δh", "o"), ("Δf", "s"))):
            curves = [_last(report, kind, "") for report in reports.values()]
            at = place + 0.2 * (i - 0.5)
            values, errors = [c.slope.value for c in curves], [c.slope.error for c in curves]
            axes[0].errorbar(at, values, errors, fmt=mark, ms=6, color=COLOURS[i], label=f"|{kind}| measured")
            predicted = [c.predicted for c in curves]
            axes[0].plot(at, predicted, "_", color=COLOURS[i], ms=18, label=f"|{kind}| predicted")
        sizes = [_last(report, "h", "(t)").slope.value for report in reports.values()]
        axes[1].plot(place, sizes, "D", color=COLOURS[2], label="|h$_t$| measured")
        axes[0].set(ylabel="exponent in n", title="the change from the start tells them apart")
        axes[1].set(ylabel="exponent in n", ylim=axes[0].get_ylim(), title="the size does not")
        for axis in axes:
            axis.set_xticks(place, labels, fontsize=7)
            axis.axhline(0, color="black", lw=0.8)
            axis.legend(fontsize=8)
    return figure
