"""A folder of arrays and a manifest that is replaced in one atomic step.

A folder holds `manifest.json` and files of arrays named by their content. The manifest lists each
file with its hash and carries a hash of itself, so a folder is always one whole state: a writer
that dies leaves the previous manifest and its files in force; a damaged byte is found on reading.
A folder that is written again and again keeps the generation before the newest beside it, in
`manifest.previous.json` and the files that it lists: should the newest be damaged, that one is whole.
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

MANIFEST, PREVIOUS = "manifest.json", "manifest.previous.json"
# What `commit` may remove: its own files and its own temporary ones, nothing that a user put there.
_OURS = re.compile(r"(.+-[0-9a-f]{16}\.npz|manifest(\.previous)?\.json)(\.\d+\.tmp)?")
_FILE = re.compile(r"[^/\\]+-[0-9a-f]{16}\.npz")

# The hash is of the bytes as they stand, so no other JSON writer has to agree on them.
_SEALED = re.compile(rb'\{"sha256": "([0-9a-f]{64})",\n"record": (.*)\}\n', re.DOTALL)

# What a manifest has of a file: its name, its hash, and what it holds.
# A JSON object. This file imports no other of the package, so that a child process can load it alone.
Data = dict[str, Any]
Entry = Data


class DamagedError(ValueError):
    """A file is truncated, altered or missing, or does not hold what belongs there."""


class SaveError(OSError):
    """The disk does not take what is to be saved, and what to do."""


class InUseError(RuntimeError):
    """Another process is writing to the folder."""


def exists(folder: Path) -> bool:
    """Whether the folder holds a manifest, be it the previous one only."""
    return any((Path(folder) / name).exists() for name in (MANIFEST, PREVIOUS))


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
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


def put(folder: Path, name: str, arrays: dict[str, np.ndarray]) -> Entry:
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
    return {"file": file, "sha256": digest, "holds": _listing(arrays)}


def _listing(arrays: dict[str, np.ndarray]) -> Data:
    """Type and shape of each array: what a file is checked against when it is read."""
    return {key: [np.asarray(value).dtype.str, list(np.shape(value))] for key, value in arrays.items()}


def get(folder: Path, entry: Entry) -> dict[str, np.ndarray]:
    """The arrays of one entry, if the file is as it was written and holds what the manifest says."""
    content = verified(folder, entry)
    path = Path(folder) / entry["file"]
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            arrays = {k: data[k] for k in data.files}
    except Exception as error:  # numpy, zipfile and zlib each raise their own
        raise DamagedError(f"{path} does not hold plain arrays: {error}") from error
    listed, actual = entry.get("holds"), _listing(arrays)
    if listed != actual:
        listed = listed if isinstance(listed, dict) else {}
        names = [k for k in sorted({*listed, *actual}) if listed.get(k) != actual.get(k)]
        raise DamagedError(f"{path} does not hold the arrays that the manifest lists: see {names[:5]}.")
    return arrays


def verified(folder: Path, entry: Entry) -> bytes:
    """The content of one entry's file, if it has the hash in the manifest."""
    file = entry.get("file") if isinstance(entry, dict) else None
    if not isinstance(file, str) or not _FILE.fullmatch(file) or not isinstance(entry.get("sha256"), str):
        raise DamagedError(f"{Path(folder) / MANIFEST} lists {str(entry)[:80]}, which is no file of arrays.")
    path = Path(folder) / file
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DamagedError(f"{path} is missing, though the manifest lists it.") from None
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise DamagedError(f"{path} is damaged: its content does not have the hash in the manifest.")
    return content


def loose(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file that no manifest tells of, if it has the hash in its name."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if not path.name.endswith(f"-{digest[:16]}.npz"):
        raise DamagedError(f"{path} is damaged: its content does not have the hash in its name.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            holds = _listing({key: data[key] for key in data.files})
    except Exception as error:  # numpy, zipfile and zlib each raise their own
        raise DamagedError(f"{path} does not hold plain arrays: {error}") from error
    return get(path.parent, {"file": path.name, "sha256": digest, "holds": holds})


def commit(folder: Path, record: Data, generations: int = 2) -> None:
    """Make `record` the folder's manifest, all at once. Of two generations the one before becomes the
    previous one and keeps its files; what is not listed by those that are kept is removed."""
    folder = Path(folder)
    make(folder)
    content, kept = _serialise(record), {MANIFEST, *files(record)}
    if generations == 2:
        before = _sealed_content(folder / MANIFEST)
        if before not in (None, content):  # a damaged one must not take the place of a whole one
            write(folder / PREVIOUS, before)
        kept |= {PREVIOUS, *_files_of_previous(folder)}
    write(folder / MANIFEST, content)
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in kept:
            with contextlib.suppress(OSError):  # the record is in force; the next commit tries again
                os.unlink(path)


def revert(folder: Path) -> None:
    """Make the previous generation the newest, in place of one that is damaged."""
    write(Path(folder) / MANIFEST, (Path(folder) / PREVIOUS).read_bytes())


def read(folder: Path, name: str = MANIFEST) -> Data:
    """The manifest of this name, if it is as it was written."""
    path = Path(folder) / name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if name == MANIFEST and exists(folder):
            raise DamagedError(f"{path} is missing, though {PREVIOUS} is there.") from None
        raise FileNotFoundError(f"{folder} holds no saved run ({name} is not there).") from None
    text = _unsealed(content)
    if text is None:
        raise DamagedError(f"{path} is damaged: its content does not have the hash that it carries.")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is not a manifest of wideflow: {error}.") from None
    if not isinstance(record, dict):
        raise DamagedError(f"{path} is not a manifest of wideflow: it holds a {type(record).__name__}.")
    return record


def _unsealed(content: bytes) -> bytes | None:
    """The record in a manifest, if it has the hash that goes with it."""
    sealed = _SEALED.fullmatch(content)
    whole = sealed is not None and hashlib.sha256(sealed[2]).hexdigest().encode() == sealed[1]
    return sealed[2] if sealed is not None and whole else None


def _sealed_content(path: Path) -> bytes | None:
    """The bytes of a manifest that is whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return None if _unsealed(content) is None else content


def _files_of_previous(folder: Path) -> set[str]:
    """The files of the previous generation, as far as its manifest can be read."""
    try:
        return files(read(folder, PREVIOUS))
    except (OSError, DamagedError):
        return set()


def files(record: Data) -> set[str]:
    """The names of the files that a manifest lists."""
    return {str(entry["file"]) for entry in entries(record)}


def check(folder: Path) -> str:
    """Read all that a folder holds; the hash of its manifest, if everything is as it was written."""
    for entry in entries(read(folder)):
        verified(folder, entry)
    return hashlib.sha256((Path(folder) / MANIFEST).read_bytes()).hexdigest()


def _serialise(record: Data) -> bytes:
    text = json.dumps(record, indent=1, allow_nan=False).encode()
    return b'{"sha256": "%s",\n"record": %s}\n' % (hashlib.sha256(text).hexdigest().encode(), text)


def entries(record: Any) -> Iterator[Entry]:
    """The files that a manifest lists."""
    if isinstance(record, dict) and set(record) == {"file", "sha256", "holds"}:
        yield record
    elif isinstance(record, dict | list):
        for value in record.values() if isinstance(record, dict) else record:
            yield from entries(value)


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


def write(path: Path, content: bytes | memoryview) -> None:
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
