"""Columns of a table as numbers: what is missing, names of classes, and mistakes with their place."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._shown import shown
from .table_files import Table

# What spreadsheets and statistics programs write where there is no value.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "?"})
_SHOWN = 3  # texts of a column that a message quotes


class Classes(NamedTuple):
    """Labels 0 … k − 1, and the names that they stand for, in the order of the alphabet."""

    labels: np.ndarray
    names: tuple[str, ...]


def missing_in(table: Table, name: str) -> np.ndarray:
    """Which rows have no value in this column."""
    column = table.columns[name]
    if column.dtype.kind == "U":
        return np.array([str(text).strip().lower() in MISSING for text in column], bool)
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)


def kept(table: Table, rows: np.ndarray) -> Table:
    """The table with these rows alone."""
    columns = {name: column[rows] for name, column in table.columns.items()}
    return Table(columns, [number for number, keep in zip(table.rows, rows, strict=True) if keep])


def filled(table: Table, name: str, mass: np.ndarray | None, path: Path) -> np.ndarray:
    """A column of numbers with its mean (under the weights `mass`) where there is no value."""
    absent = missing_in(table, name)
    if absent.all():
        raise ValueError(
            f"{path}: the column {shown(name)} has no value in any row. Leave it out of `features`."
        )
    values = np.empty(len(absent))
    alone = Table({name: table.columns[name]}, table.rows)
    values[~absent] = numbers(path, name, kept(alone, ~absent) if absent.any() else alone)
    known = None if mass is None else mass[~absent]
    weighted = known is not None and (known >= 0).all() and known.sum() > 0  # Dataset refuses others
    values[absent] = np.average(values[~absent], weights=known if weighted else None)
    return values


def numbers(path: Path, name: str, table: Table) -> np.ndarray:
    """A column of finite numbers, none of them missing; whole ones as integers."""
    column = table.columns[name]
    values = _parsed(path, name, table) if column.dtype.kind == "U" else column
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{path}: the column {shown(name)} must hold numbers, got {values.dtype}.")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{path}, row {table.rows[bad[0]]}, column {shown(name)}: {values[bad[0]]} is not a finite "
            "number. Leave the row out, or put a number in its place."
        )
    return values


def classes(table: Table, name: str) -> Classes | None:
    """The labels of a column of names; None for numbers, and for a mixture, which is a mistake somewhere."""
    column = table.columns[name]
    if column.dtype.kind != "U" or any(_number(text) is not None for text in column):
        return None
    texts = np.array([str(text).strip() for text in column])
    names, labels = np.unique(texts, return_inverse=True)
    return Classes(labels.astype(np.int64), tuple(map(str, names)))


def quoted(texts: Iterable[str]) -> str:
    """The first few of some texts, in quotes."""
    different = list(dict.fromkeys(map(str, texts)))
    more = ", …" if len(different) > _SHOWN else ""
    return ", ".join(map(repr, different[:_SHOWN])) + more


def _parsed(path: Path, name: str, table: Table) -> np.ndarray:
    texts = table.columns[name]
    values = [_number(text) for text in texts]
    if all(value is None for value in values):
        raise ValueError(
            f"{path}: the column {shown(name)} holds text ({quoted(texts)}), not numbers. Leave it out by "
            "listing the others in `features`, or encode it as numbers, say one column of 0 and 1 for each "
            "value."
        )
    for i, value in enumerate(values):
        if value is None:
            raise ValueError(
                f"{path}, row {table.rows[i]}, column {shown(name)}: {shown(str(texts[i]))} is not a number, "
                "as other values of the column are. Correct it, or leave the row out."
            )
    parsed = np.array(values, float)
    whole = all(text.strip().lstrip("+-").isdigit() for text in texts)
    return parsed.astype(np.int64) if whole and (np.abs(parsed) < 2**53).all() else parsed


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def told_missing(path: Path, table: Table, absent: dict[str, np.ndarray]) -> str:
    """Why rows with missing values are refused: how many, where, and what to do."""
    rows: Sequence[int] = np.flatnonzero(np.any(list(absent.values()), axis=0)).tolist()
    first = next(name for name, mask in absent.items() if mask[rows[0]])
    counts = {name: int(mask.sum()) for name, mask in absent.items() if mask.any()}
    most = sorted(counts, key=lambda name: -counts[name])[:_SHOWN]
    where = ", ".join(f"{counts[name]} in {shown(name)}" for name in most)
    where += f" and others in {len(counts) - len(most)} more columns" if len(counts) > len(most) else ""
    have = "has a missing value" if len(rows) == 1 else "have missing values"
    return (
        f"{path}: {len(rows)} of {len(table.rows)} rows {have} ({where}; the first in row "
        f'{table.rows[rows[0]]}, column {shown(first)}). Set missing = "drop" to leave such rows out, or '
        'missing = "mean" to fill features with the mean of their column.'
    )
