"""Lazy or feature-learning, and how far from each limit: the numbers, and one sentence."""

from typing import Any

import numpy as np

from ..diagnostics.regime.report import plain, regime
from ..page.numbers import estimate, short
from ..run import Run
from .build import Study
from .cases import Case
from .groups import Estimate, Group
from .points import VERDICT, labelled

_ROWS = 256  # points that a verdict is given on
_FLOWS = ("gradient_flow", "gradient_descent", "sgd")  # methods whose limit it is
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
    return summary(study, study.state(case), run.final)


def summary(study: Study, start: Any, final: Any) -> dict[str, Any] | None:
    """What `wf.regime` finds, as plain data; None in d = ∞ and for states that it does not take, such as
    those in reduced coordinates."""
    pair = labelled(study.whole, _ROWS, VERDICT)
    if pair is None:
        return None
    x, y = pair
    try:
        report = regime(start, final, x, y=y)
    except ValueError:
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
    """The verdict of a group: that of more than half of its seeds."""
    words = [v["verdict"] for v in verdicts if v]
    most = max(dict.fromkeys(words), key=words.count, default="")
    return most if 2 * words.count(most) > len(words) or not words else "not decided"


def references(groups: list[Group]) -> tuple[list[Group], list[Group]]:
    """(mean-field limits, frozen kernels) among the groups."""
    return (
        [g for g in groups if g.case.is_limit and g.status == "ok"],
        [g for g in groups if g.case.linearised],
    )


def limit_for(group: Group, limits: list[Group]) -> Group | None:
    """The limit from the same start of the same α, or the only one there is."""
    limits = [g for g in limits if _together(g, group)]
    same = [g for g in limits if np.isclose(g.case.alpha, group.case.alpha)]
    return same[0] if same else limits[0] if len(limits) == 1 else None


def frozen_for(group: Group, frozen: list[Group]) -> Group | None:
    """The frozen kernel of the same start, width and scale."""
    at = lambda g: (g.case.width, g.case.scaling)
    return next((g for g in frozen if at(g) == at(group) and _together(g, group)), None)


def _together(one: Group, other: Group) -> bool:
    """Whether both start alike."""
    return one.case.method.start == other.case.method.start


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
        ended = any(g["status"] == "ok" and g["width"] is not None and not g["linearised"] for g in groups)
        reason = (
            "the states of these runs have no kernel to judge by" if ended else "no network came to its end"
        )
        return f"There is no verdict: {reason}."
    text = "; ".join(clauses)
    return text[0].upper() + text[1:] + "."


def _clause(group: dict[str, Any]) -> str:
    some = "" if group["ended"] == group["seeds"] else f", {group['ended']} of {group['seeds']} seeds"
    at = f"n = {group['width']}, {group['scaling']}{some}"
    said = f"{group['method name']} ({at}) {_WORDS[group['verdict']]}"
    numbers = []
    if kernel := group["kernel movement"]:
        numbers.append(f"its kernel moved by {_percent(kernel)}")
    if (gap := group["risk gap to limit"]) and group["same scale as limit"]:
        which = (
            "the infinite-width limit" if group["method"] in _FLOWS else "the limit of plain gradient flow"
        )
        numbers.append(f"its risk stays within {estimate(gap, 2)} of {which}")
    elif gap and group["risk"] and group["risk of limit"] is not None:
        there = short(group["risk of limit"], 2)
        numbers.append(
            f"its risk ends at {estimate(group['risk'], 2)}, that of the mean-field limit at {there}"
        )
    if gap := group["risk gap to frozen kernel"]:
        numbers.append(f"it stays within {estimate(gap, 2)} of its own frozen kernel")
    return f"{said}: {', '.join(numbers)}" if numbers else said


def _percent(moved: dict[str, Any]) -> str:
    of_hundred = {key: None if v is None else 100 * v for key, v in moved.items()}
    return f"{estimate(of_hundred, 2)} %"


def as_data(found: Estimate | None) -> dict[str, Any] | None:
    """An estimate for JSON."""
    return None if found is None else {"value": found.value, "error": found.error}
