"""`wideflow run`."""

import sys
from pathlib import Path
from typing import Any, NoReturn

from .._data import Data
from .console import (
    DIVERGED,
    GOOD,
    INTERRUPTED,
    UNSAVED,
    answer,
    as_json,
    if_stopped,
    leave,
    on_terminal,
    refuse,
    stopping_softly,
    table,
    tell,
)
from .sources import source, study_of


def run_command(
    spec: str, changes: list[str], out: Path | None, seed: int | None, resume: bool, json_too: bool
) -> None:
    """Run a spec into a folder and write its report."""
    asked = source(spec, json_too)
    tell(f"Reading {asked.called} …")
    study = study_of(asked, changes, seed, json_too)
    from ..study.folder import StudyFolder

    place = StudyFolder(out if out is not None else Path("out") / asked.name)
    try:
        place = place if out is not None else _free(place.path, study)
        place.check(study.spec, resume)
        if place.finished:
            _already(place, study, json_too)
    except (ValueError, FileNotFoundError) as error:  # another's folder, or damage
        refuse(str(error), json_too, folder=str(place.path))
    except OSError as error:
        refuse(f"{place.path} cannot be read: {error.strerror or error}.", json_too)
    if resume and not place.begun:
        print(f"There is nothing to resume in {place.path}: a new study begins.", file=sys.stderr, flush=True)
    again = _again(spec, changes, place.path, seed)
    on_stop = {"status": "interrupted", "folder": str(place.path)} if json_too else None
    if_stopped(f"Stopped. To go on: {again}", on_stop)
    done = _run_study(study, place, again, json_too)
    if done is None:
        print(f"Stopped. To go on: {again}", file=sys.stderr)
        if on_stop is not None:
            as_json(on_stop)
        leave(INTERRUPTED)
    write_page(done, json_too)
    _tell_results(done.results, place, json_too)
    leave(DIVERGED if done.results["status"] in ("diverged", "stalled") else GOOD)


def _run_study(study: Any, place: Any, again: str, json_too: bool) -> Any:
    from ..store.folder import InUseError
    from ..store.retrying import NO_PLACE
    from ..study.folder import UnsavedError
    from ..study.study import run_study

    def told(i: int, total: int, case: Any) -> None:
        tell(f"[{i + 1}/{total}] {case.label}")

    try:
        with stopping_softly():
            return run_study(study, place, say=told)
    except KeyboardInterrupt:
        return None
    except (InUseError, ValueError, MemoryError) as error:  # a checkpoint of other data, say
        refuse(str(error), json_too, folder=str(place.path))
    except OSError as error:
        if error.errno in NO_PLACE:
            refuse(f"{error.filename or place.path} cannot be written: {error.strerror or error}.", json_too)
        why = str(error) if isinstance(error, UnsavedError) else f"{place.path}: {error.strerror or error}."
        unsaved(why, place.path, f"Make room, then: {again}", json_too)


def unsaved(why: str, path: Path, cure: str, json_too: bool) -> NoReturn:
    """What was computed is not on the disk: say so, and leave with 4."""
    print(f"Not finished, as not everything could be saved: {why} {cure}", file=sys.stderr)
    if json_too:
        as_json({"status": "unsaved", "message": why, "folder": str(path)})
    leave(UNSAVED)


def write_page(done: Any, json_too: bool) -> None:
    """Figures and report of a finished study."""
    from ..report.page_of_study import write_report
    from ..store.folder import DamagedError
    from ..store.retrying import NO_PLACE

    tell("Writing the report …")
    path = done.folder.path
    try:
        write_report(done)
    except DamagedError as error:  # a link in place of the folder of figures
        refuse(str(error), json_too)
    except OSError as error:
        if error.errno in NO_PLACE:
            place = error.filename2 or error.filename or path
            refuse(f"{place} cannot be written: {error.strerror or error}.", json_too)
        why = f"the report in {path}: {error.strerror or error}."
        unsaved(why, path, f"The results are whole. Make room, then: wideflow report {path}", json_too)


def _free(base: Path, study: Any) -> Any:
    """The first folder NAME, NAME-2, … that is not another study's."""
    from ..study.folder import OtherStudyError, StudyFolder
    from ..study.perform import data_hash

    k = 1
    while True:
        place = StudyFolder(base if k == 1 else base.with_name(f"{base.name}-{k}"))
        try:
            place.check(study.spec, resume=True)
            if place.finished:
                place.verify_data(place.results(), data_hash(study), study.spec)
            return place
        except OtherStudyError:
            k += 1


def _already(place: Any, study: Any, json_too: bool) -> None:
    """A finished folder is left as it is, if it is as it was."""
    from ..study.study import reopened

    done = reopened(place, study.spec)
    missing = not place.report.is_file()  # stopped between the last run and its report
    if missing:
        write_page(done, json_too)
    what = "only the report was missing" if missing else "nothing was done"
    print(f"{place.path} holds this run already, finished; {what}.", file=sys.stderr)
    _tell_results(done.results, place, json_too)
    leave(DIVERGED if done.results["status"] in ("diverged", "stalled") else GOOD)


def _tell_results(results: Data, place: Any, json_too: bool) -> None:
    for run in results["runs"]:  # told in any case: no one should have to open a page to learn of it
        if run["status"] != "ok":
            print(f"{run['label']} {run['status']}: {run['message']}", file=sys.stderr)
    if json_too:
        as_json(results | {"folder": str(place.path), "report": str(place.report)})
        return
    if not on_terminal():
        answer(str(place.report))
        return
    answer(f"\n{results_table(results)}\n")
    answer("\n".join([results["verdict"], *(f"  - {point}" for point in results["details"])]) + "\n")
    answer(f"Report: {place.report}")


def results_table(results: Data) -> str:
    """End results, a line a group."""
    from ..page.numbers import estimate

    head = ["run", "scale", "n", "status", "risk at the end", "kernel moved", "gap to limit", "verdict"]
    keys = ("risk", "kernel movement", "risk gap to limit")
    rows = [
        [
            group["name"],
            group["scaling"],
            "∞" if group["width"] is None else str(group["width"]),
            group["status"],
            *[estimate(group[key]) for key in keys],
            group["verdict"] or ("frozen kernel" if group["linearised"] else "–"),
        ]
        for group in results["groups"]
    ]
    return table(head, rows)


def _again(spec: str, changes: list[str], out: Path, seed: int | None) -> str:
    import shlex

    parts = ["wideflow", "run", spec, *[v for c in changes for v in ("--set", c)], "--out", str(out)]
    parts += [] if seed is None else ["--seed", str(seed)]
    return shlex.join([*parts, "--resume"])
