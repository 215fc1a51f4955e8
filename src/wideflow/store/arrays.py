"""Arrays out of an NPZ file that may be anyone's: all sizes are checked before anything is unpacked.

A few kilobytes of ZIP can stand for terabytes: by compression, by members that share their bytes, by a header
that promises a shape. So each member has its own bytes, is unpacked to no more than it says, and has a header
whose shape is exactly what follows it. Nothing is ever unpickled."""

import io
import math
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from . import bounds
from .opening import DamagedError, size

_MEMBERS = 10**5
_DIRECTORY = b"PK\x01\x02"  # before what the directory of a ZIP file says of a member
_PIECE = 2**24
_LOCAL_HEADER = 30  # bytes before the name of a member
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


def unpacked(
    content: bytes, path: Path, most: int, *, compressed: bool = False, kinds: str = "biufc"
) -> dict[str, np.ndarray]:
    """All arrays of an NPZ file, of these kinds of numbers, if they take at most `most` bytes."""
    if content.count(_DIRECTORY) > _MEMBERS:
        raise DamagedError(f"{path} holds more than {_MEMBERS} arrays.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_members(members, len(content), compressed)
            total = sum(member.file_size for member in members)
            if total > most:
                raise _TooLargeError(
                    f"its arrays take {size(total)}, more than {size(most)}. {bounds.advice(total)}"
                )
            return {one.filename.removesuffix(".npy"): _array(archive, one, kinds) for one in members}
    except MemoryError:
        raise DamagedError(f"{path}: its arrays do not fit into the memory.") from None
    except _TooLargeError as error:
        raise DamagedError(f"{path}: {error}") from None
    except Exception as error:  # numpy, zipfile and zlib each raise their own
        raise DamagedError(f"{path} does not hold plain arrays: {error}") from error


class _TooLargeError(ValueError):
    """More than may be unpacked."""


def _check_members(members: list[zipfile.ZipInfo], end: int, compressed: bool) -> None:
    """Raise unless each member is an array of its own name with bytes of its own."""
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two of its arrays have one name")
    for member in sorted(members, key=lambda member: member.header_offset, reverse=True):
        name, packed = member.filename, member.compress_size
        if not name.endswith(".npy") or member.flag_bits & 1:
            raise ValueError(f"{name[:80]!r} is no array")
        if member.compress_type not in (_METHODS if compressed else {zipfile.ZIP_STORED}):
            raise ValueError(f"{name[:80]!r} is compressed in a way that is not read")
        if member.compress_type == zipfile.ZIP_STORED and packed != member.file_size:
            raise ValueError(f"{name[:80]!r} has two sizes")
        if member.header_offset < 0 or member.header_offset + _LOCAL_HEADER + packed > end:
            raise ValueError(f"{name[:80]!r} shares its bytes with another array, or has none")
        end = member.header_offset


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str) -> np.ndarray:
    with archive.open(member) as file:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{member.filename[:80]!r} has a header of version {version}")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.kind not in kinds or dtype.itemsize == 0 or dtype.subdtype is not None:
            raise ValueError(f"{member.filename[:80]!r} is an array of {str(dtype)[:80]}")
        count = math.prod(shape)
        if min(shape, default=0) < 0 or count * dtype.itemsize != member.file_size - file.tell():
            raise ValueError(f"{member.filename[:80]!r} does not hold as many numbers as its header says")
        array = np.empty(count, dtype)
        into, filled = array.view(np.uint8), 0
        while filled < len(into):
            part = file.read(min(_PIECE, len(into) - filled))
            if not part:
                raise ValueError(f"{member.filename[:80]!r} ends too early")
            into[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
            filled += len(part)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
