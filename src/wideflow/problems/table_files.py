"""Files with named columns, as they are: CSV, NPZ, Parquet."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Table:
    """Columns by name, as numbers (NaN where there is none) or as texts ("" where there is none), and the
    number that the file gives to each row."""

    columns: Columns
    rows: Sequence[int]


def read_table(path: Path) -> Table:
    """The table in a file, by its suffix."""
    readers: dict[str, Callable[[Path], Table]] = {".csv": _csv, ".npz": _npz, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path} must be a file ending in {', '.join(readers)}, got {path.suffix!r}.")
    if not path.is_file():
        near = sorted(p.name for p in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
        hint = f" In its folder there is {', '.join(near[:5])}." if near else ""
        raise ValueError(f"There is no file {path}.{hint}")
    table = reader(path)
    if not table.columns or not len(table.rows):
        raise ValueError(f"{path} holds no rows of data.")
    return table


def _csv(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        try:
            lines = [(reader.line_num, row) for row in reader if row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a CSV file: {error}.") from error
    if len(lines) < 2:
        raise ValueError(f"{path} needs a first line with the names of its columns, and rows below it.")
    head = [name.strip() for name in lines[0][1]]
    if len(set(head)) < len(head) or "" in head:
        raise ValueError(f"{path} must name each column once in its first line, got {', '.join(head)}.")
    for i, row in lines[1:]:
        if len(row) != len(head):
            raise ValueError(f"{path}, row {i}: {len(row)} values for {len(head)} columns.")
    columns = {name: np.array([row[j] for _, row in lines[1:]]) for j, name in enumerate(head)}
    return Table(columns, [i for i, _ in lines[1:]])


def _npz(path: Path) -> Table:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except Exception as error:  # numpy, zipfile and zlib each raise their own
        raise ValueError(f"{path} is not an NPZ file of plain arrays: {error}") from error
    columns: Columns = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or array.dtype.kind not in "fiubU":
            given = f"shape {array.shape} and type {array.dtype}"
            raise ValueError(
                f"{path}: the array {name!r} must be numbers or texts (m,) or (m, k), got {given}."
            )
        flat = array[:, None] if array.ndim == 1 else array
        several = flat.shape[1] > 1
        new = {f"{name}{j + 1}" if several else name: flat[:, j] for j in range(flat.shape[1])}
        if both := set(columns) & set(new):
            raise ValueError(f"{path}: two arrays would give the column {min(both)!r}; rename one of them.")
        columns |= new
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"{path}: all arrays must have the same number of rows, got {sorted(lengths)}.")
    return Table(columns, range(1, 1 + max(lengths, default=0)))


def _parquet(path: Path) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(f"{path}: Parquet files need pyarrow: pip install 'wideflow[parquet]'.") from error
    try:
        table = pyarrow.parquet.read_table(path)
    except Exception as error:
        raise ValueError(f"{path} is not a Parquet file: {error}") from error
    columns = {name: _from_arrow(table[name]) for name in table.column_names}
    return Table(columns, range(1, 1 + table.num_rows))


def _from_arrow(column: Any) -> np.ndarray:
    """Texts with "" for null, categories as their texts, numbers as they are. Whole numbers with nulls become
    texts too: NumPy would make floats of them."""
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_string(kind) or types.is_large_string(kind):
        return np.array([text or "" for text in column.to_pylist()], dtype=str)
    if column.null_count and (types.is_integer(kind) or types.is_boolean(kind)):
        return np.array(["" if value is None else str(int(value)) for value in column.to_pylist()])
    return np.asarray(column.to_numpy())
