"""How large things may be, told before anything is unpacked.

`WIDEFLOW_MAX_MEMORY` (bytes, or such as 8GB) is what the numbers of one file may take."""

import json
import os
import re
from pathlib import Path
from typing import Any

from .._shown import shown
from .opening import DamagedError, size

VARIABLE = "WIDEFLOW_MAX_MEMORY"
DATA = 2 * 2**30  # what a user's table may take, if nobody says more
TEXT = 64 * 2**20  # of a manifest or other JSON: some 10⁵ saved times
_OBJECTS = 2**29  # what it may take in memory
_DEEPEST = 100
_A_VALUE = 80  # bytes of a Python object in a list or dict, at least
_DIGITS = 100  # of a whole number: it is a float, then
_UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def memory(default: int = DATA) -> int:
    """Bytes that the numbers of one file may take."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return default
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,3})?)\s*([A-Za-z]{0,2})\s*", text)
    if match is None or match[2].upper() not in _UNITS:
        raise ValueError(f"{VARIABLE} must be a number of bytes such as 8GB or 500MB, got {shown(text)}.")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def machine() -> int:
    """All memory of this machine: what a run that it has saved itself may take."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 2**40


def advice(needed: float | None = None) -> str:
    """How to allow more."""
    more = "more" if needed is None else size(1.2 * needed).replace(" ", "")
    return f"Set the environment variable {VARIABLE} ({more}) to allow it."


def parsed(text: bytes, path: Path) -> Any:
    """JSON data of bounded size, depth and numbers; else a DamagedError with the file's name."""
    objects = sum(text.count(mark) for mark in (b"[", b"{", b",", b":"))
    if objects * _A_VALUE > memory(_OBJECTS):
        raise DamagedError(f"{path} would take {size(objects * _A_VALUE)} of memory. {advice()}")
    try:
        data = json.loads(text.decode("utf-8"), parse_int=_whole)
        _check_depth(data)
    except RecursionError:
        raise DamagedError(f"{path} is damaged: it is nested too deeply.") from None
    except ValueError as error:  # no text, no JSON, a number without end
        raise DamagedError(f"{path} is damaged: {error}.") from None
    return data


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(digits)


def _check_depth(data: Any) -> None:
    level, depth = [data], 0
    while level:
        if depth > _DEEPEST:
            raise ValueError(f"nested more than {_DEEPEST} deep")
        inner: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                inner.extend(value.values())
            elif isinstance(value, list):
                inner.extend(value)
        level, depth = inner, depth + 1
