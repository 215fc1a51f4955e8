"""What the folder of a run holds: whose it is, what is refused, and what a full disk leaves."""

import errno
import itertools
import os
import re

import jax
import numpy as np
import pytest

import wideflow as wf
from loop_cases import cosine, ctrl_c, sampled_risk, sine, small
from store.cases import CASES, assert_same_bits
from wideflow import checkpoint as checkpoint_module
from wideflow import loop
from wideflow.store import folder, retrying


def test_a_finished_run_is_returned_without_work(whole, monkeypatch, tmp_path):
    case = CASES["SGD-data"]
    call = case.call() | {"checkpoint": tmp_path}
    assert_same_bits(wf.evolve(**call), whole(case))
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}

    monkeypatch.setattr(loop._Loop, "run", lambda *args: pytest.fail("work was done"))
    assert_same_bits(wf.evolve(**call), whole(case))
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()} == before


OTHERS = {
    "step": (dict(step=0.05), "problem or dynamics"),
    "closure of the target": (dict(target=(sine, 1.0 + 1e-15)), "problem or dynamics"),
    "code of the target": (dict(target=(cosine,)), "problem or dynamics"),
    "width": (dict(width=4), "start"),
    "key": (dict(seed=1), "key"),
    "ts": (dict(ts=(0.0, 0.5, 1.1)), "times"),
    "more ts": (dict(ts=(0.0, 0.5, 1.0, 1.5)), "times"),
    "snapshots": (dict(snapshots=False), "times"),
    "observers": (dict(observe={"x": lambda t, s: 1.0}), "observers"),
}


@pytest.fixture
def finished(tmp_path):
    """The folder of a small run, finished."""
    wf.evolve(**small(), checkpoint=tmp_path / "finished")
    return tmp_path / "finished"


@pytest.mark.parametrize("other, part", OTHERS.values(), ids=OTHERS)
def test_another_run_in_the_folder_is_refused(other, part, finished):
    before = {p: p.read_bytes() for p in finished.iterdir()}
    with pytest.raises(ValueError, match=f"{finished} holds another run: other {part}. .*folder of its own"):
        wf.evolve(**small(**other), checkpoint=finished)
    assert {p: p.read_bytes() for p in finished.iterdir()} == before


def test_the_same_run_made_anew_is_not_refused(finished):
    """Other objects, the same problem: nothing in a fingerprint is an address."""
    sampled_risk.cache_clear()
    assert wf.evolve(**small(), checkpoint=finished).status == "ok"


def test_times_that_snap_to_the_same_steps_are_the_same_run(finished):
    run = wf.evolve(**small(ts=(0.01, 0.49, 1.04)), checkpoint=finished)
    assert np.array_equal(run.t, np.array([0, 5, 10]) * 0.1)


def test_a_saved_run_is_no_checkpoint(tmp_path):
    wf.evolve(**small()).save(tmp_path)
    with pytest.raises(ValueError, match="holds a run that was saved by hand"):
        wf.evolve(**small(), checkpoint=tmp_path)


def test_other_settings_of_jax_are_refused(finished):
    """Another generator, other draws: going on would mix two of them."""
    call = small()
    other = jax.threefry_partitionable(not jax.config.jax_threefry_partitionable)
    message = r"another run: other setting jax_threefry_partitionable \(True → False\)\. Give this run"
    with other, pytest.raises(ValueError, match=message):
        wf.evolve(**call, checkpoint=finished)


def test_other_versions_are_told(monkeypatch, tmp_path):
    with ctrl_c(2):
        wf.evolve(**small(), checkpoint=tmp_path)
    monkeypatch.setattr(checkpoint_module, "versions", lambda: {"jax": "99.0"})
    with pytest.warns(UserWarning, match=rf"other versions \(jax {re.escape(jax.__version__)} → 99\.0\)"):
        run = wf.evolve(**small(), checkpoint=tmp_path)
    assert run.status == "ok"


def test_a_damaged_checkpoint_is_not_gone_on_from(tmp_path):
    with ctrl_c(2):
        wf.evolve(**small(), checkpoint=tmp_path)
    (carry,) = tmp_path.glob("carry-*")
    carry.write_bytes(carry.read_bytes()[:-1])
    with pytest.raises(folder.DamagedError, match=carry.name):
        wf.evolve(**small(), checkpoint=tmp_path)


@pytest.mark.parametrize("every", [0.0, 1e9])
def test_a_full_disk_does_not_end_the_run(every, whole, monkeypatch, tmp_path):
    """The disk fills up after the second save; everything is computed, the second save stays."""
    case = CASES["Adam"]
    with ctrl_c(2):
        first = wf.evolve(**case.call(), checkpoint=tmp_path)

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.warns(UserWarning, match=r"could not be written .*No space"):
        patch.setattr(os, "fsync", full)
        run = wf.evolve(**case.call(), checkpoint=wf.Checkpoint(tmp_path, every=every))
    assert_same_bits(run, whole(case))
    assert "No space left" in run.info["checkpoint_error"]
    assert_same_bits(wf.load(tmp_path), first)
    # with room again, the same call finishes the folder too
    again = wf.evolve(**case.call(), checkpoint=tmp_path)
    assert_same_bits(again, whole(case))
    assert "checkpoint_error" not in again.info
    assert_same_bits(wf.load(tmp_path), again)


def test_a_disk_that_has_room_again(whole, monkeypatch, tmp_path):
    case, fsync, count = CASES["Adam"], os.fsync, itertools.count()

    def full_for_a_while(descriptor):
        if next(count) < 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        return fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full_for_a_while)
    with pytest.warns(UserWarning, match="could not be written"):
        run = wf.evolve(**case.call(), checkpoint=wf.Checkpoint(tmp_path, every=0.0))
    assert "checkpoint_error" not in run.info
    assert_same_bits(wf.load(tmp_path), whole(case))


def test_saves_are_made_when_they_are_due(monkeypatch, tmp_path):
    """By the clock, not by the number of steps; a failed save is not tried again at once."""
    now, writes = [0.0], []
    monkeypatch.setattr(checkpoint_module.time, "monotonic", lambda: now[0])
    ledger = checkpoint_module.Ledger(wf.Checkpoint(tmp_path, every=10.0), {})

    def fail(*args):
        writes.append(now[0])
        now[0] += 2.0  # a save takes two seconds
        raise OSError

    monkeypatch.setattr(checkpoint_module, "put_state", fail)
    for _ in range(40):
        now[0] += 1.0
        if ledger.due():
            with pytest.raises(OSError):
                ledger.write(wf.Run((), None), None)
    assert writes == [10.0, 22.0, 34.0, 46.0]


def faulty(monkeypatch, times, number, only=""):
    """fsync fails so many times with this error, on files whose name has `only` in it; returns the log."""
    fsync, log = os.fsync, []

    def fail(descriptor):
        name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
        if only in name and len(log) < times:
            log.append(name)
            raise OSError(number, os.strerror(number))
        return fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr(retrying, "DELAYS", (0.0, 0.0, 0.0))
    return log


@pytest.mark.parametrize("number", [errno.EINTR, errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_fault_that_passes_in_the_last_save_is_tried_again(number, monkeypatch, tmp_path):
    """Once in each of the files of the last save, which is the only one: the run is whole on disk."""
    for only in ("rows", "final", "carry", "manifest"):
        with monkeypatch.context() as patch:
            log = faulty(patch, 1, number, only)
            run = wf.evolve(**small(), checkpoint=wf.Checkpoint(tmp_path / only, every=1e9))
        assert len(log) == 1 and "checkpoint_error" not in run.info
        assert_same_bits(wf.load(tmp_path / only), run)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_takes_nothing_leaves_the_run_in_memory(number, monkeypatch, tmp_path):
    """Not even the folder can be made: the run is computed, and it is said where it is."""
    path = tmp_path / "deep" / "run"
    with monkeypatch.context() as patch, pytest.warns(UserWarning) as told:
        faulty(patch, 10**6, number)
        patch.setattr(type(path), "mkdir", lambda *a, **k: (_ for _ in ()).throw(OSError(number, "refused")))
        run = wf.evolve(**small(), checkpoint=path)
    words = [str(warning.message) for warning in told]
    assert "the run goes on in memory" in words[0]
    assert re.search(r"whole in memory: save it elsewhere, run\.save\(another_folder\)", words[-1])
    assert run.status == "ok" and run.info["checkpoint_error"]
    assert not path.exists()
    assert_same_bits(wf.load(run.save(tmp_path / "elsewhere")), run)
    assert_same_bits(wf.evolve(**small(), checkpoint=path), run)  # with room again
    assert_same_bits(wf.load(path), run)


def test_a_folder_that_comes_to_be_writable_is_locked_from_then_on(monkeypatch, tmp_path):
    path, mkdir, count = tmp_path / "run", type(tmp_path).mkdir, itertools.count()

    def fails_at_first(self, *args, **kwargs):
        if next(count) < 4:  # the first try and three more
            raise OSError(errno.ENOSPC, "No space left on device")
        return mkdir(self, *args, **kwargs)

    seen = []

    def look(t, state):
        if folder.exists(path):
            with pytest.raises(folder.InUseError), folder.lock(path):
                pass
            seen.append(t)
        return 0.0

    monkeypatch.setattr(type(tmp_path), "mkdir", fails_at_first)
    monkeypatch.setattr(retrying, "DELAYS", (0.0, 0.0, 0.0))
    with pytest.warns(UserWarning, match="goes on in memory"):
        probe = wf.named("look", look)
        run = wf.evolve(**small(observe={"look": probe}), checkpoint=wf.Checkpoint(path, every=0.0))
    assert seen and "checkpoint_error" not in run.info
    assert_same_bits(wf.load(path), run)


def test_a_place_that_can_never_be_written_is_told_at_once(monkeypatch, tmp_path):
    """Before any work is done, and by whom to mend it; the same for a run that is saved by hand."""
    (tmp_path / "file").write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(loop._Loop, "run", lambda *args: pytest.fail("work was done"))
        with pytest.raises(
            folder.SaveError, match=r"cannot be written to .*inside: Not a dir.*another folder"
        ):
            wf.evolve(**small(), checkpoint=tmp_path / "file" / "inside")
    run = wf.evolve(**small())
    for place in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(
            folder.SaveError, match=rf"cannot be saved to {place}: .*run\.save\(another_folder\)"
        ):
            run.save(place)


def test_saving_by_hand_is_tried_again(monkeypatch, tmp_path):
    run = wf.evolve(**small())
    faulty(monkeypatch, 1, errno.EIO, "final")
    assert_same_bits(wf.load(run.save(tmp_path)), run)
    faulty(monkeypatch, 10**6, errno.ENOSPC, "final")
    with pytest.raises(folder.SaveError, match=r"No space left on device\. It is still in memory"):
        run.save(tmp_path / "other")
