"""Files with named columns, as they are: CSV, NPZ, Parquet."""

import csv
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from .._shown import shown
from ..store import bounds
from ..store.arrays import unpacked
from ..store.opening import DamagedError, content, opened, size

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Table:
    """Columns by name, as numbers (NaN where there is none) or as texts ("" where there is none), and the
    number that the file gives to each row."""

    columns: Columns
    rows: Sequence[int]


_COLUMNS = 10**5
_ROWS = 4096  # of a CSV file that are held as texts of Python at a time
_LINE = 64 * 2**20  # letters


def read_table(path: Path) -> Table:
    """The table in a file, by its suffix. What would take more memory than `WIDEFLOW_MAX_MEMORY` (2 GB) is
    refused before it is there."""
    readers: dict[str, Callable[[Path, int], Table]] = {".csv": _csv, ".npz": _npz, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path} must be a file ending in {', '.join(readers)}, got {shown(path.suffix)}.")
    try:
        table = reader(path, bounds.memory())
    except FileNotFoundError:
        near = sorted(p.name for p in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
        hint = f" In its folder there is {', '.join(near[:5])}." if near else ""
        raise ValueError(f"There is no file {path}.{hint}") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not table.columns or not len(table.rows):
        raise ValueError(f"{path} holds no rows of data.")
    return table


def _csv(path: Path, most: int) -> Table:
    with io.TextIOWrapper(opened(path, links=True), "utf-8-sig", newline="") as file:
        rows = _rows(path, file)
        _, names = next(rows, (0, []))
        head = [name.strip() for name in names]
        _check_columns(path, len(head))
        first = next(rows, None)
        if first is None:
            raise ValueError(f"{path} needs a first line with the names of its columns, and rows below it.")
        if len(set(head)) < len(head) or "" in head:
            shown = ", ".join(head[:20])
            raise ValueError(f"{path} must name each column once in its first line, got {shown}.")
        numbers, blocks = [], []
        rest, widths = itertools.chain([first], rows), np.ones(len(head), np.int64)
        while block := list(itertools.islice(rest, _ROWS)):
            for i, row in block:
                if len(row) != len(head):
                    raise ValueError(f"{path}, row {i}: {len(row)} values for {len(head)} columns.")
            numbers += [i for i, _ in block]
            texts = list(zip(*(row for _, row in block), strict=True))
            widths = np.maximum(widths, [max(map(len, column)) for column in texts])
            _check_size(path, 4.0 * float(widths.sum()) * len(numbers), most)  # as texts of one width
            blocks.append([np.array(column) for column in texts])
    columns = {name: np.concatenate([block[j] for block in blocks]) for j, name in enumerate(head)}
    return Table(columns, numbers)


def _rows(path: Path, file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """The lines of a CSV file that hold something, with their numbers."""
    reader = csv.reader(_lines(path, file))
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a CSV file: {error}.") from error


def _lines(path: Path, file: TextIO) -> Iterator[str]:
    while line := file.readline(_LINE):
        if len(line) >= _LINE:
            raise ValueError(f"{path} has a line of more than {size(_LINE)}: it is no table.")
        yield line


def _check_columns(path: Path, count: int) -> None:
    if count > _COLUMNS:
        raise ValueError(
            f"{path} has {count} columns; at most {_COLUMNS} are read. Make arrays of it: wf.Dataset(x, y)."
        )


def _check_size(path: Path, needed: float, most: int) -> None:
    if needed > most:
        raise ValueError(
            f"{path} would take {size(needed)} of memory, more than {size(most)}. {bounds.advice(needed)}"
        )


def _npz(path: Path, most: int) -> Table:
    try:
        packed = content(path, most, bounds.advice(), links=True)
        arrays = unpacked(packed, path, most, compressed=True, kinds="fiubU")
    except DamagedError as error:
        raise ValueError(f"{path} is not an NPZ file of plain arrays: {error}") from error
    _check_columns(path, sum(array.shape[1] if array.ndim == 2 else 1 for array in arrays.values()))
    columns: Columns = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or array.dtype.kind not in "fiubU":
            given = f"shape {array.shape} and type {array.dtype}"
            raise ValueError(
                f"{path}: the array {shown(name)} must be numbers or texts (m,) or (m, k), got {given}."
            )
        flat = array[:, None] if array.ndim == 1 else array
        several = flat.shape[1] > 1
        new = {f"{name}{j + 1}" if several else name: flat[:, j] for j in range(flat.shape[1])}
        if both := set(columns) & set(new):
            raise ValueError(
                f"{path}: two arrays would give the column {shown(min(both))}; rename one of them."
            )
        columns |= new
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"{path}: all arrays must have the same number of rows, got {sorted(lengths)}.")
    return Table(columns, range(1, 1 + max(lengths, default=0)))


def _parquet(path: Path, most: int) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet, types
    except ImportError as error:
        raise ValueError(f"{path}: Parquet files need pyarrow: pip install 'wideflow[parquet]'.") from error
    with opened(path, links=True) as file:
        try:
            made = parquet.ParquetFile(file)
            schema, rows = made.schema_arrow, made.metadata.num_rows
        except Exception as error:
            raise ValueError(f"{path} is not a Parquet file: {error}") from error
        _check_columns(path, len(schema))
        _check_size(path, 8.0 * rows * len(schema), most)
        groups = [made.metadata.row_group(i).total_byte_size for i in range(made.metadata.num_row_groups)]
        _check_size(path, float(sum(groups)), most)
        # a text that a million rows share is held once
        texts = [field.name for field in schema if types.is_string(field.type)]
        try:
            table = parquet.read_table(file, read_dictionary=texts)
        except (pyarrow.ArrowMemoryError, MemoryError):
            raise ValueError(f"{path} does not fit into the memory.") from None
        except Exception as error:
            raise ValueError(f"{path} is not a Parquet file: {error}") from error
    needed = sum(_size_of_texts(table[name]) for name in table.column_names)
    _check_size(path, float(needed), most)
    columns = {name: _from_arrow(table[name]) for name in table.column_names}
    return Table(columns, range(1, 1 + table.num_rows))


def _size_of_texts(column: Any) -> int:
    """Bytes that a column takes as texts of one width; 0 for numbers."""
    from pyarrow import compute, types

    pieces = [piece.dictionary if types.is_dictionary(column.type) else piece for piece in column.chunks]
    texts = [p for p in pieces if types.is_string(p.type) or types.is_large_string(p.type)]
    longest = max((compute.max(compute.utf8_length(text)).as_py() or 0 for text in texts), default=0)
    return 4 * len(column) * longest


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
