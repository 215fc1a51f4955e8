"""The folder of a study: the resolved spec, one folder a run, one JSON of results, figures, report.

spec.toml       all defaults filled in: `wideflow run` takes it as it is
runs/NAME/      each run as `wf.load` reads it (NPZ and JSON)
results.json    scalars, verdicts and provenance; written last, so that it marks a finished study
figures/        the figures of the report, PNG and SVG
report.html     all of it on one page
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..spec.study import Spec
from ..spec.writing import written
from ..store import folder
from ..store.folder import write_text
from .cases import Case

RESULTS, SPEC, REPORT = "results.json", "spec.toml", "report.html"


class FolderError(ValueError):
    """The folder cannot take this study, and why."""


@dataclass(frozen=True)
class StudyFolder:
    """A place for one study."""

    path: Path

    @property
    def finished(self) -> bool:
        """Whether all of a study is there."""
        return (self.path / RESULTS).is_file()

    @property
    def begun(self) -> bool:
        return (self.path / SPEC).is_file()

    def run(self, case: Case) -> Path:
        """The folder of one of its runs."""
        return self.path / "runs" / case.slug

    @property
    def report(self) -> Path:
        return self.path / REPORT

    @property
    def figures(self) -> Path:
        return self.path / "figures"

    def check(self, spec: Spec, resume: bool) -> None:
        """Raise if `spec` cannot be run into this folder."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise FolderError(f"{self.path} is a file; give --out a folder.")
        if not self.begun:
            left = (path for path in self.path.iterdir() if not _half_written(path))
            if any(left):
                raise FolderError(f"{self.path} holds other things; give --out a folder of its own.")
            return
        if (self.path / SPEC).read_text(encoding="utf-8") != written(spec):
            state = "finished" if self.finished else "unfinished"
            raise FolderError(
                f"{self.path} holds the {state} study of another spec (see its {SPEC}). Give --out another "
                "folder, or remove that one."
            )
        if not self.finished and not resume:
            raise FolderError(
                f"{self.path} holds an unfinished run of this spec. Add --resume to go on with it, or give "
                "--out another folder."
            )

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The folder, for this process alone."""
        with folder.held(self.path):
            yield

    def begin(self, spec: Spec) -> None:
        """Write the resolved spec, if it is not there."""
        if not self.begun:
            write_text(self.path / SPEC, written(spec))

    def finish(self, results: dict[str, Any]) -> None:
        """Write what came out: from now on the study is finished."""
        write_text(self.path / RESULTS, json.dumps(results, indent=1, ensure_ascii=False) + "\n")

    def results(self) -> dict[str, Any]:
        """What `finish` wrote."""
        try:
            return json.loads((self.path / RESULTS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            what = "an unfinished study: run it again with --resume" if self.begun else "no study"
            raise FolderError(f"{self.path} holds {what}.") from None
        except ValueError as error:
            raise FolderError(f"{self.path / RESULTS} is damaged: {error}.") from None


def _half_written(path: Path) -> bool:
    """Whether this is what a process left that was killed while it wrote a spec."""
    return path.name.startswith(f"{SPEC}.") and path.suffix == ".tmp"
