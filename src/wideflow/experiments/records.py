"""What is kept of an experiment: a record in JSON beside its figure, both whole or none.

`NAME.png` is written first and `NAME.json` last, each by a rename; the record carries the hashes of itself
and of the figure, so that no digit of it is changed unnoticed. A bound that is infinite and a figure that is
not a number are null in the file. Verdicts, and the lines that the command prints of the checks, are kept
beside them and must agree: an edit in one place is noticed even if all hashes are made right again."""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..store import folder
from ..store.opening import DamagedError, content
from ..store.seals import read_sealed, sealed
from .base import Check

FORMAT = 2  # 1 had no lines
_PICTURE = 64 * 2**20  # bytes of a figure
# The numbers of a check, with what null stands for in a file.
_NUMBERS = {"measured": math.nan, "error": math.nan, "low": -math.inf, "high": math.inf}


@dataclass(frozen=True)
class Record:
    """What one experiment found, when, and with which code. `error` is what was raised, if it did not end."""

    name: str
    claim: str
    source: str
    checks: tuple[Check, ...]
    seconds: float
    version: str  # of wideflow
    versions: dict[str, str]  # of all that the figures depend on
    code: str  # hash of the text that it ran
    settings: str  # hash of the settings that it ran with
    date: str
    error: str | None = None
    figure: str | None = None  # hash of the picture
    reduced: bool = False  # made at a reduced size, so that it says nothing of the published claim

    @property
    def passed(self) -> bool:
        return self.error is None and all(check.passed for check in self.checks)

    @property
    def verdict(self) -> str:
        return "ERROR" if self.error is not None else "PASS" if self.passed else "FAIL"

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON, with the verdicts and lines that follow from it."""
        follow = {"verdict": self.verdict, "passed": self.passed, "lines": [str(c) for c in self.checks]}
        return self.__dict__ | follow | {"checks": [_plain(check) for check in self.checks]}


def _plain(check: Check) -> dict[str, Any]:
    numbers = {name: float(getattr(check, name)) for name in _NUMBERS}
    numbers = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {"what": check.what, "claimed": check.claimed} | numbers | {"passed": check.passed}


def _check(data: dict[str, Any]) -> Check:
    if not all(value is None or type(value) in (int, float) for value in (data[name] for name in _NUMBERS)):
        raise TypeError("a figure of its checks is no number")
    numbers = {name: float(absent if data[name] is None else data[name]) for name, absent in _NUMBERS.items()}
    check = Check(data["what"], data["claimed"], **numbers)
    if _plain(check) != data:
        raise ValueError(f"what it says of {str(check.what)[:80]!r} does not agree with its numbers")
    return check


def write(out: Path, record: Record, figure: bytes | None) -> Record:
    """Write a figure and then its record, which is returned with the figure's hash."""
    folder.make(out)
    digest = None if figure is None else hashlib.sha256(figure).hexdigest()
    kept = replace(record, figure=digest)
    if figure is not None:
        folder.write(picture(out, record.name), figure)
    data = sealed({"kind": "claim", "format": FORMAT} | kept.as_data())
    folder.write(
        path(out, record.name), json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False).encode()
    )
    return kept


def read(out: Path, name: str) -> Record | None:
    """The record of an experiment, None where there is none. One that is damaged or edited, or whose figure
    is, is a DamagedError."""
    place = path(out, name)
    try:
        data = read_sealed(place, "claim", FORMAT, {"hashes": dict})
    except FileNotFoundError:
        return None
    record = _record(place, data)
    if record.name != name:
        raise DamagedError(f"{place} is the record of {record.name[:80]!r}.")
    if record.figure is not None:
        try:
            figure = content(picture(out, name), _PICTURE)
        except FileNotFoundError:
            raise DamagedError(f"{picture(out, name)} is missing, though {place} lists it.") from None
        if hashlib.sha256(figure).hexdigest() != record.figure:
            raise DamagedError(
                f"{picture(out, name)} is damaged: it has not the hash that {place} has of it."
            )
    return record


_TYPES = {
    "seconds": int | float,
    "versions": dict,
    "error": str | None,
    "figure": str | None,
    "reduced": bool,
}


def _record(place: Path, data: dict[str, Any]) -> Record:
    """The record in a file, if its fields have their types and fit together."""
    try:
        checks = tuple(_check(check) for check in data["checks"])
        if any(check in checks[:i] for i, check in enumerate(checks)):
            raise ValueError("it holds a check twice")
        fields = {field: data[field] for field in Record.__dataclass_fields__ if field != "checks"}
        for field, value in fields.items():
            if not isinstance(value, _TYPES.get(field, str)):
                raise TypeError(f"its {field} is {str(value)[:80]!r}")
        if not all(isinstance(version, str) for version in fields["versions"].values()):
            raise TypeError("its versions are no texts")
        record = Record(checks=checks, **fields)
        expected = record.as_data()
        if set(data) != {"kind", "format", "hashes", *expected} or set(data["hashes"]) != {"results"}:
            raise ValueError("it has fields that no record has, or lacks some")
        for field in ("verdict", "passed", "lines"):
            if type(data[field]) is not type(expected[field]) or data[field] != expected[field]:
                raise ValueError(f"its {field} does not follow from its checks")
        if not ((record.error is None) == bool(checks) == (record.figure is not None)):
            raise ValueError("it must have checks and a figure, or an error")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DamagedError(f"{place} is damaged: {error}.") from None
    return record


def path(out: Path, name: str) -> Path:
    return out / f"{name}.json"


def picture(out: Path, name: str) -> Path:
    return out / f"{name}.png"
