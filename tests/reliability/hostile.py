"""Hostile files of all kinds, written to a folder: bombs, lies, and things that are no files."""

import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wideflow.store import folder

GB = 2**30
Maker = Callable[[Path], None]


def header(shape: tuple, dtype: str = "<f8", version: tuple[int, int] = (1, 0)) -> bytes:
    """The start of an NPY file."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape!r}}}".encode() + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text


def zeros(count: int, head: bytes = b"") -> bytes:
    """A text and so many megabytes of zeros, deflated: one piece again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + piece * count + packer.flush()


def raw_zip(members: list[tuple[str, bytes, int, int]], share: bool = False) -> bytes:
    """A ZIP file by hand, of (name, packed bytes, size that is claimed, method); `share`: the same bytes."""
    out, directory = io.BytesIO(), io.BytesIO()
    for i, (name, packed, claimed, method) in enumerate(members):
        at = 0 if share else out.tell()
        fields = (method, 0, 0, 0, len(packed), min(claimed, 2**32 - 2), len(name), 0)
        if not share or i == 0:
            out.write(b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, *fields) + name.encode() + packed)
        rest = struct.pack("<HHHII", 0, 0, 0, 0, at)
        directory.write(
            b"PK\x01\x02" + struct.pack("<HHHHHHIIIHH", 20, 20, 0, *fields) + rest + name.encode()
        )
    start, size, count = out.tell(), directory.tell(), min(len(members), 65535)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, size, start, 0)
    return out.getvalue() + directory.getvalue() + end


def bomb(megabytes: int, claimed: int | None = None) -> bytes:
    """A member of zeros behind an honest header."""
    head = header((megabytes * 2**17,))
    return raw_zip([("x.npy", zeros(megabytes, head), claimed or len(head) + megabytes * 2**20, 8)])


def plain_zip(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return out.getvalue()


def deep(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def written(content: bytes | Callable[[], bytes]) -> Maker:
    return lambda path: path.write_bytes(content() if callable(content) else content)


def replaced(make: Callable[[Path], object]) -> Maker:
    def put(path: Path) -> None:
        path.unlink(missing_ok=True)
        make(path)

    return put


THINGS: dict[str, Maker] = {
    "named pipe": replaced(os.mkfifo),
    "folder": replaced(Path.mkdir),
    "link to zeros": replaced(lambda path: path.symlink_to("/dev/zero")),
    "link to itself": replaced(lambda path: path.symlink_to(path)),
    "link to the terminal": replaced(lambda path: path.symlink_to("/dev/tty")),
    "sparse terabyte": lambda path: sparse(path, 2**40),
    "nothing": written(b""),
    "NUL bytes": written(bytes(10_000)),
}

ARCHIVES: dict[str, Maker] = {
    "4 GB of zeros": written(lambda: bomb(4095)),
    "4 GB that claims 1 kB": written(lambda: bomb(4095, claimed=1000)),
    "1 kB that claims 4 GB": written(
        lambda: raw_zip([("x.npy", zeros(1), 4 * GB - 2, 8)]),
    ),
    "members that share bytes": written(
        lambda: raw_zip([(f"{i}.npy", zeros(100), 100 * 2**20, 8) for i in range(500)], share=True)
    ),
    "a million members": written(lambda: raw_zip([(f"{i}.npy", b"", 0, 0) for i in range(1_000_000)])),
    "one name twice": written(lambda: raw_zip([("x.npy", b"", 0, 0)] * 2)),
    "an archive in an archive": written(lambda: plain_zip(x=bomb(500))),
    "shape of 10^18": written(lambda: plain_zip(x=header((10**18,)))),
    "shape of 2^63 times 2": written(lambda: plain_zip(x=header((2**62, 2, 2)))),
    "shape below 0": written(lambda: plain_zip(x=header((-1, -8)) + bytes(64))),
    "shape (0, 10^18)": written(lambda: plain_zip(x=header((0, 10**18)))),
    "10^18 empty texts": written(lambda: plain_zip(x=header((10**18,), "<U0"))),
    "text of 2 GB each": written(lambda: plain_zip(x=header((10**6,), "<U500000000"))),
    "objects": written(lambda: plain_zip(x=header((1,), "|O") + b"cos\nsystem\n(S'true'\ntR.")),
    "header of 100 MB": written(
        lambda: plain_zip(x=b"\x93NUMPY\x02\x00" + struct.pack("<I", 10**8) + b" " * 10**8)
    ),
    "header deep in brackets": written(
        lambda: plain_zip(x=b"\x93NUMPY\x02\x00" + struct.pack("<I", 9000) + b"(" * 9000)
    ),
    "a million fields": written(
        lambda: plain_zip(
            x=header((1,), [(f"f{i}", "<f8") for i in range(10**6)], (2, 0))  # type: ignore[arg-type]
        )
    ),
    "packed by LZMA": written(lambda: raw_zip([("x.npy", b"\x09\x04\x05\x00]" + bytes(50), 4 * GB - 2, 14)])),
    "encrypted": written(
        lambda: plain_zip(x=header((1,)) + bytes(8)).replace(b"\x00\x00\x00\x00", b"\x01\x00", 1)
    ),
    "directory cut off": written(lambda: plain_zip(x=header((1,)) + bytes(8))[:-30]),
}

TEXTS: dict[str, Maker] = {
    "deep": written(lambda: deep(100_000)),
    "just too deep": written(lambda: deep(500)),
    "10^6 fields": written(lambda: json.dumps({f"f{i}": i for i in range(10**6)}).encode()),
    "10^7 empty lists": written(lambda: b"[" + b"[]," * 10**7 + b"1]"),
    "2·10^7 empty lists": written(lambda: b"[" + b"[]," * 2 * 10**7 + b"1]"),
    "number of 10^6 digits": written(lambda: b'{"format": ' + b"9" * 10**6 + b"}"),
    "number of 4000 digits": written(lambda: b'{"format": ' + b"9" * 4000 + b"}"),
    "not UTF-8": written(b'\xff\xfe{"kind": 1}'),
    "UTF-16": written('{"kind": "study"}'.encode("utf-16")),
    "half a pair": written(b'{"kind": "\\ud800"}'),
}

TABLES: dict[str, Maker] = {
    "a line of 200 MB": written(lambda: b"a,y\n" + b"1" * (200 * 2**20)),
    "10^6 columns": written(
        lambda: ",".join(f"c{i}" for i in range(10**6)).encode() + b"\n" + b",".join([b"1"] * 10**6)
    ),
    "one long text, many rows": written(lambda: b"a,y\n" + b"x" * 100_000 + b",1\n" + b"x,1\n" * 200_000),
    "quotes that do not end": written(lambda: b'a,y\n"' + b"1\n" * 5_000_000),
    "gzip": written(lambda: zlib.compress(bytes(10**6))),
}

SPECS: dict[str, Maker] = {
    "huge": written(lambda: b"a = 1\n" * 10**6),
    "a key of 10^6 parts": written(lambda: b".".join([b"a"] * 10**6) + b" = 1"),
    "a header of 10^6 parts": written(lambda: b"[" + b".".join([b"a"] * 10**6) + b"]"),
    "deep lists": written(lambda: b"a = " + b"[" * 10**5),
    "deep tables": written(lambda: b"a = " + b"{a=" * 10**5),
    "number of 10^6 digits": written(lambda: b"seed = " + b"9" * 10**6),
}


def parquet_bomb(path: Path) -> None:
    """2·10⁸ rows of one number, 10⁶ rows of one long text: kilobytes on the disk."""
    import pyarrow as pa
    import pyarrow.parquet

    numbers = pa.chunked_array([pa.array(np.zeros(10**6, np.int8))] * 300)
    pa.parquet.write_table(pa.table({"a": numbers, "y": numbers}), path, compression="zstd")


def parquet_texts(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    text = pa.DictionaryArray.from_arrays(np.zeros(10**6, np.int32), ["x" * 10**6])
    pa.parquet.write_table(pa.table({"a": text, "y": np.ones(10**6)}), path)


def sealed_arrays(make: Maker) -> Maker:
    """The file of a store, listed with its hash and as large as may be."""

    def put(path: Path) -> None:
        make(path)
        record = folder.read(path.parent)
        for listed in folder.entries(record):
            if listed["file"] == path.name:
                listed["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
                listed["holds"] = {"x": ["<f8", [2**29]]}
        folder.write(path.parent / folder.MANIFEST, folder._serialise(record))

    return put


def sealed_manifest(make: Maker) -> Maker:
    """A manifest of this text with its hash."""

    def put(path: Path) -> None:
        make(path)
        text = path.read_bytes()
        digest = hashlib.sha256(text).hexdigest().encode()
        path.write_bytes(b'{"sha256": "%s",\n"record": %s}\n' % (digest, text))

    return put
