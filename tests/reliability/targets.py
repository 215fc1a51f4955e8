"""What is damaged: a saved run, a study on a file of data, records of reproductions. Each says how it is
opened by the layers above, what it held, and how its hashes are made right again after an edit."""

import hashlib
import json
import math
import os
import shutil
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import wideflow as wf
from study.specs import study
from wideflow.experiments import records, reproduction
from wideflow.experiments.base import Check
from wideflow.experiments.catalogue import EXPERIMENTS
from wideflow.run import Row
from wideflow.store import folder
from wideflow.store.seals import sealed
from wideflow.study.folder import StudyFolder
from wideflow.study.study import reopened, run_study


@dataclass
class Target:
    """A folder as it was written; `root` is spoilt and restored."""

    root: Path
    original: dict[str, bytes] = field(init=False)

    def __post_init__(self):
        self.original = self.files()

    def files(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.root)): p.read_bytes() for p in self.root.rglob("*") if p.is_file()}

    def restore(self) -> None:
        for path in sorted(self.root.rglob("*"), reverse=True):
            name = str(path.relative_to(self.root))
            if path.is_symlink() or (not path.is_dir() and name not in self.original):
                path.unlink()
            elif path.is_dir() and name in self.original:
                shutil.rmtree(path)
        for name, content in self.original.items():
            path = self.root / name
            if path.exists() and not path.is_file():
                path.unlink()  # a named pipe
            same = path.exists() and path.stat().st_size == len(content) and path.read_bytes() == content
            if not same:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def reseal(self, name: str) -> None:
        """Make all hashes right that depend on this file."""


def _numbers(run: wf.Run) -> list:
    arrays = [(k, run[k].dtype.str, run[k].tobytes()) for k in run] + [("t", "", run.t.tobytes())]
    states = [np.asarray(state.theta).tobytes() for state in [*run.states, run.final]]
    return [run.status, run.message, arrays, states]


def _reseal_manifest(path: Path, file: str | None) -> None:
    """A manifest that has been edited, or one of the files that it lists."""
    record = json.loads((path / folder.MANIFEST).read_bytes())
    record = record.get("record", record) if isinstance(record, dict) else record
    for entry in folder.entries(record):
        if file is not None and entry["file"] == file:
            entry["sha256"] = hashlib.sha256((path / file).read_bytes()).hexdigest()
    folder.write(path / folder.MANIFEST, folder._serialise(record))


class Store(Target):
    def opened(self) -> list:
        return _numbers(wf.load(self.root))

    def reseal(self, name: str) -> None:
        _reseal_manifest(self.root, None if name == folder.MANIFEST else name)


class Study(Target):
    """`root` holds the study in `study/` and the data that it was run on, `rows.csv`."""

    def opened(self) -> list:
        done = reopened(StudyFolder(self.root / "study"))
        results = {name: value for name, value in done.results.items() if name != "hashes"}
        return [results, {slug: _numbers(run) for slug, run in done.runs.items()}]

    def reseal(self, name: str) -> None:
        parts = Path(name).parts
        place = self.root / "study"
        results = json.loads((place / "results.json").read_bytes())
        if parts[1] == "runs":
            run = place / "runs" / parts[2]
            _reseal_manifest(run, None if parts[3] == folder.MANIFEST else parts[3])
            manifest = (run / folder.MANIFEST).read_bytes()
            results["hashes"]["runs"][parts[2]] = hashlib.sha256(manifest).hexdigest()
        elif parts[1] == "spec.toml":
            results["hashes"]["spec"] = hashlib.sha256((place / "spec.toml").read_bytes()).hexdigest()
        if isinstance(results, dict) and isinstance(results.get("hashes"), dict):
            results["hashes"].pop("results", None)
            (place / "results.json").write_text(json.dumps(sealed(results)))


class Claims(Target):
    NAMES = ("abc-table", "three-ways")

    def opened(self) -> list:
        """As `wideflow reproduce` opens them: None is done again."""
        known = []
        for name in self.NAMES:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    known.append(reproduction._known(EXPERIMENTS[name], "code", self.root, False))
                except UserWarning as told:  # it would be performed again
                    raise folder.DamagedError(str(told)) from None
        if None in known:
            raise folder.DamagedError(f"{self.NAMES[known.index(None)]}.json is of other code or settings")
        return known

    def reseal(self, name: str) -> None:
        if not name.endswith(".json"):
            return
        data = json.loads((self.root / name).read_bytes())
        if isinstance(data, dict) and isinstance(data.get("hashes"), dict):
            data["hashes"].pop("results", None)
            (self.root / name).write_text(json.dumps(sealed(data)))


def made(path: Path) -> list[Target]:
    """One of each, small, so that thousands of damages take minutes."""
    (path / "data").mkdir(parents=True)
    rows = np.random.default_rng(0).normal(size=(9, 3))
    np.savetxt(path / "data" / "rows.csv", rows, delimiter=",", header="p,q,y", comments="")
    x = {"law": "dataset", "file": os.fspath(path / "data" / "rows.csv")}
    observed = {"kernel": 4, "test": 5, "particles": 3}
    asked = study(
        "dynamics.gd.seeds=2", problem={"x": x, "neuron": "erf"}, risk={}, observe=observed, folder=path
    )
    done = run_study(asked, StudyFolder(path / "data" / "study"))
    first = next(iter(done.runs.values()))
    theta = np.random.default_rng(1).normal(size=(3, 4))
    state = wf.Particles(theta, neuron=wf.Neuron("erf", bias=True))
    observations = [{"risk": np.asarray(1.0 - t), "mean": np.arange(2) * t} for t in (0.0, 0.5)]
    saved = tuple(Row(t, seen, state) for t, seen in zip((0.0, 0.5), observations, strict=True))
    wf.Run(saved, state, "ok", "", {"steps": 3}, first.provenance).save(path / "store")
    _write_claims(path / "claims")
    return [Store(path / "store"), Study(path / "data"), Claims(path / "claims")]


def _write_claims(out: Path) -> None:
    good = Check("a slope", "-0.5", -0.49, 0.01, -0.6, -0.4)
    bad = Check("a ratio", "1 or more", 0.91, 0.05, 1.0, math.inf)
    for name, checks in zip(Claims.NAMES, ((good,), (good, bad)), strict=True):
        listed = EXPERIMENTS[name]
        record = records.Record(
            name=name,
            claim=listed.claim,
            source=listed.source,
            checks=checks,
            seconds=12.3,
            version="0.1.0",
            versions={"jax": "0.10"},
            code="code",
            settings=listed.settings(),
            date="today",
        )
        records.write(out, record, b"\x89PNG\r\n\x1a\n" + bytes(range(64)))
