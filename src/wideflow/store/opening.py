"""Files of a folder that may be anyone's: only plain files are opened, and only so much is read of them.

A named pipe would block forever, a device may have no end, a link may lead out of the folder."""

import errno
import os
import stat
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from .._shown import shown

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFLNK: "a link",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class DamagedError(ValueError):
    """A file is truncated, altered or missing, or does not hold what belongs there."""


def opened(path: Path, *, links: bool = False) -> BinaryIO:
    """A plain file, opened for reading. One that is not there is a FileNotFoundError, everything else that is
    no plain file a DamagedError with its name. Links are followed only if `links`."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    try:
        _check_kind(path, os.stat(path, follow_symlinks=links))  # to open a device may do something already
        descriptor = os.open(path, flags)
    except DamagedError:
        raise
    except ValueError as error:
        raise DamagedError(f"{shown(str(path))} is no name of a file: {error}.") from None
    except OSError as error:
        raise _told(path, error) from None
    file = os.fdopen(descriptor, "rb")
    try:
        _check_kind(path, os.fstat(descriptor))  # of the very file that is open
    except DamagedError:
        file.close()
        raise
    return file


def content(path: Path, most: int, advice: str = "", *, links: bool = False) -> bytes:
    """The bytes of a plain file of at most `most` bytes, `opened`; `advice` says what to do about one that is
    too large."""
    with opened(path, links=links) as file:
        count = os.fstat(file.fileno()).st_size
        if count > most:
            limit = f"but may have at most {size(most)}. {advice}".rstrip()
            raise DamagedError(f"{path} has {size(count)}, {limit}")
        try:
            return file.read(count)
        except MemoryError:
            raise DamagedError(f"{path}: its {size(count)} do not fit into the memory.") from None


def check_inside(root: Path, path: Path) -> None:
    """Raise if a link on the way from `root` to `path` leads elsewhere."""
    for part in chain([path], path.parents):
        if part == root:
            return
        if part.is_symlink():
            raise DamagedError(f"{part} is a link, which may lead out of {root}: put there what it names.")


def size(count: float) -> str:
    """Bytes in words."""
    for unit, word in ((2**30, "GB"), (2**20, "MB"), (2**10, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {word}"
    return f"{count:.0f} bytes"


def _check_kind(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise DamagedError(f"{path} must be a plain file, but is {kind}.")


def _told(path: Path, error: OSError) -> Exception:
    """A fault that is not of the disk but of what was named, in words; else the fault itself."""
    if error.errno == errno.ELOOP:
        return DamagedError(f"{path} must be a plain file, but is a link.")
    if error.errno in (errno.ENAMETOOLONG, errno.ENXIO, errno.ENOTDIR):
        return DamagedError(f"{str(path)[:200]} cannot be opened: {error.strerror}.")
    return error
