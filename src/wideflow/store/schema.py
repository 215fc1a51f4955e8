"""What must be behind a right hash: names, types, shapes and finite numbers that fit together. Each error is
a DamagedError with the file and the field."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from .._data import Data
from .._shown import shown
from .folder import MANIFEST, DamagedError, get
from .records import array_names

T = TypeVar("T")
Arrays = dict[str, np.ndarray]


def damaged(path: Path, why: str) -> DamagedError:
    return DamagedError(f"{Path(path) / MANIFEST}: {why}")


def located(path: Path, read: Callable[[], T]) -> T:
    """read(), with the manifest's name in what it says of damage."""
    try:
        return read()
    except DamagedError as error:
        raise type(error)(f"{Path(path) / MANIFEST}: {error}") from error


def check_fields(path: Path, record: Data, fields: Data) -> None:
    """Raise unless a record has these fields and no others, each of its type."""
    for name in sorted({*record} - {*fields}):
        raise damaged(path, f"the field {shown(name)} does not belong there.")
    for name, kind in fields.items():
        value = record.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wanted = getattr(kind, "__name__", str(kind))
            raise damaged(path, f"the field {name!r} must be a {wanted}, got {str(value)[:80]!r}.")


def contents(path: Path, field: str, entry: object) -> tuple[object, Arrays]:
    """Structure and arrays of an entry of states."""
    if not isinstance(entry, dict) or set(entry) != {"state", "arrays"}:
        raise damaged(path, f"the field {field!r} must have a state and its arrays, got {str(entry)[:80]!r}.")
    return entry["state"], get(path, entry["arrays"])


def check_names(path: Path, field: str, structure: object, arrays: Arrays, finite: bool) -> None:
    """Raise unless a structure names all arrays once, and, if asked, all their numbers are finite."""
    if sorted(array_names(structure)) != sorted(arrays):
        raise damaged(path, f"{field}.state names other arrays than its file holds, {sorted(arrays)[:5]}.")
    for name, value in arrays.items():
        if finite and not is_finite(value):
            raise damaged(path, f"{field}.{name} is not finite, though the run ended well.")


def check_rows(path: Path, arrays: Arrays, ended_well: bool) -> tuple[np.ndarray, Arrays, Arrays]:
    """(times, observations, states), if all have the same number of times."""
    parts: dict[str, Arrays] = {"observed/": {}, "state/": {}}
    for key, value in arrays.items():
        prefix = next((p for p in parts if key.startswith(p)), None)
        if prefix is not None:
            parts[prefix][key.removeprefix(prefix)] = value
        elif key != "t":
            raise damaged(path, f"segments: an array {shown(key)} does not belong there.")
        if value.ndim < 1 or len(value) != len(np.atleast_1d(arrays.get("t", ()))):
            raise damaged(
                path, f"segments: {shown(key)} of shape {value.shape} has not one entry for each time."
            )
    t, observed, states = arrays.get("t"), parts["observed/"], parts["state/"]
    if t is None or t.ndim != 1 or t.dtype != np.float64 or not is_finite(t) or (np.diff(t) < 0).any():
        raise damaged(path, "segments: 't' must be finite times in order.")
    if not len(t) or "risk" not in observed or any(v.dtype.kind not in "fiub" for v in observed.values()):
        raise damaged(path, f"segments: the risk and other numbers are needed, got {sorted(observed)[:5]}.")
    risk = observed["risk"]
    if ended_well and risk.ndim == 1 and not is_finite(risk):  # of several replicas one may have diverged
        raise damaged(path, "segments: 'observed/risk' is not finite, though the run ended well.")
    return t, observed, states


def check_series(path: Path, rows: Sequence, times: int) -> None:
    """Raise unless the rows of all segments go on from each other."""
    if len(rows) != times:
        raise damaged(path, f"'segments' hold {len(rows)} times, but 'times' is {times}.")
    form = lambda row: ({k: (v.shape, v.dtype) for k, v in row.observed.items()}, row.state is None)
    for before, after in pairwise(rows):
        if after.t < before.t or form(after) != form(before):
            raise damaged(path, f"'segments' do not go on from each other after t = {before.t:.6g}.")


def is_uniform(record: Data) -> bool:
    """Whether the snapshots of a run are described as its final state is: as in all runs of `evolve`."""
    return all(entry["state"] in (None, record["final"]["state"]) for entry in record["segments"])


def check_uniform(path: Path, record: Data) -> None:
    """Raise unless snapshots and final state are of one kind, where they were when the run was saved."""
    if not record["uniform"]:
        return
    if not is_uniform(record):
        raise damaged(path, "'segments' hold other states than 'final'.")
    final = record["final"]["arrays"]["holds"]
    for entry in record["segments"]:
        for name, (dtype, shape) in entry["arrays"]["holds"].items():
            if name.startswith("state/") and final.get(name.removeprefix("state/")) != [dtype, shape[1:]]:
                raise damaged(path, f"segments: {shown(name)} has another type or shape than in 'final'.")


def is_finite(value: np.ndarray) -> bool:
    return bool(np.isfinite(value).all()) if value.dtype.kind in "fc" else True
