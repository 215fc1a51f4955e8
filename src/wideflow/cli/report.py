"""`wideflow report` and `wideflow compare`."""

from pathlib import Path
from typing import Any

from .console import answer, as_json, on_terminal, refuse
from .run import results_table, unsaved, write_page


def _opened(folder: Path, json_too: bool) -> Any:
    from ..study.folder import StudyFolder
    from ..study.study import reopened

    try:
        return reopened(StudyFolder(folder))
    except (ValueError, FileNotFoundError) as error:  # damage, other data, a spec that cannot be built
        refuse(f"{folder}: {error}" if str(folder) not in str(error) else str(error), json_too)
    except OSError as error:
        refuse(f"{error.filename or folder} cannot be read: {error.strerror or error}.", json_too)


def report_command(folder: Path, json_too: bool) -> None:
    """Write the report of a finished run again."""
    done = _opened(folder, json_too)
    write_page(done, json_too)
    if json_too:
        as_json(done.results | {"folder": str(folder), "report": str(done.folder.report)})
    else:
        answer(str(done.folder.report))


def compare_command(folders: list[Path], out: Path, json_too: bool) -> None:
    """One table and page of several finished runs."""
    from ..report.page_of_studies import page, side_by_side
    from ..store.folder import write_text
    from ..store.retrying import NO_PLACE

    done = [_opened(folder, json_too) for folder in folders]
    try:
        write_text(out, page(done))
    except OSError as error:
        why = f"{out} cannot be written: {error.strerror or error}."
        if error.errno in NO_PLACE:
            refuse(why, json_too)
        unsaved(why, out, "Make room, then try again.", json_too)
    rows = side_by_side(done)
    if json_too:
        as_json({"page": str(out), "runs": rows})
        return
    if on_terminal():
        for one in done:
            answer(f"{one.folder.path}: {one.study.spec.title or 'study'}\n{results_table(one.results)}\n")
    answer(str(out))
