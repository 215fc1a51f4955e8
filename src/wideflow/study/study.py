"""The main job: all runs of a study into its folder."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._shown import shown
from ..run import Run
from ..salvage import load
from ..spec.reading import load as load_spec
from ..spec.study import Spec
from .agreement import disagreement
from .build import Study, build
from .cases import Case
from .folder import RESULTS, SPEC, FolderError, StudyFolder, UnsavedError
from .grouping import together
from .perform import data_hash, in_precision, perform
from .results import results, status
from .together import perform_together
from .warned import Warned

Say = Callable[[int, int, Case], None]


@dataclass(frozen=True)
class Finished:
    """A study with its runs, by the slugs of its cases, and what came out of them."""

    study: Study
    runs: dict[str, Run]
    results: dict[str, Any]
    folder: StudyFolder


def run_study(
    study: Study, place: StudyFolder, *, say: Say | None = None, progress: bool | None = None
) -> Finished | None:
    """Do all runs that are not there yet, one after the other. None if it was interrupted: what was reached
    is kept, and the same call goes on from there, as it does after an `UnsavedError`. The study is finished
    when all its runs are whole on disk."""
    begun = time.monotonic()
    runs: dict[str, Run] = {}
    saved: dict[str, str] = {}
    with place.lock(), in_precision(study.spec):
        place.check(study.spec, resume=True)  # another process may have begun, or ended, before the lock
        if place.finished:
            return reopened(place, study.spec)
        place.begin(study.spec)
        warned = Warned.kept(place.path)
        for group in together(study):
            if say is not None:
                say(len(runs), len(study.cases), group[0])
            with warned.listening([case.slug for case in group]):
                ended = _performed(study, group, place, progress)
            if status(ended) == "interrupted":
                _check_kept(ended)
                return None
            for case, run in zip(group, ended, strict=True):
                runs[case.slug], saved[case.slug] = run, place.saved(case, run)
        told = results(study, runs, _seconds(runs, time.monotonic() - begun), warned.messages)
        sealed = place.finish(told, data_hash(study), saved)
        warned.forget()
    return Finished(study, runs, sealed, place)


def _check_kept(interrupted: list[Run]) -> None:
    """Raise if what an interrupted run had reached is not on the disk."""
    for run in interrupted:
        if "checkpoint_error" in run.info:
            raise UnsavedError(run.message)


def _performed(study: Study, group: tuple[Case, ...], place: StudyFolder, progress: bool | None) -> list[Run]:
    paths = [place.run(case) for case in group]
    if len(group) == 1:
        return [perform(study, group[0], paths[0], progress=progress)]
    return perform_together(study, group, paths, place.shared(group[0]), progress=progress)


def _seconds(runs: dict[str, Run], at_least: float) -> float:
    """What the runs took, also those of an earlier call."""
    return max(at_least, sum(float(run.info.get("seconds", 0.0)) for run in runs.values()))


def reopened(place: StudyFolder, spec: Spec | None = None) -> Finished:
    """A finished study, read back from its folder; everything in it is checked against its results, and these
    against what the runs tell."""
    saved = place.results()
    place.verify_spec(saved)
    if spec is None:
        spec = load_spec(place.spec_text(), str(place.path / SPEC)).spec
    with in_precision(spec):
        study = build(spec, Path(place.path))
        place.verify_data(saved, data_hash(study), spec)
        place.verify_runs(saved, study.cases)
        runs = {case.slug: load(place.run(case)) for case in study.cases}
        if where := disagreement(saved, study, runs):
            raise FolderError(
                f"{place.path / RESULTS} is damaged: its {shown(where)} is not what its runs tell."
            )
    return Finished(study, runs, saved, place)
