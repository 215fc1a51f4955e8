"""A folder is one whole state, whatever happens to its writer or to its bytes."""

import errno
import hashlib
import io
import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wideflow as wf
from store.cases import CASES, assert_same_bits
from wideflow import run as run_module
from wideflow.store import folder

HERE = Path(__file__).parent


@pytest.fixture
def saved(tmp_path):
    """A small run in a folder: manifest, rows, final state, and the carry of its checkpoint."""
    path = tmp_path / "saved"
    wf.evolve(**CASES["GradientDescent"].call(2), checkpoint=path)
    assert sorted(p.name.split("-")[0] for p in path.iterdir()) == ["carry", "final", "manifest.json", "rows"]
    return path


def listed(path: Path) -> list[Path]:
    return sorted(path.iterdir())


def load_fails(path: Path, file: Path, why: type[Exception] = folder.DamagedError) -> None:
    with pytest.raises(why, match=file.name):
        wf.load(path)


def test_a_writer_killed_at_every_operation(tmp_path):
    """See `writer.py`; each version must be whole from one operation on, and none may be skipped."""
    command = [sys.executable, HERE / "writer.py", folder.__file__, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    versions = json.loads(done.stdout)
    assert versions == sorted(versions)
    assert set(versions) == {-1, 0, 1, 2}
    # Three versions of three files with 8 operations each (see test_resume.py), the manifest before in two of
    # them, the fsync of three new folders' names with 3 each, and the carry of the first to remove.
    assert len(versions) == (3 * 3 + 2) * 8 + 3 * 3 + 1


def test_a_file_is_on_the_disk_before_anything_names_it(saved, monkeypatch):
    """What a loss of power needs, and no kill can show: the order of fsync and rename."""
    record, log = folder.read(saved), []
    fsync, replace, unlink = os.fsync, os.replace, os.unlink
    name = lambda descriptor: Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.split("-")[0]
    monkeypatch.setattr(os, "fsync", lambda fd: (log.append(("fsync", name(fd))), fsync(fd)))
    monkeypatch.setattr(
        os, "replace", lambda a, b: (log.append(("rename", b.name.split("-")[0])), replace(a, b))
    )
    monkeypatch.setattr(
        os, "unlink", lambda path: (log.append(("unlink", path.name.split("-")[0])), unlink(path))
    )
    record["carry"] = folder.put(saved, "carry", {"new": np.arange(3)})
    folder.commit(saved, record)
    names = ["carry", "manifest.previous.json", "manifest.json"]
    temporary = lambda name: name if name == "carry" else f"{name}.{os.getpid()}.tmp"
    in_order = [step for n in names for step in (("fsync", temporary(n)), ("rename", n), ("fsync", "saved"))]
    assert log == in_order  # the carry of the generation before stays
    log.clear()
    record["carry"] = folder.put(saved, "carry", {"newer": np.arange(3)})
    folder.commit(saved, record)
    assert log == [*in_order, ("unlink", "carry")]


@pytest.mark.slow
def test_every_flipped_byte_is_found(saved):
    draw, flips = random.Random(0), 0
    for file in listed(saved):
        content = bytearray(file.read_bytes())
        with open(file, "r+b", buffering=0) as handle:
            for i, byte in enumerate(content):
                # The highest bit leaves ASCII, the lowest stays in it, the third is any.
                for bit in {0, 7, draw.randrange(8)}:
                    handle.seek(i)
                    handle.write(bytes([byte ^ (1 << bit)]))
                    try:
                        wf.load(saved)
                    except folder.DamagedError as error:
                        assert file.name in str(error)
                    else:
                        raise AssertionError(f"bit {bit} of byte {i} of {file.name} was missed")
                    flips += 1
                handle.seek(i)
                handle.write(bytes([byte]))
    assert flips > 2 * sum(file.stat().st_size for file in listed(saved))
    wf.load(saved)  # and whole again


def test_a_cut_or_longer_file_is_found(saved):
    for file in listed(saved):
        content = file.read_bytes()
        size = len(content)
        for other in [content[:n] for n in (0, 1, size // 2, size - 1)] + [content + b"\0", content + b"\n"]:
            file.write_bytes(other)
            load_fails(saved, file)
        file.write_bytes(content)
    wf.load(saved)


def test_a_missing_file_is_found(saved):
    for file in listed(saved):
        content = file.read_bytes()
        file.unlink()
        load_fails(saved, file, FileNotFoundError if file.name == folder.MANIFEST else folder.DamagedError)
        file.write_bytes(content)
    wf.load(saved)


def test_files_of_two_runs_do_not_mix(saved, tmp_path):
    """A file of the right kind, whole in itself, but of another run."""
    other = tmp_path / "other"
    wf.evolve(**CASES["SGD-data"].call(2), checkpoint=other)
    for name in ("carry", "final", "rows"):
        mine, theirs = (next(p.glob(f"{name}-*")) for p in (saved, other))
        content = mine.read_bytes()
        mine.write_bytes(theirs.read_bytes())
        load_fails(saved, mine)
        mine.write_bytes(content)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"kind": "run", "format": 1}', b"\xff\xfe", b"null\n"]
)
def test_a_file_that_is_no_manifest(saved, content):
    (saved / folder.MANIFEST).write_bytes(content)
    load_fails(saved, saved / folder.MANIFEST)


def test_a_sealed_manifest_of_something_else(saved):
    record = folder.read(saved)
    for change, told in [({"kind": "sweep"}, "'sweep' of format 2"), ({"format": 99}, "'run' of format 99")]:
        folder.commit(saved, record | change)
        with pytest.raises(ValueError, match=told):
            wf.load(saved)
    folder.write(saved / folder.MANIFEST, folder._serialise([record]))
    load_fails(saved, saved / folder.MANIFEST)


class Payload:
    """What an attacker would pickle: unpickling it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("bare", [False, True], ids=["npz", "pickle"])
def test_nothing_is_unpickled(saved, tmp_path, bare):
    """A whole manifest, a right hash, and a pickle inside."""
    trap = tmp_path / "trap"
    objects = np.array([Payload(trap)], dtype=object)
    buffer = io.BytesIO()
    np.savez(buffer, t=objects)  # np.savez pickles without being asked
    content = pickle.dumps(objects) if bare else buffer.getvalue()
    record = folder.read(saved)
    file = record["segments"][0]["arrays"]["file"]
    (saved / file).write_bytes(content)
    record["segments"][0]["arrays"]["sha256"] = hashlib.sha256(content).hexdigest()
    folder.write(saved / folder.MANIFEST, folder._serialise(record))
    with pytest.raises(folder.DamagedError, match=f"{file} does not hold plain arrays"):
        wf.load(saved)
    assert not trap.exists()


def test_only_numbers_are_written(tmp_path):
    for value in (np.array([Payload(tmp_path)]), np.array(["text"])):
        with pytest.raises(TypeError, match=r"rows/x: an array of .* cannot be stored"):
            folder.put(tmp_path, "rows", {"x": value})
    assert not listed(tmp_path)


def test_a_name_of_any_kind_is_kept(tmp_path):
    """`file` is an argument of np.savez; the others are no identifiers."""
    arrays = {name: np.arange(3.0) for name in ("file", "a/b", "x.y", "ρ", "", "..")}
    found = folder.get(tmp_path, folder.put(tmp_path, "rows", arrays))
    assert list(found) == list(arrays)
    assert all(np.array_equal(found[name], value) for name, value in arrays.items())


def test_the_same_arrays_make_the_same_file(tmp_path):
    one, two = (folder.put(tmp_path / name, "x", {"a": np.arange(5.0)}) for name in "ab")
    assert one == two  # no time of day in it


def test_a_commit_removes_its_own_files_only(saved):
    """Leftovers of dead writers go; what the user put there stays."""
    mine = [f"carry-{'0' * 16}.npz", f"carry-{'0' * 16}.npz.123.tmp", "manifest.json.77.tmp"]
    users = ["notes.txt", "draft.tmp", "weights.npz", "manifest.json.bak", "figure-1.npz"]
    for name in mine + users:
        (saved / name).write_bytes(b"")
    before = folder.read(saved)
    folder.commit(saved, before)
    names = {p.name for p in saved.iterdir()}
    assert names.isdisjoint(mine) and names.issuperset(users)
    wf.load(saved)


@pytest.mark.parametrize("operation", ["fsync", "replace", "open"])
def test_a_write_that_fails_changes_nothing(saved, monkeypatch, operation):
    before, record = {p: p.read_bytes() for p in listed(saved)}, folder.read(saved)

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*((folder, "open") if operation == "open" else (os, operation)), full, raising=False)
        with pytest.raises(OSError, match="No space left"):
            folder.commit(saved, record | {"message": "new"})
    assert {p: p.read_bytes() for p in listed(saved)} == before


def test_one_writer_at_a_time(saved):
    with folder.lock(saved):
        with pytest.raises(folder.InUseError, match="another run that is still going on"):
            wf.evolve(**CASES["GradientDescent"].call(2), checkpoint=saved)
        with pytest.raises(folder.InUseError):
            wf.load(saved).save(saved)
        wf.load(saved)  # reading is free
    assert wf.evolve(**CASES["GradientDescent"].call(2), checkpoint=saved).status == "ok"


def test_reading_while_another_process_writes(saved, monkeypatch):
    """The files of the manifest just read are replaced before they are opened."""
    newer = wf.evolve(**CASES["SGD-data"].call(3))
    verified, calls = folder.verified, []

    def late(*args):
        calls.append(args)
        if len(calls) == 1:
            record = run_module.header(newer) | {
                "final": run_module.put_state(saved, "final", newer.final),
                "segments": [run_module.put_rows(saved, "rows-00000", newer.rows)],
            }
            folder.commit(saved, record | {"uniform": True}, generations=1)
        return verified(*args)

    monkeypatch.setattr(folder, "verified", late)
    assert_same_bits(wf.load(saved), newer)
    assert len(calls) == 3  # the carry that is gone, then two files of the newer run, which has none
