"""Data sets from files with named columns: CSV, NPZ, Parquet."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from .._checks import nearest
from .._checks import path as check_path
from .._shown import shown
from .columns import classes, filled, kept, missing_in, numbers, quoted, told_missing
from .laws import Dataset
from .table_files import Columns, Table, read_table

Missing = Literal["drop", "mean"]


@dataclass(frozen=True)
class _Roles:
    """What the columns of a table are: names of features, of labels, and of the one of weights, if any."""

    features: list[str]
    labels: list[str]
    weights: list[str]


def read_dataset(
    file: str | Path,
    features: Sequence[str] | None = None,
    target: str | Sequence[str] = "y",
    weights: str | None = None,
    standardise: bool = False,
    standardise_target: bool = False,
    missing: Missing | None = None,
) -> Dataset:
    """The data set in a table: columns `features` (by default all others) are x, `target` is y (several names
    make several labels a row). In an NPZ file an array (m, k) is k columns, called name1, …, namek; its own
    name stands for all of them.

    - `target`: a column of names makes classes 0 … k − 1 in the order of the alphabet, which are kept as
      `dataset.classes`.
    - `standardise`: each feature gets mean 0 and standard deviation 1, under the weights, if there are some.
    - `standardise_target`: the same for y, which otherwise may be of any size: prices of 10⁵ need steps of
      10⁻¹⁰.
    - `missing`: rows with empty cells, NaN, null, NA or ? are an error unless it is "drop", which leaves them
      out, or "mean", which puts the mean of its column in place of a missing feature (rows without a label
      or weight are left out). `dataset.notes` tells what was done.

    A file whose numbers would take more than 2 GB of memory is refused before it is unpacked; the environment
    variable `WIDEFLOW_MAX_MEMORY` (such as 8GB) allows more.

    >>> np.savez("flats.npz", rooms=[2, 3], area=[50, 80], price=[1.0, 1.5])
    >>> data = wf.read_dataset("flats.npz", target="price")
    >>> data.d, data.y
    (2, Array([1. , 1.5], dtype=float64))"""
    if missing is not None and missing not in get_args(Missing):
        words = get_args(Missing)
        raise ValueError(
            f"missing must be one of {words} or None, got {shown(missing)}.{nearest(str(missing), words)}"
        )
    path = check_path("read_dataset(file)", file)
    table = read_table(path)
    roles = _roles(path, table.columns, features, target, weights)
    table, notes = _complete(path, table, roles, missing)
    mass = numbers(path, roles.weights[0], table).astype(float) if roles.weights else None
    x = np.column_stack([filled(table, name, mass, path) for name in roles.features])
    if standardise:
        x = _standardised(path, x, roles.features, mass)
    y, names = _labels(path, table, roles.labels, mass, standardise_target)
    return Dataset(x, y, mass, classes=names, notes=notes)


def _roles(
    path: Path,
    columns: Columns,
    features: Sequence[str] | None,
    target: str | Sequence[str],
    weights: str | None,
) -> _Roles:
    labels = _expanded(path, columns, [target] if isinstance(target, str) else target)
    if not labels:
        raise ValueError(f"target must name a column of {path} or more, got none.")
    masses = _expanded(path, columns, [] if weights is None else [weights])
    if len(masses) > 1:
        raise ValueError(f"weights must be one column of {path}, got {', '.join(masses)}.")
    taken = {*labels, *masses}
    names = _expanded(path, columns, features) if features else [c for c in columns if c not in taken]
    if not names:
        raise ValueError(
            f"{path} has no column beside {', '.join(labels + masses)}: there is nothing to learn from."
        )
    both = [name for name in names if name in taken]
    if both:
        raise ValueError(f"The column {shown(both[0])} of {path} is both a feature and a target or weight.")
    return _Roles(names, labels, masses)


def _complete(path: Path, table: Table, roles: _Roles, how: Missing | None) -> tuple[Table, tuple[str, ...]]:
    """The rows to use, and what was done about missing values, in words."""
    used = [*roles.features, *roles.labels, *roles.weights]
    absent = {name: missing_in(table, name) for name in used}
    m = len(table.rows)
    if not any(mask.any() for mask in absent.values()):
        return table, ()
    if how is None:
        raise ValueError(told_missing(path, table, absent))
    fatal = used if how == "drop" else [*roles.labels, *roles.weights]
    dropped = np.any([absent[name] for name in fatal], axis=0)
    if dropped.all():
        raise ValueError(f"{path}: all of its {m} rows have missing values; none is left to learn from.")
    notes = []
    if dropped.any():
        notes.append(f"{dropped.sum()} of {m} rows with missing values were left out")
    count = sum(int((absent[name] & ~dropped).sum()) for name in roles.features)
    if how == "mean" and count:
        were = "missing value was" if count == 1 else "missing values were"
        notes.append(f"{count} {were} replaced by the mean of the column")
    return kept(table, ~dropped), tuple(notes)


def _labels(
    path: Path, table: Table, labels: list[str], mass: np.ndarray | None, standardise: bool
) -> tuple[np.ndarray, tuple[str, ...]]:
    """(y, names of its classes, () for numbers)."""
    by_class = [classes(table, name) for name in labels]
    named = [name for name, one in zip(labels, by_class, strict=True) if one is not None]
    if named and (standardise or len(labels) > 1):
        why = "standardise_target is for numbers" if standardise else "several targets must all be numbers"
        raise ValueError(
            f"{path}: the column {shown(named[0])} holds names of classes "
            f"({quoted(table.columns[named[0]])}), and {why}."
        )
    if by_class[0] is not None:
        return by_class[0].labels, by_class[0].names
    y = [numbers(path, name, table) for name in labels]
    if standardise:
        scaled = _standardised(path, np.column_stack(y).astype(float), labels, mass)
        return scaled[:, 0] if len(y) == 1 else scaled, ()
    if len(y) == 1:
        return y[0] if y[0].dtype.kind in "iub" else y[0].astype(float), ()
    return np.column_stack(y).astype(float), ()


def _expanded(path: Path, columns: Columns, names: Sequence[str]) -> list[str]:
    """Names of single columns: that of an array of several stands for all of them."""
    expanded: list[str] = []
    for name in names:
        arrays = path.suffix.lower() == ".npz"  # whose columns were numbered here
        several = [c for c in columns if arrays and c.startswith(name) and c.removeprefix(name).isdigit()]
        if name in columns:
            expanded.append(name)
        elif several:
            expanded += several
        else:
            known = ", ".join(list(columns)[:20]) + (", …" if len(columns) > 20 else "")
            raise ValueError(f"{path} has no column {shown(name)}; it has {known}.{nearest(name, columns)}")
    (name, count), *_ = Counter(expanded).most_common(1) or [("", 0)]
    if count > 1:
        raise ValueError(f"The column {shown(name)} of {path} is named twice.")
    return expanded


def _standardised(path: Path, x: np.ndarray, names: list[str], mass: np.ndarray | None) -> np.ndarray:
    if mass is not None and ((mass < 0).any() or not mass.sum() > 0):
        return x  # Dataset refuses such weights
    mean = np.average(x, axis=0, weights=mass)
    sd = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=mass))
    flat = [name for name, s, m in zip(names, sd, mean, strict=True) if s <= 1e-12 * (1 + abs(m))]
    if flat:
        raise ValueError(
            f"{path}: the column {shown(flat[0])} is constant, so it cannot be standardised. Leave it out."
        )
    return (x - mean) / sd
