"""The folder of a study: the resolved spec, one folder a run, one JSON of results, figures, report.

spec.toml       all defaults filled in: `wideflow run` takes it as it is
runs/NAME/      each run as `wf.load` reads it (NPZ and JSON)
results.json    scalars, verdicts and provenance; written last, when every run is whole on disk, so that it
                marks a finished study. It carries hashes of itself, the spec, the data and each run.
figures/        the figures of the report, PNG and SVG
report.html     all of it on one page
"""

import contextlib
import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..run import Run
from ..spec.study import Spec
from ..spec.writing import written
from ..store import folder
from ..store.folder import write_text
from ..store.retrying import retried
from .cases import Case

RESULTS, SPEC, REPORT = "results.json", "spec.toml", "report.html"
FORMAT = 2
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
        """Whether all of a study is there."""
        return (self.path / RESULTS).is_file()

    @property
    def begun(self) -> bool:
        return (self.path / SPEC).is_file()

    def run(self, case: Case) -> Path:
        """The folder of one of its runs."""
        return self.path / "runs" / case.slug

    def shared(self, case: Case) -> Path:
        """The folder of runs that go together, as long as they go; `case` is the first of them."""
        return self.path / "runs" / f"{case.slug}.together"

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
            raise OtherStudyError(f"{self.path} is a file; give --out a folder.")
        if not self.begun:
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
            text = path.read_text(encoding="utf-8")
            tomllib.loads(text)
        except FileNotFoundError:
            raise FolderError(f"{self.path} holds no study: its {SPEC} is not there.") from None
        except ValueError as error:  # no text, or no TOML
            raise FolderError(f"{path} is damaged: {error}.") from None
        return text

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """The folder, for this process alone."""
        with folder.lock(self.path):
            yield

    def begin(self, spec: Spec) -> None:
        """Write the resolved spec, if it is not there."""
        if not self.begun:
            retried(lambda: write_text(self.path / SPEC, written(spec)))

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
        spec = hashlib.sha256((self.path / SPEC).read_bytes()).hexdigest()
        hashes = {"spec": spec, "data": data, "runs": runs}
        sealed = results | {"hashes": hashes | {"results": _digest(results | {"hashes": hashes})}}
        text = json.dumps(sealed, indent=1, ensure_ascii=False) + "\n"
        retried(lambda: write_text(self.path / RESULTS, text))
        return sealed

    def results(self) -> dict[str, Any]:
        """What `finish` wrote, if nobody has changed it since."""
        path = self.path / RESULTS
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            what = "an unfinished study: run it again with --resume" if self.begun else "no study"
            raise FolderError(f"{self.path} holds {what}.") from None
        except (ValueError, RecursionError) as error:
            raise FolderError(f"{path} is damaged: {error}. {_CURE}") from None
        if not isinstance(read, dict) or read.get("kind") != "study" or read.get("format") != FORMAT:
            raise FolderError(f"{path} is damaged, or of another version of wideflow. {_CURE}")
        bad = [name for name, kind in _FIELDS.items() if not isinstance(read.get(name), kind)]
        if bad or read["hashes"].get("results") != _digest(_unsealed(read)):
            where = f" (see {bad[0]!r})" if bad else ""
            raise FolderError(
                f"{path} is damaged: its content does not have the hash it carries{where}. {_CURE}"
            )
        return read

    def verify(self, results: dict[str, Any], data: str | None, cases: tuple[Case, ...]) -> None:
        """Raise unless spec, data and runs are those that the results came from."""
        hashes = results["hashes"]
        self.verify_data(results, data)
        if hashes.get("spec") != hashlib.sha256(self.spec_text().encode()).hexdigest():
            raise FolderError(f"{self.path / SPEC} was changed after the study was run.")
        for case in cases:
            if folder.check(self.run(case)) != hashes.get("runs", {}).get(case.slug):
                raise FolderError(
                    f"{self.run(case) / folder.MANIFEST} is not the run that {self.path / RESULTS} was made "
                    f"from. {_CURE}"
                )

    def verify_data(self, results: dict[str, Any], data: str | None) -> None:
        """Raise unless the study was run on these data."""
        if results["hashes"].get("data") != data:
            raise OtherStudyError(
                f"{self.path} holds the study of other data: the file that its {SPEC} names has changed "
                "since. Give --out another folder, or remove that one."
            )


_CURE = f"Remove {RESULTS} and run the study again with --resume: runs that are whole are not done again."


def _digest(content: Any) -> str:
    """A hash of JSON data, however they are laid out in a file."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _unsealed(results: dict[str, Any]) -> dict[str, Any]:
    return results | {"hashes": {k: v for k, v in results["hashes"].items() if k != "results"}}


def _half_written(path: Path) -> bool:
    """Whether this is what a process left that was killed while it wrote a spec."""
    return path.name.startswith(f"{SPEC}.") and path.suffix == ".tmp"
