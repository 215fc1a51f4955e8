"""`wideflow report` and `wideflow compare`."""

from pathlib import Path
from typing import Any

from .console import answer, as_json, on_terminal, refuse
from .run import results_table, write_page


def _opened(folder: Path, json_too: bool) -> Any:
    from ..spec.errors import SpecError
    from ..store.folder import DamagedError
    from ..study.build import NotBuiltError
    from ..study.folder import FolderError, StudyFolder
    from ..study.study import reopened

    try:
        return reopened(StudyFolder(folder))
    except (FolderError, DamagedError, NotBuiltError, SpecError, FileNotFoundError) as error:
        refuse(f"{folder}: {error}" if str(folder) not in str(error) else str(error), json_too)


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

    done = [_opened(folder, json_too) for folder in folders]
    try:
        write_text(out, page(done))
    except OSError as error:
        refuse(f"{out} cannot be written: {error.strerror}.", json_too)
    rows = side_by_side(done)
    if json_too:
        as_json({"page": str(out), "runs": rows})
        return
    if on_terminal():
        for one in done:
            print(f"{one.folder.path}: {one.study.spec.title or 'study'}\n{results_table(one.results)}\n")
    answer(str(out))
