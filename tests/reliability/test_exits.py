"""Whatever ends a run, what it had reached is on the disk, and the same call goes on from there."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import jax
import numpy as np
import pytest

import wideflow as wf
from loop_cases import small
from store.cases import assert_begins, assert_same_bits
from wideflow import signals
from wideflow.store import folder, retrying

TIMES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


class Flaky:
    """An observer that raises from a time on, for as long as it is told to."""

    def __init__(self, error, at=0.6):
        self.error, self.at = error, at

    def __call__(self, t, state):
        if self.error is not None and t >= self.at:
            raise self.error
        return state.theta.sum()


def raised(call, kind):
    with pytest.raises(kind) as caught:
        wf.evolve(**call)
    assert caught.traceback[-1].name == "__call__"  # its own traceback, to the line that raised
    return caught.value


@pytest.mark.parametrize(
    "error", [ValueError("no"), MemoryError(), SystemExit(3)], ids=lambda e: type(e).__name__
)
def test_an_observer_that_raises(error, tmp_path):
    """Its exception comes as it is, with a note; mended, the run goes on to the same bits."""
    look = Flaky(error)
    call = small(ts=TIMES, observe={"sum": wf.named("sum", look)})
    caught = raised(call | {"checkpoint": tmp_path}, type(error))
    assert caught is error
    (note,) = caught.__notes__
    assert "stands at t = 0.6 of 1" in note and "3 of 6 times" in note and f"in {tmp_path}; once this" in note
    saved = wf.load(tmp_path)
    assert saved.status == "interrupted" and len(saved.rows) == 3
    assert saved.info["raised"].startswith(type(error).__name__)
    look.error = None
    whole = wf.evolve(**call)
    assert_begins(saved, whole)
    again = wf.evolve(**call, checkpoint=tmp_path)
    assert_same_bits(again, whole)
    assert "raised" not in again.info
    assert_same_bits(wf.load(tmp_path), whole)


def test_an_observer_whose_code_is_mended_sees_all_saved_times_anew(tmp_path):
    def broken(t, state):
        return 1 / (0.6 - min(t, 0.6))

    def mended(t, state):
        return state.theta.sum()

    with pytest.raises(ZeroDivisionError):
        wf.evolve(**small(ts=TIMES, observe={"own": broken}), checkpoint=tmp_path)
    assert len(wf.load(tmp_path).rows) == 3
    again = wf.evolve(**small(ts=TIMES, observe={"own": mended}), checkpoint=tmp_path)
    assert_same_bits(again, wf.evolve(**small(ts=TIMES, observe={"own": mended})))
    assert_same_bits(wf.load(tmp_path), again)
    with pytest.raises(ValueError, match="other observers"):  # of a run that did not fail it is another one
        wf.evolve(**small(ts=TIMES, observe={"own": broken}), checkpoint=tmp_path)


def test_without_a_checkpoint_the_exception_has_the_run():
    error = raised(small(ts=TIMES, observe={"sum": Flaky(ValueError("no"))}), ValueError)
    assert "attribute `run`" in error.__notes__[0]
    assert error.run.status == "interrupted"
    assert_begins(error.run, wf.evolve(**small(ts=TIMES, observe={"sum": Flaky(None)})))


FAILS = {"from": np.inf}


def test_an_error_inside_a_compiled_program(tmp_path):
    """A callback in the data of each step: the state before the piece that failed is kept."""
    count = []

    def look(x):
        count.append(x)
        if len(count) > FAILS["from"]:
            raise RuntimeError("the data cannot be read")
        return np.sin(x)

    def target(x):
        return jax.pure_callback(look, jax.ShapeDtypeStruct((), x.dtype), x[0], vmap_method="sequential")

    problem = wf.Problem(x=wf.Gaussian(1), target=wf.named("t", target), neuron=wf.Neuron("tanh"))
    dynamics = wf.SGD(wf.Risk(problem, wf.Sample(2)), step=0.1, batch=1)
    call = {"dynamics": dynamics, "state": wf.init(problem).sample(jax.random.key(0), 3), "ts": TIMES}

    count.clear()
    whole = wf.evolve(**call)
    FAILS["from"] = len(count) // 2
    count.clear()
    try:
        with pytest.raises(Exception, match="the data cannot be read") as caught:
            wf.evolve(**call, checkpoint=tmp_path)
    finally:
        FAILS["from"] = np.inf
    assert "The run stands at t = " in caught.value.__notes__[-1]
    assert_begins(wf.load(tmp_path), whole)
    assert_same_bits(wf.evolve(**call, checkpoint=tmp_path), whole)


def test_a_rescue_that_fails_does_not_hide_the_error(monkeypatch, tmp_path):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(retrying, "DELAYS", (0.0, 0.0, 0.0))
    call = small(ts=TIMES, observe={"sum": wf.named("sum", Flaky(ValueError("mine")))})
    with (
        pytest.warns(UserWarning, match="could not be written"),
        pytest.raises(ValueError, match="mine") as caught,
    ):
        wf.evolve(**call, checkpoint=tmp_path / "run")
    assert "No space left" in caught.value.__notes__[0] and len(caught.value.run.rows) == 3


# --- signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", signals.ENDING, ids=lambda n: n.name)
def test_the_first_signal_asks_and_handlers_come_back(number, monkeypatch, tmp_path):
    """Delivered for real, from inside an observer; the signal's own effect comes when all is saved."""
    effects = []

    def effect(*args):
        effects.append(wf.load(tmp_path).status)

    before = signal.getsignal(number)
    monkeypatch.setattr(signals, "_PLAIN", (*signals._PLAIN, effect))
    signal.signal(number, effect)

    def look(t, state):
        if 0.5 < t < 0.7:
            os.kill(os.getpid(), number)
        return 0.0

    call = small(ts=TIMES, observe={"look": wf.named("look", look)}, checkpoint=tmp_path)
    try:
        run = wf.evolve(**call)
        assert signal.getsignal(number) is effect
    finally:
        signal.signal(number, before)
    assert run.status == "interrupted" and len(run.rows) == 4  # the time that was being looked at is kept
    assert f"Stopped by {'hand' if number == signal.SIGINT else number.name} at t = 0.6" in run.message
    assert effects == ([] if number == signal.SIGINT else ["interrupted"])
    assert_same_bits(wf.load(tmp_path), run)
    assert wf.evolve(**call | {"checkpoint": tmp_path}).status == "ok"


def test_a_handler_of_the_users_stays(tmp_path):
    calls = []
    before = signal.signal(signal.SIGTERM, lambda *_: calls.append(1))
    try:
        look = wf.named("look", lambda t, state: os.kill(os.getpid(), signal.SIGTERM) or 0.0)
        assert wf.evolve(**small(observe={"look": look}), checkpoint=tmp_path).status == "ok"
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(calls) == 3


def test_a_thread_leaves_signals_alone(tmp_path):
    runs = []
    work = lambda: runs.append(wf.evolve(**small(), checkpoint=tmp_path))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert runs[0].status == "ok"


SCRIPT = """
import os, signal, sys
import jax
jax.config.update("jax_enable_x64", True)
import wideflow as wf
from loop_cases import small

def look(t, state):
    print(t, flush=True)
    if len(sys.argv) > 3 and t > 0.5:  # the second signal comes before the piece has ended
        os.kill(os.getpid(), int(sys.argv[2])), os.kill(os.getpid(), int(sys.argv[2]))
        __import__("time").sleep(60)
    if t > 0.5:
        os.kill(os.getpid(), int(sys.argv[2]))
    return 0.0

call = small(ts=[0.1 * i for i in range(11)], observe={"look": wf.named("look", look)})
wf.evolve(**call, checkpoint=wf.Checkpoint(sys.argv[1], every=1e9))
print("after", flush=True)
"""


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
def test_sigterm_ends_a_script_after_saving(twice, tmp_path):
    """It dies of the signal, as its parent expects; all that it told of is on the disk, with no save before.
    Of two signals it dies at once."""
    path, cache = tmp_path / "run", str(jax.config.jax_compilation_cache_dir)
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "JAX_COMPILATION_CACHE_DIR": cache}
    args = [str(path), str(int(signal.SIGTERM)), *(["twice"] if twice else [])]
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), *args]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGTERM, done.stderr
    times = [float(word) for word in done.stdout.split()]  # no "after"
    if twice:
        assert not folder.exists(path)
    else:
        assert wf.load(path).t.tolist() == times and "Stopped by SIGTERM" in done.stderr


# --- a save that failed ---------------------------------------------------------------------------


def test_a_failed_save_cannot_be_missed(monkeypatch, tmp_path):
    fsync = os.fsync

    def full(descriptor):
        if str(tmp_path / "run") in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")
        return fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(retrying, "DELAYS", (0.0, 0.0, 0.0))
    with pytest.warns(UserWarning, match="could not be written"):
        run = wf.evolve(**small(), checkpoint=tmp_path / "run")
    assert run.status == "ok"
    assert "No space left" in run.info["checkpoint_error"]
    assert "could not be written" in run.message and "run.save(another_folder)" in run.message
    assert "ok, not saved" in repr(run)
    assert_same_bits(wf.load(run.save(tmp_path / "elsewhere")), run)
