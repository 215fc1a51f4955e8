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
from wideflow.store import folder


def test_a_finished_run_is_returned_without_work(whole, monkeypatch, tmp_path):
    case = CASES["SGD-data"]
    call = case.call() | {"checkpoint": tmp_path}
    assert_same_bits(wf.evolve(**call), whole(case))
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}

    monkeypatch.setattr(wf.Descent, "advance", lambda *args: pytest.fail("work was done"))
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
    with other, pytest.raises(ValueError, match="other settings of jax"):
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
