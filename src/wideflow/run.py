"""The result of a run, and how it is kept on disk."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import numpy as np
from jaxtyping import PyTree

from ._checks import path as check_path
from ._data import Data
from .endings import Ending, Status
from .references import REFERENCES
from .states.state import AbstractState
from .store import folder
from .store.records import Functions, decode, encode, plain, revived
from .store.retrying import retried
from .store.schema import (
    check_fields,
    check_names,
    check_rows,
    check_series,
    check_uniform,
    contents,
    is_finite,
    is_uniform,
    located,
)

FORMAT = 2
_TRIES = 20  # readings of a folder that another process is writing to
# What a manifest of a run holds; a checkpoint also has its carry and what it was made of.
_FIELDS = {
    "format": int,
    "kind": str,
    "status": str,
    "message": str,
    "info": dict,
    "provenance": dict,
    "times": int,
    "uniform": bool,
    "final": dict,
    "segments": list,
    "carry": dict | None,
    "replicas": int | None,
    "endings": dict | None,
    "fingerprint": dict | None,
}


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
    change if the status is not ok), `run.info`, `run.provenance`.

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
            raise KeyError(f"{name!r} was not observed; this run has {known}.")
        return np.stack([row.observed[name] for row in self.rows])

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __repr__(self) -> str:
        name = self.provenance.get("dynamics", {}).get("name", "run")
        end = f"t = {self.t[-1]:.4g}, risk = {np.nanmean(self['risk'][-1]):.4g}" if self.rows else "empty"
        many = "" if self.replicas is None else f"{self.replicas} replicas, "
        return f"Run({name}, {self.status}, {many}{len(self.rows)} times, {end})"

    def _repr_html_(self) -> str:
        """What a notebook shows: a table, the risk, and the neurons as they move, if snapshots were kept."""
        from .notebook import HEAD, html, row_of

        return html({"run": self}, HEAD, [row_of(self)])

    def citations(self) -> list[str]:
        """The papers behind the methods that this run used."""
        return [REFERENCES[key] for key in self.provenance.get("sources", [])]

    def save(self, directory: str | Path) -> Path:
        """Write the run to a folder, all at once; `wf.load(directory)` reads it back. A fault of the disk
        that passes is tried again; one that stays is a `SaveError`, and the run is still in memory."""
        path = check_path("Run.save(directory)", directory)
        try:
            with folder.lock(path):
                if not self._is_checkpointed(path):
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
        folder.commit(path, record | {"uniform": is_uniform(record)})

    def _is_checkpointed(self, path: Path) -> bool:
        """Whether `evolve` has kept this very run there already. To write over what it needs to go
        on would lose it, so the folder of another checkpoint is refused."""
        record = folder.read(path) if folder.exists(path) else {}
        if "fingerprint" not in record:
            return False
        told = ("status", "message", "provenance")
        if all(header(self)[key] == record[key] for key in told):
            return True
        raise ValueError(f"{path} holds the checkpoint of another run. Save this one to another folder.")


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


def get_state(path: Path, entry: object, functions: Functions | None = None, finite: bool = False) -> PyTree:
    """Read what `put_state` wrote."""
    structure, arrays = contents(path, "final", entry)
    check_names(path, "final", structure, arrays, finite)
    return located(path, lambda: decode(structure, arrays, functions, "final"))


def get_rows(
    path: Path, entry: object, functions: Functions | None = None, ended_well: bool = False
) -> list[Row]:
    """Read what `put_rows` wrote."""
    structure, arrays = contents(path, "segments", entry)
    t, observed, columns = check_rows(path, arrays, ended_well)
    check_names(path, "segments", structure, columns, ended_well and is_finite(observed["risk"]))
    at = lambda group, i: {key: np.asarray(value[i]) for key, value in group.items()}
    state = lambda i: decode(structure, at(columns, i), functions, "segments.state")
    kept = structure is not None
    return [
        Row(float(t[i]), at(observed, i), located(path, lambda i=i: state(i)) if kept else None)
        for i in range(len(t))
    ]


def load(directory: str | Path, functions: dict[str, Callable] | None = None) -> Run:
    """The run saved in a folder. A run of your own functions (a custom neuron or activation) needs
    them again before its states can be evaluated: `functions={"name": fn}`, or `wf.register("name", fn)`.
    What is not as it was written, or does not fit together, is a `DamagedError`.

    >>> folder = wf.evolve(wf.GradientDescent(R, step=0.01), net, ts).save("run")
    >>> wf.load(folder)["risk"].shape
    (3,)"""
    path = check_path("load(directory)", directory)
    record = read_record(path)
    for _ in range(_TRIES):
        try:
            return get_run(path, record, functions)
        except folder.DamagedError:
            # a run that goes on in another process has put a newer checkpoint there meanwhile
            before, record = record, read_record(path)
            if record == before:
                raise
    raise folder.DamagedError(f"{path} changes faster than it can be read; try again.")


def get_run(path: Path, record: Data, functions: Functions | None = None) -> Run:
    """Read what a manifest lists, all of it checked."""
    if "carry" in record:
        folder.verified(path, record["carry"])  # not needed here, but damage is told at once
    ended_well = record["status"] == "ok"
    rows = [row for entry in record["segments"] for row in get_rows(path, entry, functions, ended_well)]
    check_series(path, rows, record["times"])
    finite = ended_well and all(is_finite(row.observed["risk"]) for row in rows[-1:])
    final = get_state(path, record["final"], functions, finite)
    status: Status = "interrupted" if record["status"] == "running" else record["status"]
    check_uniform(path, record)
    info = located(path, lambda: revived(record["info"]))
    check_fields(path, {"seconds": info.get("seconds", 0.0)}, {"seconds": int | float})
    replicas, endings = record.get("replicas"), _endings(path, record)
    return Run(tuple(rows), final, status, record["message"], info, record["provenance"], replicas, endings)


def _endings(path: Path, record: Data) -> dict[int, Ending]:
    """How single replicas ended, by their number."""
    replicas, endings = record.get("replicas"), record.get("endings")
    if (replicas is None) != (endings is None):
        raise folder.DamagedError(f"{path / folder.MANIFEST}: 'replicas' and 'endings' come together.")
    ended = {}
    for number, entry in (endings or {}).items():
        good = (
            number.isdigit() and int(number) < (replicas or 0) and isinstance(entry, list) and len(entry) == 3
        )
        if (
            not good
            or entry[0] not in get_args(Status)
            or type(entry[1]) is not str
            or type(entry[2]) is not int
        ):
            raise folder.DamagedError(
                f"{path / folder.MANIFEST}: 'endings' holds {number!r}: {str(entry)[:80]}."
            )
        ended[int(number)] = Ending(*entry)
    return ended


def read_record(path: Path) -> Data:
    """The manifest of a saved run, checked for kind, format and fields."""
    record = folder.read(path)
    if record.get("kind") != "run" or record.get("format") != FORMAT:
        raise folder.DamagedError(
            f"{path / folder.MANIFEST} holds a {record.get('kind')!r} of format {record.get('format')!r}; "
            f"this version reads runs of format {FORMAT}."
        )
    check_fields(path, record, _FIELDS)
    if record["status"] not in get_args(Status):
        raise folder.DamagedError(f"{path / folder.MANIFEST}: the status {record['status']!r} is none.")
    return record
