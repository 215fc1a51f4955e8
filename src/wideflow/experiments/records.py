"""What is kept of an experiment: a record in JSON beside its figure, both whole or none.

`NAME.png` is written first and `NAME.json` last, each by a rename; the record carries the hash of the figure.
A bound that is infinite and a figure that is not a number are null in the file."""

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..store import folder
from .base import Check

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
        """Plain data for JSON, with the verdicts that follow from it."""
        verdicts = {"verdict": self.verdict, "passed": self.passed}
        return self.__dict__ | verdicts | {"checks": [_plain(check) for check in self.checks]}


def _plain(check: Check) -> dict[str, Any]:
    numbers = {name: float(getattr(check, name)) for name in _NUMBERS}
    numbers = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {"what": check.what, "claimed": check.claimed} | numbers | {"passed": check.passed}


def _check(data: dict[str, Any]) -> Check:
    numbers = {name: float(absent if data[name] is None else data[name]) for name, absent in _NUMBERS.items()}
    return Check(str(data["what"]), str(data["claimed"]), **numbers)


def write(out: Path, record: Record, figure: bytes | None) -> Record:
    """Write a figure and then its record, which is returned with the figure's hash."""
    out.mkdir(parents=True, exist_ok=True)
    digest = None if figure is None else hashlib.sha256(figure).hexdigest()
    kept = Record(**record.__dict__ | {"figure": digest})
    if figure is not None:
        folder.write(picture(out, record.name), figure)
    text = json.dumps(kept.as_data(), indent=1, ensure_ascii=False, allow_nan=False)
    folder.write(out / f"{record.name}.json", text.encode())
    return kept


def read(out: Path, name: str) -> Record | None:
    """The record of an experiment, or None where it is missing, damaged, or its figure is."""
    try:
        data = json.loads((out / f"{name}.json").read_bytes())
        given = {field: data[field] for field in Record.__dataclass_fields__}
        record = Record(**given | {"checks": tuple(_check(check) for check in data["checks"])})
        whole = record.name == name and (record.error is not None or len(record.checks) > 0)
        if record.figure is not None:
            content = picture(out, name).read_bytes()
            whole = whole and hashlib.sha256(content).hexdigest() == record.figure
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return record if whole else None


def picture(out: Path, name: str) -> Path:
    return out / f"{name}.png"
