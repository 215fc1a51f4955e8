"""Data sets from files with named columns: CSV, NPZ, Parquet."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._checks import nearest
from .laws import Dataset

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class _Table:
    """Columns by name (texts, in a CSV file), and the number that the file gives to each row."""

    columns: Columns
    rows: Sequence[int]


def read_dataset(
    file: str | Path,
    features: Sequence[str] | None = None,
    target: str | Sequence[str] = "y",
    weights: str | None = None,
    standardise: bool = False,
    standardise_target: bool = False,
) -> Dataset:
    """The data set in a table: columns `features` (by default all others) are x, `target` is y (several names
    make several labels a row). In an NPZ file an array (m, k) is k columns, called name1, …, namek; its own
    name stands for all of them. `standardise` gives each feature mean 0 and standard deviation 1, under
    the weights, if there are some. `standardise_target` does the same to y, which
    otherwise may be of any size: prices of 10⁵ need steps of 10⁻¹⁰."""
    path = Path(file)
    table = _read(path)
    columns = table.columns
    labels = _expanded(path, columns, [target] if isinstance(target, str) else target)
    if not labels:
        raise ValueError(f"target must name a column of {path} or more, got none.")
    masses = _expanded(path, columns, [] if weights is None else [weights])
    if len(masses) > 1:
        raise ValueError(f"weights must be one column of {path}, got {', '.join(masses)}.")
    taken = labels + masses
    names = _expanded(path, columns, features) if features else [c for c in columns if c not in taken]
    if not names:
        raise ValueError(f"{path} has no column beside {', '.join(taken)}: there is nothing to learn from.")
    both = [name for name in names if name in taken]
    if both:
        raise ValueError(f"The column {both[0]!r} of {path} is both a feature and a target or weight.")
    x = np.column_stack([_numbers(path, name, table) for name in names]).astype(float)
    y = [_numbers(path, name, table) for name in labels]
    mass = _numbers(path, masses[0], table).astype(float) if masses else None
    if standardise:
        x = _standardised(path, x, names, mass)
    whole = len(y) == 1 and y[0].dtype.kind in "iub"
    label = y[0] if len(y) == 1 else np.column_stack(y).astype(float)
    if standardise_target:
        scaled = _standardised(path, np.column_stack(y).astype(float), labels, mass)
        whole, label = False, scaled[:, 0] if len(y) == 1 else scaled
    return Dataset(x, label if whole else label.astype(float), mass)


def _read(path: Path) -> _Table:
    readers = {".csv": _csv, ".npz": _npz, ".parquet": _parquet}
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


def _csv(path: Path) -> _Table:
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
    return _Table(columns, [i for i, _ in lines[1:]])


def _numbers(path: Path, name: str, table: _Table) -> np.ndarray:
    """A column that is used, as numbers that are finite."""
    column = table.columns[name]
    values = _parsed(path, name, column, table.rows) if column.dtype.kind == "U" else column
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{path}: the column {name!r} must hold numbers, got {values.dtype}.")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{path}, row {table.rows[bad[0]]}, column {name!r}: {values[bad[0]]} is no finite number. Leave "
            "the row out, or put a number in its place."
        )
    return values


def _parsed(path: Path, name: str, texts: np.ndarray, rows: Sequence[int]) -> np.ndarray:
    values = np.empty(len(texts))
    for i, text in enumerate(texts):
        try:
            values[i] = float(text)
        except ValueError:
            raise ValueError(
                f"{path}, row {rows[i]}, column {name!r}: {str(text)!r} is not a number. Leave the row out, "
                "or write classes as 0, 1, 2, …"
            ) from None
    whole = all(text.strip().lstrip("+-").isdigit() for text in texts)
    return values.astype(np.int64) if whole and (np.abs(values) < 2**53).all() else values


def _npz(path: Path) -> _Table:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except Exception as error:  # numpy, zipfile and zlib each raise their own
        raise ValueError(f"{path} is not an NPZ file of plain arrays: {error}") from error
    columns: Columns = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or array.dtype.kind not in "fiub":
            given = f"shape {array.shape} and type {array.dtype}"
            raise ValueError(f"{path}: the array {name!r} must be numbers (m,) or (m, k), got {given}.")
        flat = array[:, None] if array.ndim == 1 else array
        several = flat.shape[1] > 1
        new = {f"{name}{j + 1}" if several else name: flat[:, j] for j in range(flat.shape[1])}
        if both := set(columns) & set(new):
            raise ValueError(f"{path}: two arrays would give the column {min(both)!r}; rename one of them.")
        columns |= new
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"{path}: all arrays must have the same number of rows, got {sorted(lengths)}.")
    return _Table(columns, range(1, 1 + max(lengths, default=0)))


def _parquet(path: Path) -> _Table:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(f"{path}: Parquet files need pyarrow: pip install 'wideflow[parquet]'.") from error
    try:
        table = pyarrow.parquet.read_table(path)
    except Exception as error:
        raise ValueError(f"{path} is not a Parquet file: {error}") from error
    columns = {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
    return _Table(columns, range(1, 1 + table.num_rows))


def _expanded(path: Path, columns: Columns, names: Sequence[str]) -> list[str]:
    """Names of single columns: that of an array of several stands for all of them."""
    found: list[str] = []
    for name in names:
        arrays = path.suffix.lower() == ".npz"  # whose columns were numbered here
        several = [c for c in columns if arrays and c.startswith(name) and c.removeprefix(name).isdigit()]
        if name in columns:
            found.append(name)
        elif several:
            found += several
        else:
            known = ", ".join(list(columns)[:20]) + (", …" if len(columns) > 20 else "")
            raise ValueError(f"{path} has no column {name!r}; it has {known}.{nearest(name, columns)}")
    twice = [name for name in found if found.count(name) > 1]
    if twice:
        raise ValueError(f"The column {twice[0]!r} of {path} is named twice.")
    return found


def _standardised(path: Path, x: np.ndarray, names: list[str], mass: np.ndarray | None) -> np.ndarray:
    if mass is not None and ((mass < 0).any() or not mass.sum() > 0):
        return x  # Dataset refuses such weights
    mean = np.average(x, axis=0, weights=mass)
    sd = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=mass))
    flat = [name for name, s, m in zip(names, sd, mean, strict=True) if s <= 1e-12 * (1 + abs(m))]
    if flat:
        raise ValueError(
            f"{path}: the column {flat[0]!r} is constant, so it cannot be standardised. Leave it out."
        )
    return (x - mean) / sd
