"""`wideflow reproduce`."""

import sys
from pathlib import Path
from typing import Any

from .console import (
    FAILED,
    GOOD,
    INTERRUPTED,
    OutputError,
    answer,
    as_json,
    if_stopped,
    leave,
    on_terminal,
    refuse,
    table,
    tell,
)


def reproduce_command(
    names: list[str],
    everything: bool,
    listing: bool,
    out: Path | None,
    fresh: bool,
    reduced: bool,
    json_too: bool,
) -> None:
    """Run published claims and write their page."""
    from ..experiments import catalogue

    if listing:
        rows = catalogue.listing()
        if json_too:
            as_json(rows)
        else:
            lines = [(str(row["name"]), f"{row['minutes']:g} min", str(row["claim"])) for row in rows]
            answer(table(["claim", "about", "what it says"], lines))
        return
    if bool(names) == everything:
        refuse("Give names of claims, or --all; `wideflow reproduce --list` lists them.", json_too)
    from ..experiments.reproduction import OUT, OUT_REDUCED, reproduce
    from ..store.opening import DamagedError
    from ..store.retrying import NO_PLACE
    from .run import unsaved

    out = (OUT_REDUCED if reduced else OUT) if out is None else out

    try:
        results = reproduce(names, out, fresh=fresh, reduced=reduced, say=_working)
    except ValueError as error:
        refuse(str(error), json_too)
    _check_place(out, json_too)
    performed = []
    stopped = "Stopped; what was done is kept, and the same command goes on from there."
    if_stopped(stopped)
    try:
        for result in results:
            performed.append(result.record)
            if not json_too:
                _tell(result, out)
    except DamagedError as error:
        refuse(str(error), json_too)
    except OutputError:
        raise
    except OSError as error:
        if error.errno in NO_PLACE:
            refuse(
                f"{error.filename2 or error.filename or out} cannot be written: {error.strerror}.", json_too
            )
        unsaved(f"{error.strerror or error}.", out, "Make room, then the same command goes on.", json_too)
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        leave(INTERRUPTED)
    page = out / "index.html"
    if json_too:
        as_json({"page": str(page), "claims": [record.as_data() for record in performed]})
    else:
        held = sum(record.passed for record in performed)
        what = "reduced runs pass" if reduced else "claims hold"
        answer(f"{held} of {len(performed)} {what}. Page: {page}")
    leave(GOOD if all(record.passed for record in performed) else FAILED)


def _check_place(out: Path, json_too: bool) -> None:
    """Whether the folder takes a file at all: to learn that after minutes would be late."""
    from ..store.folder import make, write

    try:
        make(out)
        write(out / ".wideflow", b"?")
        (out / ".wideflow").unlink()
    except OSError as error:
        refuse(f"{out} cannot be written: {error.strerror or error}. Nothing was computed.", json_too)


def _working(name: str, text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K  {name}: {text}" if text else "\r\033[K", end="", file=sys.stderr, flush=True)


def _tell(result: Any, out: Path) -> None:
    record = result.record
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    size = " at a reduced size" if record.reduced else ""
    done = " (done before)" if result.already else f" ({record.seconds:.0f} s)"
    answer(f"{record.verdict}  {record.name}{size}{done}")
    if not on_terminal():
        return
    answer(f"      {record.claim}\n      {record.source}")
    if record.error is not None:
        answer(f"      {record.error}")
    for check in record.checks:
        answer(f"      {check}")
    tell(f"      figure: {out / record.name}.png")
