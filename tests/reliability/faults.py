"""A disk that fails: any operation of the store, once, from then on, or every few; and files that the system
really refuses, beyond a size.

`attack(1000, 0)` is the long run (`make reliability ATTACKS=faults`); a short one is in the tests."""

import errno
import os
import random
import resource
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import wideflow as wf
from store.cases import CASES, assert_begins, assert_same_bits
from wideflow.store import folder, retrying

NAMES = ("SGD-law", "Langevin", "BirthDeath", "Adam", "GradientFlow")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EINTR)
ROWS = 4
OPERATIONS = 9 * 5 * ROWS  # about so many has a run with a save at each time


class Disk:
    """The module `os` and `open` as the store sees them; operation k raises if `fails(k)`."""

    def __init__(self, fails: Callable[[int], bool], number: int):
        self.fails, self.number, self.done, self.faults = fails, number, 0, 0

    def step(self) -> None:
        self.done += 1
        if self.fails(self.done):
            self.faults += 1
            raise OSError(self.number, os.strerror(self.number))

    def __getattr__(self, name: str):
        if name not in ("open", "fsync", "replace", "unlink"):
            return getattr(os, name)

        def operation(*args, **kwargs):
            self.step()
            return getattr(os, name)(*args, **kwargs)

        return operation

    def opened(self, *args, **kwargs):
        self.step()
        return _File(open(*args, **kwargs), self)


class _File:
    """A file whose writes may fail half-way."""

    def __init__(self, file, disk: Disk):
        self.file, self.disk, self.fileno = file, disk, file.fileno

    def write(self, content) -> int:
        done = self.file.write(content[: len(content) // 2])
        self.disk.step()
        return done + self.file.write(content[done:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


@contextmanager
def faulty(disk: Disk) -> Iterator[None]:
    """The store on this disk, with no time between tries."""
    before, delays = folder.os, retrying.DELAYS
    folder.os, folder.open, retrying.DELAYS = disk, disk.opened, (0.0, 0.0, 0.0)
    try:
        yield
    finally:
        folder.os, retrying.DELAYS = before, delays
        del folder.open


@contextmanager
def small_files(largest: int) -> Iterator[None]:
    """The system refuses (EFBIG) what would make a file larger than so many bytes."""
    limits, delays = resource.getrlimit(resource.RLIMIT_FSIZE), retrying.DELAYS
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
    retrying.DELAYS = (0.0, 0.0, 0.0)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
        retrying.DELAYS = delays


def _verdict(run: wf.Run | None, whole: wf.Run, path: Path) -> str:
    """What became of a run: on disk and in memory with equal bits (`survived`), or told that it is not."""
    if run is None:
        return "told"  # an exception, before anything was computed
    assert_same_bits(run, whole)
    if "checkpoint_error" in run.info:
        assert "could not be written" in run.message and "not saved" in repr(run)
        if folder.exists(path):
            assert_begins(wf.load(path), whole)  # an earlier save, and whole
        return "told"
    assert_same_bits(wf.load(path), whole)
    return "survived"


def _run(call: dict, path: Path) -> wf.Run | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return wf.evolve(**call, checkpoint=wf.Checkpoint(path, every=0.0))
        except OSError:
            return None


def _schedule(draw: random.Random) -> Callable[[int], bool]:
    """Which operations fail: one, all from one on, or every Nth."""
    first, kind = draw.randrange(1, OPERATIONS), draw.randrange(3)
    every = draw.randrange(2, 40)
    return (lambda k: k == first, lambda k: k >= first, lambda k: k % every == 0)[kind]


def attack(count: int, seed: int, names: tuple[str, ...] = NAMES) -> dict[str, int]:
    """So many runs on disks that fail, and each gone on with on a disk that works.

    Counts: `faults` (operations that failed), `runs`; `survived` (whole on the disk in spite of them, with
    the bits of the undisturbed run), `told` (not on the disk, and the run or an exception says so), `silent`
    (neither, or going on with it came to other bits: 0, or it is a bug)."""
    draw, counts = random.Random(seed), Counter(faults=0, runs=0, survived=0, told=0, silent=0)
    calls = {name: CASES[name].call(ROWS) for name in names}
    wholes = {name: wf.evolve(**call) for name, call in calls.items()}
    with tempfile.TemporaryDirectory() as place:
        for i in range(count):
            name, path = names[i % len(names)], Path(place) / str(i)
            disk = Disk(_schedule(draw), draw.choice(ERRORS))
            by_size = i % 10 == 9
            with small_files(draw.randrange(200, 4000)) if by_size else faulty(disk):
                run = _run(calls[name], path)
            counts["faults"] += 1 if by_size else disk.faults
            counts["runs"] += 1
            try:
                counts[_verdict(run, wholes[name], path)] += 1
                again = wf.evolve(**calls[name], checkpoint=path)
                assert_same_bits(again, wholes[name])
                assert_same_bits(wf.load(path), wholes[name])
            except (AssertionError, ValueError, OSError) as error:
                print(f"{name}, run {i}: {type(error).__name__} {error}", file=sys.stderr)
                counts["silent"] += 1
    return dict(counts)
