"""Checks of user input: each error says what was given, what is allowed, what to try."""

import difflib
import math
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._shown import shown

_LONGEST = 200  # letters of a name that may be misspelt
_LONGEST_PATH, _LONGEST_PART = 4095, 255  # bytes of a path and of each name in it: Linux takes no more


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint ` Did you mean 'relu'?` for a misspelt name, or nothing when no name is close."""
    if len(str(name)) > _LONGEST:
        return ""  # close to none, and 10⁸ letters would be compared for minutes
    close = difflib.get_close_matches(str(name).lower(), list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def is_traced(value: object) -> bool:
    """Whether `value` is inside a JAX transformation, where it has a shape but no number to check."""
    jax = sys.modules.get("jax")  # whoever holds a tracer has loaded it
    return jax is not None and isinstance(value, jax.core.Tracer)


def positive(name: str, value: Any, *, zero: bool = False, infinite: bool = False) -> float:
    """`value` as a float, if it is a number > 0 (or >= 0 with `zero`, or +inf with `infinite`)."""
    if is_traced(value):
        return value
    allowed = ("a number >= 0" if zero else "a number > 0") + (" or inf" if infinite else "")
    real = _real(value)
    right_sign = real >= 0 if zero else real > 0
    if not right_sign or (math.isinf(real) and not infinite):
        raise ValueError(f"{name} must be {allowed}, got {shown(value)}.")
    return real


def number(name: str, value: Any) -> float:
    """`value` as a float, if it is a finite number."""
    if is_traced(value):
        return value
    real = _real(value)
    if not math.isfinite(real):
        raise ValueError(f"{name} must be a finite number, got {shown(value)}.")
    return real


def _real(value: Any) -> float:
    """`value` as a float; NaN if it is not a number (nor are a string and an array of one)."""
    try:
        return math.nan if isinstance(value, str | bytes) or np.ndim(value) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def count(name: str, value: Any, *, least: int = 1) -> int:
    """`value` as an int, if it is a whole number >= `least`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}, got {shown(value)}.")
    if value >= 2**63:
        raise ValueError(f"{name} must be a whole number below 2**63, got {shown(value)}.")
    return int(value)


def path(name: str, value: str | os.PathLike[str]) -> Path:
    """`value` as a path, if a file can have that name."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{name} must be the name of a file or folder, got {shown(value)}.")
    if why := _no_path(os.fspath(value)):
        raise ValueError(f"{name} must be the name of a file or folder, got {shown(value)}, which {why}.")
    return Path(value)


def _no_path(text: str) -> str:
    """Why no file can have this name; empty if one can."""
    if "\0" in text:
        return "holds a NUL"
    if len(text) > _LONGEST_PATH or any(len(os.fsencode(part)) > _LONGEST_PART for part in text.split("/")):
        return f"is too long: at most {_LONGEST_PART} bytes a name, and {_LONGEST_PATH} in all"
    return ""


def function(name: str, value: object) -> Any:
    """`value`, if it can be called."""
    if not callable(value):
        raise ValueError(f"{name} must be a JAX function, got {shown(value)}.")
    return value


def key(name: str, value: object) -> Any:
    """`value`, if it is a key of jax.random."""
    dtype = str(getattr(value, "dtype", None))
    if not (dtype.startswith("key<") or dtype == "uint32"):
        raise ValueError(f"{name} must be a key such as jax.random.key(0), got {shown(value)}.")
    return value


def finite(name: str, array: ArrayLike) -> np.ndarray:
    """`array` as a NumPy array, if every entry is a finite number; the first bad entry is named."""
    try:
        values = np.asarray(array)
    except (TypeError, ValueError) as error:  # ragged rows
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, got dtype {values.dtype}.")
    bad = ~np.isfinite(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite, but {int(bad.sum())} of {values.size} entries are not; "
            f"the first is {values[where]} at index {where}. Remove or impute those rows."
        )
    return values


def times(ts: ArrayLike) -> np.ndarray:
    """Saved times as a float64 vector: finite, >= 0, strictly increasing."""
    values = finite("ts", ts).astype(np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"ts must be a vector of at least one time, got shape {values.shape}.")
    if values[0] < 0:
        raise ValueError(f"ts must be >= 0, got ts[0] = {values[0]}.")
    steps = np.diff(values)
    if (steps <= 0).any():
        i = int(np.argmax(steps <= 0))
        raise ValueError(
            f"ts must increase strictly, but ts[{i}] = {values[i]} is followed by "
            f"ts[{i + 1}] = {values[i + 1]}. Try jnp.unique(ts)."
        )
    return values


def available_memory() -> float:
    """Bytes that can still be allocated on this machine, as far as the system says (else inf)."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return float(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return math.inf


def fits(name: str, size: float, hint: str) -> None:
    """Refuse what is larger than the memory that is left, before anything is allocated."""
    free = available_memory()
    if size > free:
        raise MemoryError(
            f"{name} needs about {size / 2**30:.3g} GiB, but {free / 2**30:.3g} GiB are free. {hint}"
        )
