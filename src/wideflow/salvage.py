"""`load`: a run from its folder, or what is whole of it."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ._checks import path as check_path
from ._data import Data
from .reading import get_rows, get_run, get_state, read_record
from .run import Row, Run
from .store import folder
from .store.records import Functions
from .store.schema import check_rows

_TRIES = 20  # readings of a folder that another process is writing to


def load(
    directory: str | Path, functions: dict[str, Callable] | None = None, *, salvage: bool = False
) -> Run:
    """The run saved in a folder. A run of your own functions (a custom neuron or activation) needs
    them again before its states can be evaluated: `functions={"name": fn}`, or `wf.register("name", fn)`.
    What is not as it was written, or does not fit together, is a `DamagedError`.

    With `salvage` a damaged folder gives what is whole in it: the checkpoint before the last one, else the
    saved times whose files are whole. Such a run is "interrupted", and its message says what was lost.

    >>> folder = wf.evolve(wf.GradientDescent(R, step=0.01), net, ts).save("run")
    >>> wf.load(folder)["risk"].shape
    (3,)"""
    path = check_path("load(directory)", directory)
    try:
        return _newest(path, functions)
    except folder.DamagedError as error:
        if salvage:
            return _salvaged(path, functions, error)
        hint = "To get what is still whole: wf.load(folder, salvage=True)."
        raise type(error)(f"{error} {hint}") from error


def _newest(path: Path, functions: Functions | None) -> Run:
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


def _salvaged(path: Path, functions: Functions | None, damage: folder.DamagedError) -> Run:
    """The previous generation, else the saved times that are whole."""
    records: list[Data] = []
    for name in (folder.MANIFEST, folder.PREVIOUS):
        try:
            records.append(read_record(path, name))
            run = get_run(path, records[-1], functions)
        except (folder.DamagedError, FileNotFoundError):
            continue
        until = f"up to t = {run.t[-1]:.6g}" if run.rows else "before its first saved time"
        message = f"Salvaged: {damage} This is the checkpoint before it, {until}; evolve goes on from there."
        return replace(run, status="interrupted", message=message)
    for record in records:
        rows = _whole_rows(path, record, functions)
        if rows:
            return _of_rows(path, record, functions, rows, damage)
    rows = _loose_rows(path)
    if not rows:
        raise type(damage)(f"{damage} Nothing in {path} could be salvaged.") from damage
    message = (
        f"Salvaged: {damage} What was observed at {len(rows)} saved times is whole; all states are lost."
    )
    return Run(tuple(rows), None, "interrupted", message)


def _whole_rows(path: Path, record: Data, functions: Functions | None) -> list[Row]:
    """The saved times of all segments that are whole."""
    rows: list[Row] = []
    for entry in record["segments"]:
        with contextlib.suppress(folder.DamagedError):
            rows += get_rows(path, entry, functions)
    return rows


def _of_rows(
    path: Path, record: Data, functions: Functions | None, rows: list[Row], damage: folder.DamagedError
) -> Run:
    lost = record["times"] - len(rows)
    message = f"Salvaged: {damage} {lost or 'None'} of {record['times']} saved times are lost."
    try:
        final = get_state(path, record["final"], functions)
    except folder.DamagedError:
        final = rows[-1].state
        which = "none is left" if final is None else "that of the last saved time stands for it"
        message = f"{message} The final state is lost: {which}."
    return Run(
        tuple(rows), final, "interrupted", message, {}, record["provenance"], record.get("replicas"), {}
    )


def _loose_rows(path: Path) -> list[Row]:
    """Observations in files that no manifest tells of any more, but that have the hash in their names."""
    rows: dict[float, Row] = {}
    for file in sorted(path.glob("rows-*.npz")):
        with contextlib.suppress(folder.DamagedError, OSError):
            t, observed, _ = check_rows(path, folder.loose(file), ended_well=False)
            at = lambda i, observed=observed: {name: np.asarray(v[i]) for name, v in observed.items()}
            rows |= {float(t[i]): Row(float(t[i]), at(i), None) for i in range(len(t))}
    return [rows[t] for t in sorted(rows)]
