"""A folder of arrays and a manifest that is replaced in one atomic step.

A folder holds `manifest.json` and files of arrays named by their content. The manifest lists each
file with its hash and carries a hash of itself, so a folder is always one whole state: a writer
that dies leaves the previous manifest and its files in force; a damaged byte is found on reading.
"""

import hashlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

MANIFEST = "manifest.json"
_OURS = re.compile(r"(.+-[0-9a-f]{16}\.npz|manifest\.json|.+\.tmp)$")


class DamagedError(ValueError):
    """A file is truncated, altered or missing."""


def exists(folder: Path) -> bool:
    """Whether the folder holds a manifest."""
    return (Path(folder) / MANIFEST).exists()


def put(folder: Path, name: str, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """Write arrays to a file of their own; the entry returned goes into the manifest. Nothing
    refers to the file until `commit` says so."""
    buffer = io.BytesIO()
    np.savez(buffer, **{k: np.asarray(v) for k, v in arrays.items()})
    content = buffer.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    file = f"{name}-{digest[:16]}.npz"
    Path(folder).mkdir(parents=True, exist_ok=True)
    _write(Path(folder) / file, content)
    return {"file": file, "sha256": digest}


def get(folder: Path, entry: dict[str, str]) -> dict[str, np.ndarray]:
    """The arrays of one entry, if the file is as it was written."""
    path = Path(folder) / entry["file"]
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DamagedError(f"{path} is missing, though the manifest lists it.") from None
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise DamagedError(f"{path} is damaged: its content does not have the hash in the manifest.")
    with np.load(io.BytesIO(content), allow_pickle=False) as data:
        return {k: data[k] for k in data.files}


def commit(folder: Path, record: dict[str, Any]) -> None:
    """Make `record` the folder's manifest, all at once; files that it does not list are removed."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / MANIFEST, _serialise(record))
    listed = set(_files(record))
    for path in folder.iterdir():
        if _OURS.match(path.name) and path.name not in listed | {MANIFEST}:
            path.unlink(missing_ok=True)


def read(folder: Path) -> dict[str, Any]:
    """The manifest, if it is as it was written."""
    path = Path(folder) / MANIFEST
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} holds no saved run ({MANIFEST} is not there).") from None
    try:
        whole = json.loads(content)
        record = whole["record"]
    except (ValueError, KeyError, TypeError):
        raise DamagedError(f"{path} is damaged: it is not the JSON that was written.") from None
    if _serialise(record) != content:
        raise DamagedError(f"{path} is damaged: its content does not match the hash it carries.")
    return record


def _serialise(record: dict[str, Any]) -> bytes:
    text = json.dumps(record, indent=1, allow_nan=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return (json.dumps({"sha256": digest, "record": record}, indent=1, allow_nan=False) + "\n").encode()


def _files(record: Any) -> list[str]:
    if isinstance(record, dict):
        own = [record["file"]] if set(record) == {"file", "sha256"} else []
        return own + [f for v in record.values() for f in _files(v)]
    return [f for v in record for f in _files(v)] if isinstance(record, list) else []


def _write(path: Path, content: bytes) -> None:
    """Temporary file → fsync → rename → fsync of the folder."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
