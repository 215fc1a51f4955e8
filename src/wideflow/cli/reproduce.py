"""`wideflow reproduce`."""

import sys
from pathlib import Path
from typing import Any

from .console import (
    FAILED,
    GOOD,
    INTERRUPTED,
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
            told = [(str(row["name"]), f"{row['minutes']:g} min", str(row["claim"])) for row in rows]
            answer(table(["claim", "about", "what it says"], told))
        return
    if bool(names) == everything:
        refuse("Give names of claims, or --all; `wideflow reproduce --list` lists them.", json_too)
    from ..experiments.reproduction import OUT, OUT_REDUCED, reproduce

    out = (OUT_REDUCED if reduced else OUT) if out is None else out

    try:
        results = reproduce(names, out, fresh=fresh, reduced=reduced, say=_working)
    except ValueError as error:
        refuse(str(error), json_too)
    found = []
    stopped = "Stopped; what was done is kept, and the same command goes on from there."
    if_stopped(stopped)
    try:
        for result in results:
            found.append(result.record)
            if not json_too:
                _tell(result, out)
    except KeyboardInterrupt:
        print(stopped, file=sys.stderr)
        leave(INTERRUPTED)
    page = out / "index.html"
    if json_too:
        as_json({"page": str(page), "claims": [record.as_data() for record in found]})
    else:
        held = sum(record.passed for record in found)
        what = "reduced runs pass" if reduced else "claims hold"
        answer(f"{held} of {len(found)} {what}. Page: {page}")
    leave(GOOD if all(record.passed for record in found) else FAILED)


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
    print(f"      {record.claim}\n      {record.source}")
    if record.error is not None:
        print(f"      {record.error}")
    for check in record.checks:
        print(f"      {check}")
    tell(f"      figure: {out / record.name}.png")
