"""A folder keeps the checkpoint before the last one, in few files; what is whole in it can be got back."""

import os
from itertools import pairwise

import numpy as np
import pytest

import wideflow as wf
from loop_cases import ctrl_c
from store.cases import CASES, assert_begins, assert_same_bits
from wideflow import loop
from wideflow.checkpoint import Ledger
from wideflow.run import Row
from wideflow.segments import extended, length
from wideflow.store import folder

CASE = CASES["Adam"]


def often(path, rows=5):
    return CASE.call(rows) | {"checkpoint": wf.Checkpoint(path, every=0.0)}


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def files_of(path, name, generation=folder.MANIFEST):
    """The files of a generation that begin with this name."""
    return [
        path / file for file in sorted(folder.files(folder.read(path, generation))) if file.startswith(name)
    ]


@pytest.fixture
def stopped(tmp_path, monkeypatch):
    """A run that was interrupted at its third saved time: its last save has that time, the one before has
    not, and they share no carry and no final state."""
    monkeypatch.setattr(loop, "_FIRST", 1000)  # one piece for each saved time, on any machine
    monkeypatch.setattr(loop, "_PIECE", (0.0, np.inf))
    with ctrl_c(5):
        run = wf.evolve(**often(tmp_path))
    assert len(run.rows) == 3
    return tmp_path


DAMAGE = {
    "manifest": lambda path: path / folder.MANIFEST,
    "carry": lambda path: files_of(path, "carry")[0],
    "final": lambda path: files_of(path, "final")[0],
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("how", [flip, os.unlink], ids=["flipped", "gone"])
def test_damage_to_the_newest_costs_one_save(what, how, stopped, whole):
    file = DAMAGE[what](stopped)
    how(file)
    with pytest.raises(folder.DamagedError, match=rf"{file.name}.*salvage=True"):
        wf.load(stopped)
    salvaged = wf.load(stopped, salvage=True)
    assert salvaged.status == "interrupted"
    assert file.name in salvaged.message and "the checkpoint before it" in salvaged.message
    assert_begins(salvaged, whole(CASE))
    with pytest.warns(UserWarning, match=rf"{file.name}.*goes on from the checkpoint before it"):
        run = wf.evolve(**often(stopped))
    assert_same_bits(run, whole(CASE))
    assert_same_bits(wf.load(stopped), whole(CASE))
    for name in (folder.MANIFEST, folder.PREVIOUS):  # and both generations are whole again
        for entry in folder.entries(folder.read(stopped, name)):
            folder.verified(stopped, entry)


def test_a_folder_that_is_whole_is_loaded_as_ever(stopped):
    assert_same_bits(wf.load(stopped, salvage=True), wf.load(stopped))


def test_saved_times_are_got_back_one_by_one(tmp_path, whole):
    """Both generations are damaged in the same segment."""
    wf.evolve(**often(tmp_path))
    first, _ = files_of(tmp_path, "rows")  # of 4 times and of 1
    flip(first)
    with pytest.raises(folder.DamagedError, match=rf"{first.name}.*No checkpoint before it.*salvage=True"):
        wf.evolve(**often(tmp_path))
    run = wf.load(tmp_path, salvage=True)
    assert run.status == "interrupted" and "4 of 5 saved times are lost" in run.message
    assert_same_bits(wf.Run(run.rows, run.final), wf.Run(whole(CASE).rows[4:], whole(CASE).final))
    for final in files_of(tmp_path, "final"):
        final.unlink()
    run = wf.load(tmp_path, salvage=True)
    assert "final state is lost: that of the last saved time" in run.message
    assert np.array_equal(run.final.theta, whole(CASE).final.theta)


def test_observations_outlive_every_manifest(tmp_path, whole):
    wf.evolve(**often(tmp_path))
    for name in (folder.MANIFEST, folder.PREVIOUS):
        flip(tmp_path / name)
    run = wf.load(tmp_path, salvage=True)
    assert run.final is None and "all states are lost" in run.message
    assert np.array_equal(run["risk"], whole(CASE)["risk"]) and np.array_equal(run.t, whole(CASE).t)
    for file in tmp_path.glob("rows-*"):
        flip(file)
    with pytest.raises(folder.DamagedError, match=r"Nothing in .* could be salvaged"):
        wf.load(tmp_path, salvage=True)


# --- segments ------------------------------------------------------------------------------------

SAVES = 1000  # saved times, a save for each


def rows_of(count):
    return tuple(Row(0.1 * i, {"risk": np.array(1.0 / (i + 1))}, None) for i in range(count))


def test_a_thousand_saves_leave_few_files_and_write_little(tmp_path, monkeypatch):
    """log₂ 1000 < 10 segments; each time is written 10 times at most, so that bytes per save do not grow with
    their number: those of the second half are at most twice those of the first. A save writes the same five
    files, be it the second or the last: new times, final state, carry, the manifest before, the manifest."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # what is counted does not depend on it
    sizes, written, put = [], [], folder.write

    def counted(path, content):
        sizes[-1] += len(content)
        written[-1] += 1
        put(path, content)

    monkeypatch.setattr(folder, "write", counted)
    start = CASE.call()["state"]
    ledger, rows, files = Ledger(wf.Checkpoint(tmp_path), {}), rows_of(SAVES), []
    for i in range(1, SAVES + 1):
        sizes.append(0)
        written.append(0)
        ledger.write(wf.Run(rows[:i], start), ())
        files.append(len(ledger.segments))
    assert max(files) <= np.log2(SAVES) + 1
    assert files[-1] == SAVES.bit_count()
    lengths = [length(entry) for entry in ledger.segments]
    assert sum(lengths) == SAVES and all(one >= 2 * other for one, other in pairwise(lengths))
    assert written == [4] + [5] * (SAVES - 1)
    assert sum(sizes[SAVES // 2 :]) < 2 * sum(sizes[: SAVES // 2])
    # most saves write a few new times and the list of the segments, of which there are log₂ n at most
    first, last = (np.median(some) for some in (sizes[10:110], sizes[-100:]))
    assert last < first * np.log2(SAVES) / np.log2(10)
    assert len(list(tmp_path.iterdir())) <= 2 * (10 + 1 + 3)
    loaded = wf.load(tmp_path)
    assert len(loaded.rows) == SAVES and np.array_equal(
        loaded["risk"], [row.observed["risk"] for row in rows]
    )


def test_saves_of_any_size_leave_few_segments(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    rng, rows, segments, n = np.random.default_rng(0), rows_of(400), [], 0
    while n < len(rows):
        n = min(len(rows), n + int(rng.integers(1, 20)))
        segments = extended(tmp_path, segments, rows[:n])
        assert sum(map(length, segments)) == n and len(segments) <= np.log2(n) + 1
    assert extended(tmp_path, segments, rows) == segments  # nothing new, nothing written
