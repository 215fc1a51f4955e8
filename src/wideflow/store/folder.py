"""A folder of arrays and a manifest that is replaced in one atomic step.

A folder holds `manifest.json` and files of arrays named by their content. The manifest lists each
file with its hash and carries a hash of itself, so a folder is always one whole state: a writer
that dies leaves the previous manifest and its files in force; a damaged byte is found on reading.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

MANIFEST = "manifest.json"
# What `commit` may remove: its own files and its own temporary ones, nothing that a user put there.
_OURS = re.compile(r"(.+-[0-9a-f]{16}\.npz|manifest\.json)(\.\d+\.tmp)?")

# The hash is of the bytes as they stand, so no other JSON writer has to agree on them.
_SEALED = re.compile(rb'\{"sha256": "([0-9a-f]{64})",\n"record": (.*)\}\n', re.DOTALL)


class DamagedError(ValueError):
    """A file is truncated, altered or missing."""


class InUseError(RuntimeError):
    """Another process is writing to the folder."""


def exists(folder: Path) -> bool:
    """Whether the folder holds a manifest."""
    return (Path(folder) / MANIFEST).exists()


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep the folder for this writer alone; the system lets go of it when the process dies."""
    make(Path(folder))
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUseError(
                f"{folder} is being written by another run that is still going on. Wait for it, or "
                "give this run a folder of its own."
            ) from None
        except OSError:  # a file system without locks: go on without this guard
            pass
        yield
    finally:
        os.close(descriptor)


def put(folder: Path, name: str, arrays: dict[str, np.ndarray]) -> dict[str, str]:
    """Write arrays to a file of their own; the entry returned goes into the manifest. Nothing
    refers to the file until `commit` says so."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # np.savez would pickle what is not numbers
        for key, value in arrays.items():
            value = np.asarray(value)
            if value.dtype.kind not in "biufc":
                raise TypeError(f"{name}/{key}: an array of {value.dtype} cannot be stored.")
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=False)
    content = buffer.getbuffer()
    digest = hashlib.sha256(content).hexdigest()
    file = f"{name}-{digest[:16]}.npz"
    make(Path(folder))
    write(Path(folder) / file, content)
    return {"file": file, "sha256": digest}


def get(folder: Path, entry: dict[str, str]) -> dict[str, np.ndarray]:
    """The arrays of one entry, if the file is as it was written."""
    content = verified(folder, entry)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            return {k: data[k] for k in data.files}
    except Exception as error:  # numpy, zipfile and zlib each raise their own
        raise DamagedError(f"{Path(folder) / entry['file']} does not hold plain arrays: {error}") from error


def verified(folder: Path, entry: dict[str, str]) -> bytes:
    """The content of one entry's file, if it has the hash in the manifest."""
    path = Path(folder) / entry["file"]
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DamagedError(f"{path} is missing, though the manifest lists it.") from None
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise DamagedError(f"{path} is damaged: its content does not have the hash in the manifest.")
    return content


def commit(folder: Path, record: dict[str, Any]) -> None:
    """Make `record` the folder's manifest, all at once; files that it does not list are removed."""
    folder = Path(folder)
    make(folder)
    write(folder / MANIFEST, _serialise(record))
    kept = {MANIFEST, *_files(record)}
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in kept:
            with contextlib.suppress(OSError):  # the record is in force; the next commit tries again
                os.unlink(path)


def read(folder: Path) -> dict[str, Any]:
    """The manifest, if it is as it was written."""
    path = Path(folder) / MANIFEST
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder} holds no saved run ({MANIFEST} is not there).") from None
    sealed = _SEALED.fullmatch(content)
    if sealed is None or hashlib.sha256(sealed[2]).hexdigest().encode() != sealed[1]:
        raise DamagedError(f"{path} is damaged: its content does not have the hash that it carries.")
    record = json.loads(sealed[2])
    if not isinstance(record, dict):
        raise DamagedError(f"{path} is not a manifest of wideflow: it holds a {type(record).__name__}.")
    return record


def _serialise(record: dict[str, Any]) -> bytes:
    text = json.dumps(record, indent=1, allow_nan=False).encode()
    return b'{"sha256": "%s",\n"record": %s}\n' % (hashlib.sha256(text).hexdigest().encode(), text)


def _files(record: Any) -> list[str]:
    if isinstance(record, dict):
        entry = set(record) == {"file", "sha256"} and isinstance(record["file"], str)
        return [record["file"]] if entry else [f for v in record.values() for f in _files(v)]
    return [f for v in record for f in _files(v)] if isinstance(record, list) else []


def make(folder: Path) -> None:
    """Make the folder, and its name durable."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _sync(path.parent)


def write_text(path: Path, text: str) -> None:
    """A file of text, whole or not there; its folder is made."""
    make(path.parent)
    write(path, text.encode("utf-8"))


def write(path: Path, content: Any) -> None:
    """Temporary file → fsync → rename → fsync of the folder: the old file, or the whole new one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", buffering=0) as file:
            left = memoryview(content)
            while left:  # an unbuffered write may take a part only
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
