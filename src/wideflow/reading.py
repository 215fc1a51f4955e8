"""Runs read back from their folders: all that a manifest lists, every number of it checked."""

from pathlib import Path
from typing import get_args

import numpy as np
from jaxtyping import PyTree

from ._data import Data
from ._shown import shown
from .endings import Ending, Status
from .run import FORMAT, Row, Run
from .store import folder
from .store.records import Functions, decode, revived
from .store.schema import (
    check_fields,
    check_names,
    check_rows,
    check_series,
    check_uniform,
    contents,
    is_finite,
    located,
)

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


def read_record(path: Path, name: str = folder.MANIFEST) -> Data:
    """The manifest of a saved run, or that before it, checked for kind, format and fields."""
    record = folder.read(path, name)
    if record.get("kind") != "run" or record.get("format") != FORMAT:
        raise folder.DamagedError(
            f"{path / name} holds a {shown(record.get('kind'))} of format {shown(record.get('format'))}; "
            f"this version reads runs of format {FORMAT}."
        )
    check_fields(path, record, _FIELDS)
    if record["status"] not in get_args(Status):
        raise folder.DamagedError(f"{path / name}: the status {shown(record['status'])} is none.")
    return record
