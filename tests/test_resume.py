"""Runs that are killed, at every write and at random moments, and that go on to the same bits."""

import random
import signal
from pathlib import Path

import pytest

import wideflow as wf
from store.cases import CASES, LONG, assert_begins, assert_same_bits
from store.children import Children
from wideflow.store import folder

KILLED = -signal.SIGKILL
ROWS = 20  # saved times of a run that is killed at random: a second or so of compiling, steps and saves
MANY = 600  # of a run that must not end before it is stopped


@pytest.fixture(scope="module")
def children(tmp_path_factory):
    made = Children(tmp_path_factory.mktemp("compiled"))
    yield made
    made.close()


def whole(children: Children, case: str, rows: int, path: Path) -> wf.Run:
    """The run that nobody interrupts; it also fills the compilation cache for those to come."""
    assert children.run(case, rows, save=str(path / "whole"), warm=True) == 0
    warmed = path / "warm"  # what a process that stops and goes on compiles besides
    assert children.run(case, rows, folder=str(warmed), warm=True) == 0
    run = wf.load(path / "whole")
    assert run.status == "ok" and len(run.rows) == rows
    assert_same_bits(wf.load(warmed), run)
    return run


def test_killed_in_every_file_of_a_save(children, tmp_path):
    """The third save of a run replaces files of the second; Adam carries moments and a key. At every second
    operation (the writer of store/writer.py dies at each)."""
    expected = whole(children, "Adam", 5, tmp_path)
    # Five files (rows, final state, carry, the manifest before, the manifest), each: open, write, second half
    # of the write, fsync, rename, and open, fsync and close of the folder; then the three files of the first
    # save, whose row has been merged with that of the second.
    operations = 5 * 8 + 3
    # The new manifest is in force from its rename on, and not before.
    turn = 4 * 8 + 5
    for operation in range(0, operations, 2):
        path = tmp_path / f"killed-{operation}"
        assert children.run("Adam", 5, folder=str(path), kill=[2, operation]) == KILLED
        partial = wf.load(path)
        assert partial.status == "interrupted"
        assert_begins(partial, expected)
        assert len(partial.rows) == (2 if operation < turn else 3)
        assert_same_bits(wf.evolve(**CASES["Adam"].call(5), checkpoint=path), expected)
        assert_same_bits(wf.load(path), expected)
    assert children.run("Adam", 5, folder=str(tmp_path / "alive"), kill=[2, operations]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("case", ["SGD-law", "Langevin", "Adam", "GradientFlow"])
def test_killed_at_random_moments(children, tmp_path, case):
    """Eight kills for each of four dynamics, anywhere from the first compilation to the last save."""
    expected = whole(children, case, ROWS, tmp_path)
    assert children.run(case, ROWS, folder=str(tmp_path / "timed")) == 0
    lasts, draw, kills, path = children.lasted, random.Random(case), 0, None
    for attempt in range(100):
        if path is None:
            path = tmp_path / f"run-{attempt}"
        code = children.run(case, ROWS, folder=str(path), when=draw.uniform(0.0, 0.8 * lasts))
        assert code in (0, KILLED)
        kills += code == KILLED
        # A machine that has become busier needs longer to get anywhere.
        lasts = 1.1 * lasts if code == KILLED else max(lasts, children.lasted)
        if folder.exists(path):
            assert_begins(wf.load(path), expected)
        if code == 0:
            assert_same_bits(wf.load(path), expected)
            path = None
            if kills >= 8:
                return
    raise AssertionError(f"{kills} kills and no end after 100 attempts")


def test_ctrl_c_for_real(children, tmp_path):
    """SIGINT in the middle of a run: it ends by itself, with a run that can be loaded and gone on."""
    expected = wf.evolve(**LONG.call(MANY))
    for attempt in range(3):  # Python drops what is raised while it collects garbage: press again
        path = tmp_path / f"stopped-{attempt}"
        seen = lambda path=path: folder.exists(path)
        assert children.run("long", MANY, when=seen, by=signal.SIGINT, folder=str(path)) == 0
        stopped = wf.load(path)
        if stopped.status != "ok":
            break
    assert stopped.status == "interrupted" and "Stopped by hand at t = " in stopped.message
    assert 1 <= len(stopped.rows) < MANY
    assert_begins(stopped, expected)
    assert folder.read(path)["status"] == "interrupted"  # it has said so itself, before it ended
    assert_same_bits(wf.evolve(**LONG.call(MANY), checkpoint=path), expected)


def test_two_processes_and_one_folder(children, tmp_path):
    """While one writes there the other is refused, and takes over when the first has been killed."""
    path = tmp_path / "shared"
    call = LONG.call(MANY) | {"checkpoint": path}

    def refused():
        if not folder.exists(path):
            return False
        with pytest.raises(folder.InUseError, match="another run that is still going on"):
            wf.evolve(**call)
        assert wf.load(path).status == "interrupted"
        return True

    assert children.run("long", MANY, when=refused, folder=str(path)) == KILLED
    assert_same_bits(wf.evolve(**call), wf.evolve(**LONG.call(MANY)))
