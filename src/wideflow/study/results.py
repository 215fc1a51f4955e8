"""What came out of a study, as plain data: one JSON of scalars, verdicts and provenance."""

import datetime
from typing import Any

from ..provenance import versions
from ..run import Run
from .build import Study
from .cases import Case
from .groups import Group, grouped
from .judging import as_data, frozen_for, judged, limit_for, references, sentence, word_of

FORMAT = 1


def results(study: Study, runs: dict[str, Run], seconds: float) -> dict[str, Any]:
    """All scalars of the study whose runs, by slug, are given."""
    groups = grouped(study.cases, runs)
    verdicts = {c.slug: judged(study, c, runs[c.slug]) for c in study.cases if c.slug in runs}
    rows = [_group(g, groups, [verdicts[c.slug] for c in g.cases]) for g in groups]
    sources = dict.fromkeys(s for run in runs.values() for s in run.provenance.get("sources", []))
    first = next(iter(runs.values()), None)
    return {
        "kind": "study",
        "format": FORMAT,
        "title": study.spec.title,
        "status": status(list(runs.values())),
        "verdict": sentence(rows),
        "groups": rows,
        "runs": [_run(c, runs[c.slug], verdicts[c.slug]) for c in study.cases if c.slug in runs],
        "sources": list(sources),
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


def status(runs: list[Run]) -> str:
    """ "ok", or the worst that happened to a run."""
    return next((s for s in ("interrupted", "diverged", "stalled") if any(r.status == s for r in runs)), "ok")


def _run(case: Case, run: Run, verdict: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "label": case.label,
        "folder": f"runs/{case.slug}",
        "seed": case.seed,
        "status": run.status,
        "message": run.message,
        "t": float(run.t[-1]) if run.rows else None,
        "risk": float(run["risk"][-1]) if run.rows else None,
        "risk error": run.info.get("expectation_error"),
        "expectation": run.info.get("expectation"),
        "steps": run.info.get("steps"),
        "seconds": run.info.get("seconds"),
        "regime": verdict,
    }


def _group(group: Group, groups: list[Group], verdicts: list[dict[str, Any] | None]) -> dict[str, Any]:
    limits, frozen = references(groups)
    case = group.case
    limit = None if case.is_limit else limit_for(group, limits)
    kernel = None if case.linearised else frozen_for(group, frozen)
    gap = lambda other, of: None if other is None else as_data(of(other))
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
        "risk": as_data(group.end("risk")),
        "kernel movement": as_data(group.end("kernel movement")),
        "weight movement": as_data(group.end("weight movement")),
        "limit": None if limit is None else limit.name,
        "risk of limit": None if limit is None else float(limit.values("risk")[0, -1]),
        "same scale as limit": limit is not None and abs(limit.case.alpha - case.alpha) < 1e-9 * case.alpha,
        "risk gap to limit": gap(limit, group.risk_gap),
        "function gap to limit": gap(limit, group.function_gap),
        "risk gap to frozen kernel": gap(kernel, group.risk_gap),
        "function gap to frozen kernel": gap(kernel, group.function_gap),
        "verdict": word_of(verdicts),
    }
