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
import math
import os
import re
import warnings
import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from .arrays import unpacked
from .bounds import TEXT, advice, machine, memory, parsed
from .opening import DamagedError, content

MANIFEST, PREVIOUS = "manifest.json", "manifest.previous.json"
# What `commit` may remove: its own files and its own temporary ones, nothing that a user put there.
_OURS = re.compile(r"(.+-[0-9a-f]{16}\.npz|manifest(\.previous)?\.json)(\.\d+\.tmp)?")
_FILE = re.compile(r"[^/\\]+-[0-9a-f]{16}\.npz")

# The hash is of the bytes as they stand, so no other JSON writer has to agree on them.
_SEALED = re.compile(rb'\{"sha256": "([0-9a-f]{64})",\n"record": (.*)\}\n', re.DOTALL)

_DTYPE = re.compile(r"[<>|][biufc](\d{1,2})")
_A_MEMBER = 1024  # bytes around an array in its file, beside its name twice
_UNLOCKED: set[int] = set()  # devices that have no locks, as was told

Data = dict[str, Any]
# What a manifest has of a file: its name, its hash, and what it holds.
Entry = Data
_ENTRY = {"file", "sha256", "holds"}


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
        except OSError as error:
            _tell_unlocked(folder, os.fstat(descriptor).st_dev, error)
        yield
    finally:
        os.close(descriptor)


def _tell_unlocked(folder: Path, device: int, error: OSError) -> None:
    """A file system without locks: to go on is right, but not without a word, once for each."""
    if device not in _UNLOCKED:
        _UNLOCKED.add(device)
        warnings.warn(
            f"The file system of {folder} has no locks ({error.strerror or error}): make sure yourself that "
            "no two processes write to one folder.",
            stacklevel=5,
        )


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
    packed = buffer.getbuffer()
    digest = hashlib.sha256(packed).hexdigest()
    file = f"{name}-{digest[:16]}.npz"
    make(Path(folder))
    write(Path(folder) / file, packed)
    return {"file": file, "sha256": digest, "holds": _listing(arrays)}


def _listing(arrays: dict[str, np.ndarray]) -> Data:
    """Type and shape of each array: what a file is checked against when it is read."""
    return {key: [np.asarray(value).dtype.str, list(np.shape(value))] for key, value in arrays.items()}


def get(folder: Path, entry: Entry) -> dict[str, np.ndarray]:
    """The arrays of one entry, if the file is as it was written and holds what the manifest says."""
    file = verified(folder, entry)
    path = Path(folder) / entry["file"]
    arrays = unpacked(file, path, len(file))
    listed, actual = entry.get("holds"), _listing(arrays)
    if listed != actual:
        listed = listed if isinstance(listed, dict) else {}
        names = [k for k in sorted({*listed, *actual}) if listed.get(k) != actual.get(k)]
        raise DamagedError(f"{path} does not hold the arrays that {MANIFEST} lists: see {names[:5]}.")
    return arrays


def verified(folder: Path, entry: Entry) -> bytes:
    """The content of one entry's file, if it has the hash in the manifest."""
    file = entry.get("file") if isinstance(entry, dict) else None
    plain = isinstance(file, str) and _FILE.fullmatch(file) and isinstance(entry.get("sha256"), str)
    if not isinstance(file, str) or not plain or set(entry) != _ENTRY:
        raise DamagedError(f"{Path(folder) / MANIFEST} lists {str(entry)[:80]}, which is no file of arrays.")
    path = Path(folder) / file
    room, most = _room(entry), memory(machine())
    try:
        data = content(path, min(room, most), advice() if most < room else f"{MANIFEST} lists no more.")
    except FileNotFoundError:
        raise DamagedError(f"{path} is missing, though the manifest lists it.") from None
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise DamagedError(f"{path} is damaged: its content does not have the hash in the manifest.")
    return data


def _room(entry: Entry) -> int:
    """Bytes that the file of an entry can have at most, by what the manifest says it holds."""
    holds, room = entry.get("holds"), _A_MEMBER
    for name, listed in holds.items() if isinstance(holds, dict) else ():
        dtype, shape = listed if isinstance(listed, list) and len(listed) == 2 else (None, None)
        match = _DTYPE.fullmatch(dtype) if isinstance(dtype, str) else None
        if match is None or not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            continue  # what is no array has no room: it is told when the arrays are compared
        room += _A_MEMBER + 8 * len(name) + int(match[1]) * math.prod(shape)
    return room


def loose(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file that no manifest tells of, if it has the hash in its name."""
    data = content(path, memory(machine()), advice())
    if not path.name.endswith(f"-{hashlib.sha256(data).hexdigest()[:16]}.npz"):
        raise DamagedError(f"{path} is damaged: its content does not have the hash in its name.")
    return unpacked(data, path, len(data))


def commit(folder: Path, record: Data, generations: int = 2) -> None:
    """Make `record` the folder's manifest, all at once. Of two generations the one before becomes the
    previous one and keeps its files; what is not listed by those that are kept is removed."""
    folder = Path(folder)
    make(folder)
    sealed, kept = _serialise(record), {MANIFEST, *files(record)}
    if generations == 2:
        before = _sealed_content(folder / MANIFEST)
        if before not in (None, sealed):  # a damaged one must not take the place of a whole one
            write(folder / PREVIOUS, before)
        kept |= {PREVIOUS, *_files_of_previous(folder)}
    write(folder / MANIFEST, sealed)
    for path in folder.iterdir():
        if _OURS.fullmatch(path.name) and path.name not in kept:
            with contextlib.suppress(OSError):  # the record is in force; the next commit tries again
                os.unlink(path)


def revert(folder: Path) -> None:
    """Make the previous generation the newest, in place of one that is damaged."""
    write(Path(folder) / MANIFEST, content(Path(folder) / PREVIOUS, TEXT))


def read(folder: Path, name: str = MANIFEST) -> Data:
    """The manifest of this name, if it is as it was written."""
    path = Path(folder) / name
    try:
        text = content(path, TEXT)
    except FileNotFoundError:
        if name == MANIFEST and exists(folder):
            raise DamagedError(f"{path} is missing, though {PREVIOUS} is there.") from None
        raise FileNotFoundError(f"{folder} holds no saved run ({name} is not there).") from None
    unsealed = _unsealed(text)
    if unsealed is None:
        raise DamagedError(f"{path} is damaged: its content does not have the hash that it carries.")
    record = parsed(unsealed, path)
    if not isinstance(record, dict):
        raise DamagedError(f"{path} is not a manifest of wideflow: it holds a {type(record).__name__}.")
    return record


def _unsealed(text: bytes) -> bytes | None:
    """The record in a manifest, if it has the hash that goes with it."""
    sealed = _SEALED.fullmatch(text)
    whole = sealed is not None and hashlib.sha256(sealed[2]).hexdigest().encode() == sealed[1]
    return sealed[2] if sealed is not None and whole else None


def _sealed_content(path: Path) -> bytes | None:
    """The bytes of a manifest that is whole."""
    try:
        text = content(path, TEXT)
    except (OSError, DamagedError):
        return None
    return None if _unsealed(text) is None else text


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
    return hashlib.sha256(content(Path(folder) / MANIFEST, TEXT)).hexdigest()


def _serialise(record: Data) -> bytes:
    text = json.dumps(record, allow_nan=False).encode()  # indented, it is written in Python
    return b'{"sha256": "%s",\n"record": %s}\n' % (hashlib.sha256(text).hexdigest().encode(), text)


def entries(record: Any) -> Iterator[Entry]:
    """The files that a manifest lists."""
    if isinstance(record, dict) and set(record) == _ENTRY:
        yield record
    elif isinstance(record, dict | list):
        for value in record.values() if isinstance(record, dict) else record:
            yield from entries(value)


def make(folder: Path) -> None:
    """Make the folder, and its name durable."""
    missing = [path for path in chain([folder], folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        _sync(path.parent)


def write_text(path: Path, text: str) -> None:
    """A file of text, whole or not there; its folder is made."""
    make(path.parent)
    write(path, text.encode("utf-8"))


def write(path: Path, data: bytes | memoryview) -> None:
    """Temporary file → fsync → rename → fsync of the folder: the old file, or the whole new one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", buffering=0) as file:
            left = memoryview(data)
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
