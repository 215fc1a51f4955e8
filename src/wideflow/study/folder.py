"""The folder of a study: the resolved spec, one folder a run, one JSON of results, figures, report.

spec.toml       all defaults filled in: `wideflow run` takes it as it is
runs/NAME/      each run as `wf.load` reads it (NPZ and JSON)
results.json    scalars, verdicts and provenance; written last, when every run is whole on disk, so that it
                marks a finished study. It carries hashes of itself, the spec, the data and each run.
figures/        the figures of the report, PNG and SVG
report.html     all of it on one page

While it runs there are also runs/NAME.together/ (runs that go together), runs/NAME.levels/ (of a limit)
and warnings.json.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..run import Run
from ..spec.reading import LARGEST, parsed
from ..spec.study import Spec
from ..spec.writing import written
from ..store import folder
from ..store.folder import write_text
from ..store.opening import DamagedError, check_inside, content
from ..store.retrying import retried
from ..store.seals import read_sealed, sealed
from .cases import Case

RESULTS, SPEC, REPORT = "results.json", "spec.toml", "report.html"
FORMAT = 3
_FIELDS = {
    "kind": str,
    "format": int,
    "title": str,
    "status": str,
    "verdict": str,
    "groups": list,
    "runs": list,
    "sources": list,
    "provenance": dict,
    "hashes": dict,
}


class FolderError(ValueError):
    """The folder cannot take this study, and why."""


class OtherStudyError(FolderError):
    """The folder holds the study of another spec, or of other data."""


class UnsavedError(OSError):
    """A run of the study was computed, but the disk has not taken it."""


@dataclass(frozen=True)
class StudyFolder:
    """A place for one study."""

    path: Path

    @property
    def finished(self) -> bool:
        """Whether there are results; `results` says whether they are whole."""
        return os.path.lexists(self.path / RESULTS)

    @property
    def begun(self) -> bool:
        return os.path.lexists(self.path / SPEC)

    def run(self, case: Case) -> Path:
        """The folder of one of its runs."""
        return self._inside("runs", case.slug)

    def shared(self, case: Case) -> Path:
        """The folder of runs that go together, as long as they go; `case` is the first of them."""
        return self._inside("runs", f"{case.slug}.together")

    @property
    def report(self) -> Path:
        return self.path / REPORT

    @property
    def figures(self) -> Path:
        return self._inside("figures")

    def _inside(self, *names: str) -> Path:
        """A folder in this one, and nowhere else: a DamagedError where a link leads out."""
        path = self.path.joinpath(*names)
        check_inside(self.path, path)
        return path

    def check(self, spec: Spec, resume: bool) -> None:
        """Raise if `spec` cannot be run into this folder."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise OtherStudyError(f"{self.path} is a file; give --out a folder.")
        if not self.begun:
            if self.finished or (self.path / "runs").is_dir():
                raise FolderError(f"{self.path / SPEC} is missing, though the study was begun. {_AFRESH}")
            left = (path for path in self.path.iterdir() if not _half_written(path))
            if any(left):
                raise OtherStudyError(f"{self.path} holds other things; give --out a folder of its own.")
            return
        if self.spec_text() != written(spec):
            state = "finished" if self.finished else "unfinished"
            raise OtherStudyError(
                f"{self.path} holds the {state} study of another spec (see its {SPEC}). Give --out another "
                "folder, or remove that one."
            )
        if not self.finished and not resume:
            raise FolderError(
                f"{self.path} holds an unfinished run of this spec. Add --resume to go on with it, or give "
                "--out another folder."
            )

    def spec_text(self) -> str:
        """The resolved spec, if it is TOML at all."""
        path = self.path / SPEC
        try:
            text = content(path, LARGEST).decode("utf-8")
            parsed(text, SPEC)
        except FileNotFoundError:
            raise FolderError(f"{self.path} holds no study: its {SPEC} is not there.") from None
        except DamagedError as error:
            raise FolderError(f"{error} {_AFRESH}") from None
        except ValueError as error:  # no text, or no TOML
            raise FolderError(f"{path} is damaged: {error}. {_AFRESH}") from None
        return text

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """The folder, for this process alone."""
        self._first(lambda: folder.make(self.path), self.path)
        with folder.lock(self.path):
            yield

    def begin(self, spec: Spec) -> None:
        """Write the resolved spec, if it is not there."""
        if not self.begun:
            self._first(lambda: write_text(self.path / SPEC, written(spec)), self.path / SPEC)

    def _first(self, write: Callable[[], None], path: Path) -> None:
        """Write what comes before any computing, so that nothing is lost if it cannot be written."""
        try:
            retried(write)
        except OSError as error:
            why = error.strerror or error
            raise FolderError(f"{path} cannot be written: {why}. Nothing was computed.") from error

    def saved(self, case: Case, run: Run) -> str:
        """The hash of a run's manifest, if all of it is on the disk as it was computed."""
        try:
            kept = folder.read(self.run(case))["status"]
            digest = folder.check(self.run(case))
        except (OSError, folder.DamagedError) as error:
            kept, why = None, str(run.info.get("checkpoint_error", error))
        else:
            why = str(run.info.get("checkpoint_error", "only a part of it was written"))
        if kept != run.status:
            raise UnsavedError(
                f"{case.label} was computed, but could not be saved in {self.run(case)}: {why}."
            )
        return digest

    def finish(self, results: dict[str, Any], data: str | None, runs: dict[str, str]) -> dict[str, Any]:
        """Write what came out, with the hashes of what it came from: from now on the study is finished."""
        hashes = {"spec": self._spec_hash(), "data": data, "runs": runs}
        whole = sealed(results | {"hashes": hashes})
        text = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
        retried(lambda: write_text(self.path / RESULTS, text))
        return whole

    def _spec_hash(self) -> str:
        return hashlib.sha256(content(self.path / SPEC, LARGEST)).hexdigest()

    def results(self) -> dict[str, Any]:
        """What `finish` wrote, if nobody has changed it since."""
        try:
            return read_sealed(self.path / RESULTS, "study", FORMAT, _FIELDS)
        except FileNotFoundError:
            what = "an unfinished study: run it again with --resume" if self.begun else "no study"
            raise FolderError(f"{self.path} holds {what}.") from None
        except DamagedError as error:
            raise FolderError(f"{error} {_CURE}") from None

    def verify_spec(self, results: dict[str, Any]) -> None:
        """Raise unless the spec is the one that the results came from."""
        self.spec_text()  # says what is wrong with it, if it is no spec at all
        if results["hashes"].get("spec") != self._spec_hash():
            raise FolderError(f"{self.path / SPEC} was changed after the study was run. {_AFRESH}")

    def verify_runs(self, results: dict[str, Any], cases: tuple[Case, ...]) -> None:
        """Raise unless these are the runs that the results came from, each whole."""
        hashes = results["hashes"].get("runs")
        if not isinstance(hashes, dict) or set(hashes) != {case.slug for case in cases}:
            raise FolderError(f"{self.path / RESULTS} was made from other runs than {SPEC} lists. {_CURE}")
        for case in cases:
            if folder.check(self.run(case)) != hashes[case.slug]:
                raise FolderError(
                    f"{self.run(case) / folder.MANIFEST} is not the run that {self.path / RESULTS} was made "
                    f"from. {_CURE}"
                )

    def verify_data(self, results: dict[str, Any], data: str | None, spec: Spec) -> None:
        """Raise unless the study was run on these data, which its spec names."""
        if results["hashes"].get("data") != data:
            file = getattr(spec.problem.x, "file", "the file that it was run on")
            raise OtherStudyError(
                f"{self.path} holds the study of other data: {file} has changed since. Give --out another "
                "folder, or remove that one."
            )


_CURE = f"Remove {RESULTS} and run the study again with --resume: runs that are whole are not done again."
_AFRESH = "Put it back as it was, or run the study in another folder."


def _half_written(path: Path) -> bool:
    """Whether this is what a process left that was killed while it wrote a spec."""
    return path.name.startswith(f"{SPEC}.") and path.suffix == ".tmp"
