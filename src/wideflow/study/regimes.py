"""Lazy or feature-learning: the regime of one run, and of a group of seeds."""

from collections.abc import Sequence
from typing import Any

import jax

from ..diagnostics.regimes.report import plain, regime
from ..run import Run
from ..verdicts import UNDECIDED
from ..vocabulary.methods import Moves
from .build import Study
from .cases import Case
from .grouping import replicas_of


def regimes_of(study: Study, group: Sequence[Case], runs: Sequence[Run]) -> dict[str, Any]:
    """The regimes of runs that went together, by their slugs: each from its start and its end. None where it
    has none: a frozen kernel is lazy by construction, a run that did not come to its end gets no verdict, and
    where masses move instead of neurons the question is another one."""
    first = group[0] if group else None
    if first is not None and first.is_limit:
        return {first.slug: runs[0].info.get("regime")}
    if first is None or first.linearised or first.method.word.moves is not Moves.NETWORK:
        return {case.slug: None for case in group}
    starts = jax.device_get(replicas_of(study, group))  # all of one width, so that one program serves them
    seen = {}
    for r, (case, run) in enumerate(zip(group, runs, strict=True)):
        start = starts.replica(r)
        final = jax.device_get(run.final)
        final = final if final.n == start.n else final.padded(start.n)
        seen[case.slug] = summary(study, start, final) if run.status == "ok" else None
    return seen


def summary(study: Study, start: Any, final: Any) -> dict[str, Any] | None:
    """What `wf.regime` finds, as plain data; None in d = ∞ and for states that it does not take, such as
    those in reduced coordinates."""
    if study.verdict_points is None:
        return None
    x, y = study.verdict_points
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


def majority(regimes: Sequence[dict[str, Any] | None]) -> str:
    """The verdict of a group: that of more than half of its seeds; "" where no seed has one."""
    words = [one["verdict"] for one in regimes if one]
    most = max(dict.fromkeys(words), key=words.count, default="")
    return most if 2 * words.count(most) > len(words) or not words else UNDECIDED
