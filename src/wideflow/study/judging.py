"""Lazy or feature-learning, and how far from each limit: the numbers, and one sentence."""

from typing import Any

import numpy as np

from ..diagnostics.regime.report import plain, regime
from ..page.numbers import plus_minus, short
from ..run import Run
from .build import Study
from .cases import Case
from .groups import Estimate, Group
from .points import VERDICT, points

_ROWS = 256  # points that a verdict is given on
_SWEEP = 3  # scales that make a sweep
_WORDS = {
    "feature-learning": "learns features",
    "lazy": "is lazy",
    "unstable": "is unstable",
    "not decided": "is neither lazy nor clearly learning features",
}


def judged(study: Study, case: Case, run: Run) -> dict[str, Any] | None:
    """The regime of one run, from its start and its end; None where it has none (a frozen kernel is lazy by
    construction, and a run that did not come to its end gets no verdict)."""
    if run.status != "ok" or case.linearised:
        return None
    if case.is_limit:
        return run.info.get("regime")
    x = points(study.whole, _ROWS, VERDICT)
    if x is None:
        return None
    start = case.state(study.start, study.spec.start)
    return summary(start, run.final, x)


def summary(start: Any, final: Any, x: Any) -> dict[str, Any] | None:
    """What `wf.regime` finds, as plain data."""
    try:
        report = regime(start, final, x)
    except ValueError:  # neurons of a kind that it does not take
        return None
    moved = report.moved
    return plain(
        {
            "verdict": report.verdict,
            "reasons": list(report.decision.reasons),
            "kernel": None if moved.kernel is None else moved.kernel.movement,
            "linearisation gap": moved.gap,
        }
    )


def word_of(verdicts: list[dict[str, Any] | None]) -> str:
    """The verdict of a group: that of most of its seeds."""
    words = [v["verdict"] for v in verdicts if v]
    return max(dict.fromkeys(words), key=words.count) if words else ""


def references(groups: list[Group]) -> tuple[list[Group], list[Group]]:
    """(mean-field limits, frozen kernels) among the groups."""
    return (
        [g for g in groups if g.case.is_limit],
        [g for g in groups if g.case.linearised],
    )


def limit_for(group: Group, limits: list[Group]) -> Group | None:
    """The limit of the same α, or the only one there is."""
    same = [g for g in limits if np.isclose(g.case.alpha, group.case.alpha)]
    return same[0] if same else limits[0] if limits else None


def frozen_for(group: Group, frozen: list[Group]) -> Group | None:
    """The frozen kernel of the same width and scale."""
    at = lambda g: (g.case.width, g.case.scaling)
    return next((g for g in frozen if at(g) == at(group)), None)


def sentence(groups: list[dict[str, Any]]) -> str:
    """One sentence on the widest network of each method and scale; of a sweep of scales, on its two ends."""
    clauses = []
    judged_ones = [g for g in groups if g["verdict"] and g["width"] is not None]
    for name in dict.fromkeys(g["method name"] for g in judged_ones):
        mine = [g for g in judged_ones if g["method name"] == name]
        scalings = list(dict.fromkeys(g["scaling"] for g in mine))
        for scaling in scalings if len(scalings) < _SWEEP else (scalings[0], scalings[-1]):
            same = [g for g in mine if g["scaling"] == scaling]
            clauses.append(_clause(max(same, key=lambda g: g["width"])))
    if not clauses:
        return "No network of finite width came to its end, so there is no verdict."
    text = "; ".join(clauses)
    return text[0].upper() + text[1:] + "."


def _clause(group: dict[str, Any]) -> str:
    said = f"{group['method name']} (n = {group['width']}, {group['scaling']}) {_WORDS[group['verdict']]}"
    numbers = []
    if kernel := group["kernel movement"]:
        numbers.append(f"its kernel moved by {_percent(kernel)}")
    if (gap := group["risk gap to limit"]) and group["same scale as limit"]:
        numbers.append(f"its risk stays within {_number(gap)} of the infinite-width limit")
    elif gap:
        numbers.append(f"its risk is up to {_number(gap)} away from the mean-field limit")
    if gap := group["risk gap to frozen kernel"]:
        numbers.append(f"within {_number(gap)} of its own frozen kernel")
    return f"{said}: {', '.join(numbers)}" if numbers else said


def _percent(estimate: dict[str, Any]) -> str:
    of_hundred = {key: None if v is None else 100 * v for key, v in estimate.items()}
    return f"{_number(of_hundred)} %"


def _number(estimate: dict[str, Any]) -> str:
    value, error = estimate["value"], estimate["error"]
    return short(value) if error is None else plus_minus(value, error)


def as_data(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate for JSON."""
    return None if estimate is None else {"value": estimate.value, "error": estimate.error}
