"""The main job: all runs of a study into its folder."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..run import Run, load
from ..spec.reading import load as load_spec
from ..spec.study import Spec
from .build import Study, build
from .cases import Case
from .folder import SPEC, StudyFolder
from .perform import in_precision, perform
from .results import results, status

Say = Callable[[int, int, Case], None]


@dataclass(frozen=True)
class Finished:
    """A study with its runs, by the slugs of its cases, and what came out of them."""

    study: Study
    runs: dict[str, Run]
    results: dict[str, Any]
    folder: StudyFolder


def conduct(
    study: Study, place: StudyFolder, *, say: Say | None = None, progress: bool | None = None
) -> Finished | None:
    """Do all runs that are not there yet, one after the other. None if it was interrupted: what was reached
    is kept, and the same call goes on from there."""
    begun, runs = time.monotonic(), {}
    with place.held(), in_precision(study.spec):
        place.begin(study.spec)
        for i, case in enumerate(study.cases):
            if say is not None:
                say(i, len(study.cases), case)
            run = perform(study, case, place.run(case), progress=progress)
            if status([run]) == "interrupted":
                return None
            runs[case.slug] = run
        found = results(study, runs, _seconds(runs, time.monotonic() - begun))
        place.finish(found)
    return Finished(study, runs, found, place)


def _seconds(runs: dict[str, Run], at_least: float) -> float:
    """What the runs took, also those of an earlier call."""
    return max(at_least, sum(float(run.info.get("seconds", 0.0)) for run in runs.values()))


def reopened(place: StudyFolder, spec: Spec | None = None) -> Finished:
    """A finished study, read back from its folder."""
    found = place.results()
    if spec is None:
        spec = load_spec((place.path / SPEC).read_text(encoding="utf-8"), str(place.path / SPEC)).spec
    with in_precision(spec):
        study = build(spec, Path(place.path))
        runs = {case.slug: load(place.run(case)) for case in study.cases}
    return Finished(study, runs, found, place)
