"""`wideflow run`."""

import sys
import warnings
from pathlib import Path
from typing import Any

from .console import (
    DIVERGED,
    GOOD,
    INTERRUPTED,
    answer,
    as_json,
    if_stopped,
    leave,
    on_terminal,
    refuse,
    table,
    tell,
)
from .sources import source, study_of


def run_command(
    spec: str, changes: list[str], out: Path | None, seed: int | None, resume: bool, json_too: bool
) -> None:
    """Run a spec into a folder and write its report."""
    given = source(spec, json_too)
    tell(f"Reading {given.called} …")
    study = study_of(given, changes, seed, json_too)
    from ..study.folder import FolderError, StudyFolder

    place = StudyFolder(out) if out is not None else _free(Path("out") / given.name, study.spec)
    stopped = f"Stopped. To go on: {_again(spec, changes, place.path, seed)}"
    on_stop = {"status": "interrupted", "folder": str(place.path)} if json_too else None
    try:
        place.check(study.spec, resume)
        if place.finished:
            _already(place, json_too)
        if_stopped(stopped, on_stop)
        done = _conducted(study, place)
    except FolderError as error:
        refuse(str(error), json_too, folder=str(place.path))
    except OSError as error:
        refuse(f"{place.path} cannot be written: {error.strerror or error}.", json_too)
    if done is None:
        print(stopped, file=sys.stderr)
        if on_stop is not None:
            as_json(on_stop)
        leave(INTERRUPTED)
    _report(done)
    _tell_results(done.results, place, json_too)
    leave(DIVERGED if done.results["status"] in ("diverged", "stalled") else GOOD)


def _conducted(study: Any, place: Any) -> Any:
    from ..store.folder import InUseError
    from ..study.folder import FolderError
    from ..study.study import conduct

    def told(i: int, total: int, case: Any) -> None:
        tell(f"[{i + 1}/{total}] {case.label}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what becomes of a run is told with its status
        try:
            return conduct(study, place, say=told)
        except KeyboardInterrupt:
            return None
        except (InUseError, ValueError, MemoryError) as error:  # a checkpoint of other data, say
            raise FolderError(str(error)) from None


def _report(done: Any) -> None:
    from ..report.page_of_study import write_report

    tell("Writing the report …")
    write_report(done)


def _free(base: Path, spec: Any) -> Any:
    """The first folder NAME, NAME-2, … that is not another spec's."""
    from ..study.folder import FolderError, StudyFolder

    k = 1
    while True:
        place = StudyFolder(base if k == 1 else base.with_name(f"{base.name}-{k}"))
        try:
            place.check(spec, resume=True)
            return place
        except FolderError:
            k += 1


def _already(place: Any, json_too: bool) -> None:
    """A finished folder is left as it is."""
    if not place.report.is_file():  # stopped between the last run and its report
        from ..study.study import reopened

        _report(reopened(place))
    found = place.results()
    print(f"{place.path} holds this run already, finished; nothing was done.", file=sys.stderr)
    _tell_results(found, place, json_too)
    leave(DIVERGED if found["status"] in ("diverged", "stalled") else GOOD)


def _tell_results(found: dict[str, Any], place: Any, json_too: bool) -> None:
    for run in found["runs"]:  # told in any case: no one should have to open a page to learn of it
        if run["status"] != "ok":
            print(f"{run['label']} {run['status']}: {run['message']}", file=sys.stderr)
    if json_too:
        as_json(found | {"folder": str(place.path), "report": str(place.report)})
        return
    if not on_terminal():
        answer(str(place.report))
        return
    print()
    print(results_table(found))
    print(f"\n{found['verdict']}\n")
    print(f"Report: {place.report}")


def results_table(found: dict[str, Any]) -> str:
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
        for group in found["groups"]
    ]
    return table(head, rows)


def _again(spec: str, changes: list[str], out: Path, seed: int | None) -> str:
    import shlex

    parts = ["wideflow", "run", spec, *[v for c in changes for v in ("--set", c)], "--out", str(out)]
    parts += [] if seed is None else ["--seed", str(seed)]
    return shlex.join([*parts, "--resume"])
