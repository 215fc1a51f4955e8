"""The result of a run, and how it is written to disk."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import PyTree

from ._checks import path as check_path
from ._data import Data
from ._shown import shown
from .endings import Ending, Status
from .references import REFERENCES
from .states.state import AbstractState
from .store import folder
from .store.records import encode, plain
from .store.retrying import retried
from .store.schema import is_uniform

FORMAT = 2


@dataclass(frozen=True)
class Row:
    """What is kept of one saved time."""

    t: float
    observed: dict[str, np.ndarray]
    state: AbstractState | None


@dataclass(frozen=True)
class Run:
    """Times, observations, snapshots, status and provenance of one evolution.

    `run.t`, `run["risk"]` (every observer by its name), `run.states` (snapshots at `run.t`),
    `run.final`, `run.status` ("ok", "diverged", "stalled", "interrupted"), `run.message` (what to
    change if the status is not ok, and what could not be saved), `run.info` (`checkpoint_error`, if the last
    checkpoint could not be written), `run.provenance`.

    >>> run = wf.evolve(wf.GradientDescent(R, step=0.01), net, ts)
    >>> run.t, run.status, len(run.states), run.final(jnp.ones((2, 3))).shape
    (array([0. , 0.1, 0.2]), 'ok', 3, (2,))"""

    rows: tuple[Row, ...]
    final: PyTree
    status: Status = "ok"
    message: str = ""
    info: Data = field(default_factory=dict)
    provenance: Data = field(default_factory=dict)
    replicas: int | None = None
    endings: dict[int, Ending] = field(default_factory=dict)  # of replicas that ended before the run did

    def replica(self, r: int) -> "Run":
        """Replica r as a run of its own, up to where it went."""
        if self.replicas is None or not -self.replicas <= r < self.replicas:
            many = "no replicas" if self.replicas is None else f"{self.replicas} replicas"
            raise ValueError(f"This run has {many}; there is no replica {r}.")
        r = r % self.replicas
        ending = self.endings.get(r)
        kept = self.rows if ending is None else self.rows[: ending.rows]
        one = lambda state: None if state is None else state.replica(r)
        rows = tuple(Row(row.t, {k: v[r] for k, v in row.observed.items()}, one(row.state)) for row in kept)
        own = lambda value: value[r] if isinstance(value, list) and len(value) == self.replicas else value
        info = {name: own(value) for name, value in self.info.items()}
        status, message = self._status_of(ending)
        origin = self.provenance | {"replica": r}
        if np.ndim(origin.get("seed", ())) == 2:
            origin |= {"seed": origin["seed"][r]}
        return Run(rows, self.final.replica(r), status, message, info, origin)

    def _status_of(self, ending: Ending | None) -> tuple[Status, str]:
        """Of one replica: its own if it ended before the run did, else that of the run."""
        if ending is not None:
            return ending.status, ending.message
        return ("ok", "") if self.status in ("diverged", "stalled") else (self.status, self.message)

    @property
    def t(self) -> np.ndarray:
        """The saved times that were reached."""
        return np.array([row.t for row in self.rows])

    @property
    def states(self) -> list[PyTree]:
        """Snapshots at `t`; empty if the run kept none (`evolve(..., snapshots=False)`)."""
        return [row.state for row in self.rows if row.state is not None]

    def keys(self) -> list[str]:
        """Names of the observations."""
        return list(self.rows[0].observed) if self.rows else []

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.keys():
            known = ", ".join(self.keys()) or "no saved time yet"
            raise KeyError(f"{shown(name)} was not observed; this run has {known}.")
        return np.stack([row.observed[name] for row in self.rows])

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __repr__(self) -> str:
        name = self.provenance.get("dynamics", {}).get("name", "run")
        end = f"t = {self.t[-1]:.4g}, risk = {np.nanmean(self['risk'][-1]):.4g}" if self.rows else "empty"
        many = "" if self.replicas is None else f"{self.replicas} replicas, "
        status = f"{self.status}, not saved" if "checkpoint_error" in self.info else self.status
        return f"Run({name}, {status}, {many}{len(self.rows)} times, {end})"

    def _repr_html_(self) -> str:
        """What a notebook shows: a table, the risk, and the neurons as they move, if snapshots were kept."""
        from .notebook import HEAD, html, row_of

        return html({"run": self}, HEAD, [row_of(self)])

    def citations(self) -> list[str]:
        """The papers behind the methods that this run used."""
        return [REFERENCES[key] for key in self.provenance.get("sources", [])]

    def save(self, directory: str | Path, overwrite: bool = False) -> Path:
        """Write the run to a folder, all at once; `wf.load(directory)` reads it back. A folder that holds
        another run is refused unless `overwrite`, which replaces it. A fault of the disk that passes is tried
        again; one that stays is a `SaveError`, and the run is still in memory."""
        path = check_path("Run.save(directory)", directory)
        try:
            with folder.lock(path):
                if overwrite or not self._is_kept(path):
                    retried(lambda: self._write(path))
        except OSError as error:
            raise folder.SaveError(
                error.errno,
                f"The run cannot be saved to {path}: {error.strerror or error}. It is still in memory: try "
                "run.save(another_folder).",
            ) from error
        return path

    def _write(self, path: Path) -> None:
        record = header(self) | {
            "final": put_state(path, "final", self.final),
            "segments": [put_rows(path, "rows-00000", self.rows)] if self.rows else [],
        }
        folder.commit(path, record | {"uniform": is_uniform(record)}, generations=1)

    def _is_kept(self, path: Path) -> bool:
        """Whether the checkpoint of this very run is there already, to be left as it is. A folder with
        another run, or with more of this one, is refused; what was saved of it by hand is replaced."""
        if not folder.exists(path):
            return False
        instead = "Save to another folder, or replace what is there: run.save(folder, overwrite=True)."
        try:
            record = folder.read(path)
            saved = _observed(path, record)
        except folder.DamagedError as error:
            raise folder.DamagedError(f"{path} holds a run that is damaged: {error} {instead}") from error
        if record.get("provenance") != plain(self.provenance) or not _begins(saved, self):
            raise ValueError(f"{path} holds another run. {instead}")
        kept = "fingerprint" in record
        if len(saved["t"]) > len(self.rows) or (kept and record["status"] != self.status):
            raise ValueError(f"{path} holds this run at another stage. {instead}")
        return kept


def _observed(path: Path, record: Data) -> dict[str, np.ndarray]:
    """Times and observations that a folder holds, each along the saved times."""
    parts = [folder.get(path, entry["arrays"]) for entry in record.get("segments", [])]
    names = [name for name in (parts[0] if parts else ()) if not name.startswith("state/")]
    empty = {"t": np.zeros(0)}
    return empty | {name: np.concatenate([part[name] for part in parts]) for name in names}


def _begins(saved: dict[str, np.ndarray], run: Run) -> bool:
    """Whether saved observations and a run are the same as far as both go."""
    if len(saved["t"]) == 0 or not run.rows:
        return len(saved["t"]) <= len(run.rows)
    both = min(len(saved["t"]), len(run.rows))
    own = {"t": run.t} | {f"observed/{name}": run[name] for name in run}
    same = lambda one, other: one.dtype == other.dtype and one[:both].tobytes() == other[:both].tobytes()
    return own.keys() == saved.keys() and all(same(own[name], saved[name]) for name in own)


def header(run: Run, **more: object) -> Data:
    """The part of a manifest that is not arrays."""
    head = {"format": FORMAT, "kind": "run", "status": run.status, "message": run.message}
    if run.replicas is not None:
        ended = {str(r): [end.status, end.message, end.rows] for r, end in run.endings.items()}
        head |= {"replicas": run.replicas, "endings": ended}
    told = {"info": plain(run.info), "provenance": plain(run.provenance), "times": len(run.rows)}
    return head | told | more


def put_state(path: Path, name: str, state: AbstractState) -> Data:
    """Write one state; its entry holds the structure beside the file."""
    arrays: dict[str, np.ndarray] = {}
    return {"state": encode(state, arrays), "arrays": folder.put(path, name, arrays)}


def put_rows(path: Path, name: str, rows: tuple[Row, ...]) -> Data:
    """Write saved times as arrays with a leading time axis."""
    arrays = {"t": np.array([row.t for row in rows])}
    for key in rows[0].observed:
        arrays[f"observed/{key}"] = np.stack([row.observed[key] for row in rows])
    structure = None
    if rows[0].state is not None:
        columns: dict[str, list[np.ndarray]] = {}
        for row in rows:
            leaves: dict[str, np.ndarray] = {}
            structure = encode(row.state, leaves)
            for key, value in leaves.items():
                columns.setdefault(key, []).append(value)
        arrays |= {f"state/{key}": np.stack(values) for key, values in columns.items()}
    return {"state": structure, "arrays": folder.put(path, name, arrays)}
