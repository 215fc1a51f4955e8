"""What came out of a study, as plain data: one JSON of scalars, verdicts and provenance."""

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..provenance import versions
from ..run import Run
from .answers import answer
from .build import Study
from .cases import Case
from .folder import FORMAT
from .grouping import together
from .groups import Estimate, Group, grouped
from .questions import question
from .reference_runs import frozen_for, limit_for, references
from .regimes import majority, regimes_of
from .settling import settled

Regimes = Mapping[str, dict[str, Any] | None]
Warnings = Mapping[str, list[str]]


def results(study: Study, runs: dict[str, Run], seconds: float, warned: Warnings) -> dict[str, Any]:
    """All scalars of a study from its runs, and where they come from; runs and warnings are by slug."""
    regimes: dict[str, Any] = {}
    for group in together(study):
        ended = [runs[case.slug] for case in group if case.slug in runs]
        regimes |= regimes_of(study, group[: len(ended)], ended)
    first = next(iter(runs.values()), None)
    return told(study, runs, regimes, warned) | {
        "provenance": {
            "seed": study.spec.seed,
            "precision": study.spec.precision,
            "versions": versions(),
            "device": first.provenance.get("device") if first else None,
            "platform": first.provenance.get("platform") if first else None,
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": seconds,
        },
    }


def told(study: Study, runs: dict[str, Run], regimes: Regimes, warned: Warnings) -> dict[str, Any]:
    """What follows from the runs and their regimes alone, the same whenever it is asked."""
    groups = grouped(study.cases, runs)
    rows = [_group(study, g, groups, [regimes[c.slug] for c in g.cases]) for g in groups]
    asked = question(study.spec)
    lead, points = answer(asked, rows)
    sources = dict.fromkeys(s for run in runs.values() for s in run.provenance.get("sources", []))
    return {
        "kind": "study",
        "format": FORMAT,
        "title": study.spec.title,
        "status": status(list(runs.values())),
        "question": asked,
        "verdict": lead,
        "details": list(points),
        "groups": rows,
        "runs": [
            _run(c, runs[c.slug], regimes[c.slug]) | {"warnings": warned.get(c.slug, [])}
            for c in study.cases
            if c.slug in runs
        ],
        "sources": list(sources),
    }


def status(runs: list[Run]) -> str:
    """ "ok", or the worst that happened to a run."""
    return next((s for s in ("interrupted", "diverged", "stalled") if any(r.status == s for r in runs)), "ok")


def _run(case: Case, run: Run, regime: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "label": case.label,
        "folder": f"runs/{case.slug}",
        "seed": case.seed,
        "status": run.status,
        "message": run.message,
        "t": float(run.t[-1]) if run.rows else None,
        "risk": float(np.mean(run["risk"][-1])) if run.rows else None,
        "risk error": run.info.get("expectation_error"),
        "expectation": run.info.get("expectation"),
        "steps": run.info.get("steps"),
        "seconds": run.info.get("seconds"),
        "regime": regime,
    }


def _group(
    study: Study, group: Group, groups: list[Group], regimes: list[dict[str, Any] | None]
) -> dict[str, Any]:
    limits, frozen = references(groups)
    case = group.case
    limit = None if case.is_limit else limit_for(group, limits)
    kernel = None if case.linearised else frozen_for(group, frozen)
    gap = lambda other, of: None if other is None else _data(of(other))
    return {
        "name": group.name,
        "method name": case.method.called,
        "method": case.method.method,
        "width": case.width,
        "scaling": case.scaling,
        "alpha": case.alpha,
        "linearised": case.linearised,
        "seeds": len(group.cases),
        "ended": len(group.whole),
        "status": group.status,
        "t": float(group.times()[-1]) if len(group.times()) else None,
        "risk": _data(group.end("risk")),
        "kernel movement": _data(group.end("kernel_movement")),
        "weight movement": _data(group.end("weight_movement")),
        "limit": None if limit is None else limit.name,
        "risk of limit": None if limit is None else float(limit.values("risk")[0, -1]),
        "same scale as limit": limit is not None and abs(limit.case.alpha - case.alpha) < 1e-9 * case.alpha,
        "risk gap to limit": gap(limit, group.risk_gap),
        "function gap to limit": gap(limit, group.function_gap),
        "risk gap to frozen kernel": gap(kernel, group.risk_gap),
        "function gap to frozen kernel": gap(kernel, group.function_gap),
        "verdict": majority(regimes),
    } | settled(study, group)


def _data(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate for JSON."""
    return None if estimate is None else {"value": estimate.value, "error": estimate.error}
