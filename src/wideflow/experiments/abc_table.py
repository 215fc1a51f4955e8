"""The table of scalings: measured exponents of |Δh| and |Δf| against the predicted ones, and the verdict.

Two layers: NTK (½, 0, 0), naive (½, 0, −½), compromise (1, 0, −½), mean field (1, 0, −1); three hidden
layers: NTK, standard, muP. On the same networks the usual width check, which records the size |h_t| of the
features instead of their change |h_t − h_0|, has one exponent for all of them, 0: it cannot tell a lazy
network from one that learns features."""

from typing import Any

import numpy as np

from ..diagnostics.widths.report import WidthReport, width_check
from ..figures import COLOURS, panels
from ..states.family import MLP
from .base import Check, Outcome, Say

CASES = (
    ("ntk", 1, "lazy"),
    ("naive", 1, "unstable"),
    ("compromise", 1, "lazy"),
    ("mean_field", 1, "feature-learning"),
    ("ntk", 3, "lazy"),
    ("standard", 3, "lazy"),
    ("mup", 3, "feature-learning"),
)
WIDTHS = {1: (128, 256, 512, 1024), 3: (128, 256, 512)}
WITHIN = 0.05  # of an exponent, with seeds until its error bar is below 0.02


def data() -> tuple[np.ndarray, np.ndarray]:
    """16 rows of a Gaussian in R⁴, y = tanh(x_1)."""
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    return x, np.tanh(x[:, 0])


def measured(name: str, depth: int, say: Say) -> WidthReport:
    say(f"{name}, {depth} hidden layer(s)")
    x, y = data()
    return width_check(MLP(4, depth, "tanh"), WIDTHS[depth], x=x, y=y, parametrisation=name)


def _moves(report: WidthReport) -> list[Any]:
    return [c for name, c in report.curves.items() if name.startswith("Δ") and c.slope is not None]


def _sizes(report: WidthReport) -> list[float]:
    named = [c for name, c in report.curves.items() if name.startswith("h") and name.endswith("(t)")]
    return [c.slope.value for c in named if c.slope is not None]


def run(say: Say) -> Outcome:
    reports = {(name, depth): measured(name, depth, say) for name, depth, _ in CASES}
    checks = []
    for (name, depth), report in reports.items():
        worst = max(_moves(report), key=lambda c: abs(c.slope.value - c.predicted))
        what = f"{name}, depth {depth}: largest gap of an exponent of Δh, Δf (centred: {report.centred})"
        gap = worst.slope.value - worst.predicted
        error = max(c.slope.error for c in _moves(report))
        checks.append(Check(what, "0", gap, error, -WITHIN, WITHIN))
    right = sum(reports[name, depth].verdict == word for name, depth, word in CASES)
    checks.append(Check("verdicts that are right", f"{len(CASES)}", right, 0.0, 6.5, 7.5))
    blind = max(abs(v) for report in reports.values() for v in _sizes(report))
    checks.append(Check("largest exponent of the size |h_t|: blind", "0 for all", blind, 0.0, -0.03, 0.03))
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
            found = [_last(report, kind, "") for report in reports.values()]
            at = place + 0.2 * (i - 0.5)
            values, errors = [c.slope.value for c in found], [c.slope.error for c in found]
            axes[0].errorbar(at, values, errors, fmt=mark, ms=6, color=COLOURS[i], label=f"|{kind}| measured")
            wanted = [c.predicted for c in found]
            axes[0].plot(at, wanted, "_", color=COLOURS[i], ms=18, label=f"|{kind}| predicted")
        sizes = [_last(report, "h", "(t)").slope.value for report in reports.values()]
        axes[1].plot(place, sizes, "D", color=COLOURS[2], label="|h$_t$| measured")
        axes[0].set(ylabel="exponent in n", title="the change from the start tells them apart")
        axes[1].set(ylabel="exponent in n", ylim=axes[0].get_ylim(), title="the size does not")
        for axis in axes:
            axis.set_xticks(place, labels, fontsize=7)
            axis.axhline(0, color="black", lw=0.8)
            axis.legend(fontsize=8)
    return figure
