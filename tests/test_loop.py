"""The one loop: interruptions, pieces, refusals, divergence. What it keeps is what it would have been."""

import itertools
import os
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from loop_cases import ctrl_c, small
from store.cases import CASES, assert_begins, assert_same_bits
from wideflow import checkpoint as checkpoint_module
from wideflow import loop, progress
from wideflow.dynamics import batches
from wideflow.functionals import engine
from wideflow.store import folder

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.fixture
def pieces(monkeypatch):
    """Cut every interval into pieces of so many steps."""

    def cut(steps):
        monkeypatch.setattr(loop, "_FIRST", steps)
        monkeypatch.setattr(loop, "_PIECE", (0.0, np.inf))

    return cut


# --- stopping and going on -----------------------------------------------------------------------


@every_case
def test_an_interrupted_run_goes_on_to_the_same_bits(case, whole, pieces, tmp_path):
    """Stopped early, in the middle of an interval, and late; each time from the checkpoint before."""
    pieces(3)
    stopped = 0
    for at in itertools.count(0, 4):
        with ctrl_c(at):
            run = wf.evolve(**case.call(), checkpoint=wf.Checkpoint(tmp_path, every=np.inf))
        if run.status == "ok":
            break
        stopped += 1
        assert run.status == "interrupted" and "Stopped by hand at t = " in run.message
        assert_begins(run, whole(case))
        assert_same_bits(wf.load(tmp_path), run)
    assert stopped >= 2  # a run that goes on has less before it, so `at` soon lies beyond its end
    assert_same_bits(run, whole(case))
    assert_same_bits(wf.load(tmp_path), run)


@every_case
def test_every_stop_of_a_run_goes_on_to_the_same_bits(case, whole, pieces, tmp_path):
    """Each sign of progress in turn, in a folder of its own."""
    pieces(5)
    places = set()
    for at in itertools.count():
        call = case.call(3) | {"checkpoint": tmp_path / str(at)}
        with ctrl_c(at):
            run = wf.evolve(**call)
        if run.status == "ok":
            break
        # saved times so far, and whether the carry is past the last of them
        places.add((len(run.rows), run.message))
        assert_same_bits(wf.evolve(**call), whole(case, 3))
    assert len(places) > 4  # not at saved times only
    assert {rows for rows, _ in places} >= {0, 1, 2}


@every_case
@pytest.mark.parametrize("steps", [1, 7, 1000])
def test_the_cut_into_pieces_does_not_change_the_bits(case, steps, whole, pieces):
    pieces(steps)
    assert_same_bits(wf.evolve(**case.call()), whole(case))


@every_case
def test_a_run_that_keeps_no_snapshots_goes_on(case, whole, pieces, tmp_path):
    """Its final state must come from the checkpoint, for there is no snapshot to take it from."""
    pieces(1000)
    call = case.call() | {"snapshots": False, "checkpoint": tmp_path}
    with ctrl_c(6):  # after the third saved time
        assert wf.evolve(**call).status == "interrupted"
    with ctrl_c(0):  # again, before the next one
        run = wf.evolve(**call)
    assert run.states == [] and len(run.rows) in (3, 4)
    for a, b in zip(jax.tree.leaves(run.final), jax.tree.leaves(whole(case).states[2]), strict=True):
        assert np.array_equal(a, b)
    run = wf.evolve(**call)
    for a, b in zip(jax.tree.leaves(run.final), jax.tree.leaves(whole(case).final), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(run["first"], whole(case)["first"])


def test_an_interruption_is_told(capsys):
    with ctrl_c(2):
        run = wf.evolve(**small())
    assert run.message == "Stopped by hand at t = 0.5 of 1."
    assert capsys.readouterr().err.strip() == run.message


def test_a_run_killed_between_its_last_time_and_its_end(whole, tmp_path):
    """All is saved, but the status is still "running"."""
    case = CASES["GradientFlow"]
    for snapshots in (True, False):
        path = tmp_path / str(snapshots)
        call = case.call() | {"snapshots": snapshots, "checkpoint": path}
        wf.evolve(**call)
        record = folder.read(path)
        folder.commit(path, record | {"status": "running"})
        assert wf.load(path).status == "interrupted"
        run = wf.evolve(**call)
        assert run.status == "ok" and run.info["steps"] == whole(case).info["steps"]
        assert np.array_equal(run.final.theta, whole(case).final.theta)


def test_own_functions_are_whole_after_going_on(tmp_path):
    """A checkpoint cannot hold the user's neuron; the call that goes on brings it."""

    def wave(x, theta):
        return theta[0] * jnp.sin(theta[1:] @ x)

    rng = np.random.default_rng(0)
    data = wf.Dataset(rng.normal(size=(9, 2)), rng.normal(size=9))
    problem = wf.Problem(x=data, neuron=wf.CustomNeuron(wave, 3))
    start = wf.init(problem).sample(jax.random.key(0), 4)
    call = {
        "dynamics": wf.GradientDescent(wf.Risk(problem), 0.1),
        "state": start,
        "ts": [0.0, 0.5, 1.0],
        "checkpoint": tmp_path,
        "observe": {"f": lambda t, state: state(data.x)},
    }
    with ctrl_c(2):
        assert len(wf.evolve(**call).rows) == 1
    for _ in range(2):  # going on, and finding it finished
        run = wf.evolve(**call)
        assert run.status == "ok"
        for state, seen in zip(run.states, run["f"], strict=True):
            assert np.array_equal(state(data.x), seen)


def test_ctrl_c_in_a_save_loses_nothing(whole, pieces, monkeypatch, tmp_path):
    """In each write of every save in turn; the run comes back, and the folder stays whole."""
    pieces(1000)
    case, fsync = CASES["Langevin"], os.fsync
    # Two saved times and the end: four files, five with the manifest before, four, and two fsyncs a file.
    for at in range(2 * (4 + 5 + 4)):
        path, numbers = tmp_path / str(at), itertools.count()
        path.mkdir()  # before the run begins there is nothing to lose, and Ctrl-C is just that

        def stopping(descriptor, numbers=numbers, at=at):
            if next(numbers) == at:
                raise KeyboardInterrupt
            return fsync(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", stopping)
            run = wf.evolve(**case.call(2), checkpoint=wf.Checkpoint(path, every=0.0))
        assert next(numbers) > at  # it came
        # In the save of the last saved time it comes too late to stop anything.
        assert run.status == ("ok" if 8 <= at < 18 else "interrupted")
        assert_begins(run, whole(case, 2))
        if folder.exists(path):
            assert_begins(wf.load(path), whole(case, 2))
        assert not list(path.glob("*.tmp"))
        assert_same_bits(wf.evolve(**case.call(2), checkpoint=path), whole(case, 2))


def test_a_second_ctrl_c_loses_nothing(whole, monkeypatch, tmp_path):
    """The first one stops the run, the second one its last save: the rows come back all the same."""
    case = CASES["Langevin"]

    def stopping(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_module.Ledger, "write", stopping)
    with ctrl_c(4):
        run = wf.evolve(**case.call(), checkpoint=tmp_path)
    assert run.status == "interrupted" and "in the last save" in run.message
    assert len(run.rows) >= 1
    assert_begins(run, whole(case))


# --- when it goes wrong --------------------------------------------------------------------------


def suggested(message):
    return float(re.search(r"Try step = (\S+)\.$", message)[1])


def relu_problem(seed):
    rng = np.random.default_rng(seed)
    data = wf.Dataset(rng.normal(size=(12, 3)), rng.normal(size=12))
    problem = wf.Problem(x=data, neuron=wf.Neuron("relu"))
    return wf.Risk(problem), wf.init(problem).sample(jax.random.key(seed), 8)


def assert_stable(dynamics, start):
    """The risk falls by a third or more (SGD hovers above the minimum) and nowhere doubles; an
    unstable step multiplies it by orders of magnitude within this time."""
    run = wf.evolve(dynamics, start, np.linspace(0.0, 30.0, 31))
    assert run.status == "ok"
    assert run["risk"][-1] < 0.67 * run["risk"][0] and run["risk"].max() < 2 * run["risk"][0]


DESCENTS = {"GradientDescent": wf.GradientDescent, "SGD": lambda risk, step: wf.SGD(risk, step, batch=4)}


@pytest.mark.parametrize("kind", DESCENTS.values(), ids=DESCENTS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_step_that_is_too_large_is_told(kind, seed, monkeypatch, tmp_path):
    risk, start = relu_problem(seed)
    ts = np.arange(40) * 30.0
    call = {"dynamics": kind(risk, 30.0), "state": start, "ts": ts, "checkpoint": tmp_path}
    with pytest.warns(UserWarning, match="The run diverged"):
        run = wf.evolve(**call)
    assert run.status == "diverged"
    assert "step = 30 is too large" in run.message
    assert 1 <= len(run.rows) < 40 and np.isfinite(run["risk"]).all()
    assert np.isfinite(run.final.theta).all()
    assert_same_bits(wf.load(tmp_path), run)
    assert_stable(kind(risk, suggested(run.message)), start)
    # To try again would end in the same way: nothing is computed.
    monkeypatch.setattr(loop._Loop, "run", lambda *args: pytest.fail("work was done"))
    with pytest.warns(UserWarning, match="The run diverged"):
        assert_same_bits(wf.evolve(**call), run)


def test_the_suggested_step_is_stable_where_curvature_grows():
    risk, start = relu_problem(0)
    with pytest.warns(UserWarning, match="The run diverged"):
        run = wf.evolve(wf.GradientDescent(risk, 30.0), start, np.arange(40) * 30.0)
    assert_stable(wf.GradientDescent(risk, suggested(run.message)), start)


def test_a_run_that_diverges_before_its_first_time(tmp_path):
    risk, start = relu_problem(0)
    with pytest.warns(UserWarning, match="The run diverged"):
        run = wf.evolve(wf.GradientDescent(risk, 30.0), start, [3000.0], checkpoint=tmp_path)
    assert (run.status, len(run.rows)) == ("diverged", 0)
    assert np.array_equal(run.final.theta, start.theta)
    assert_same_bits(wf.load(tmp_path), run)


def test_a_flow_that_stalls(monkeypatch, tmp_path):
    case = CASES["GradientFlow"]
    call = case.call() | {"checkpoint": tmp_path}
    flow = call["dynamics"]
    call["dynamics"] = wf.GradientFlow(flow.functional, rtol=flow.rtol, max_steps=3)
    with pytest.warns(UserWarning, match="The run stalled"):
        run = wf.evolve(**call)
    assert run.status == "stalled" and "a larger max_steps" in run.message
    assert len(run.rows) == 1 and run.info["steps"] + run.info["rejected"] == 3
    assert_same_bits(wf.load(tmp_path), run)
    monkeypatch.setattr(loop._Loop, "run", lambda *args: pytest.fail("work was done"))
    with pytest.warns(UserWarning, match="The run stalled"):
        assert_same_bits(wf.evolve(**call), run)


def test_what_cannot_be_told_in_json_does_not_end_the_run(monkeypatch, tmp_path):
    """An error estimate may be inf, or a number of NumPy's."""
    told = {"expectation_error": np.float32(np.inf), "table": np.arange(3)}
    monkeypatch.setattr(wf.Risk, "info", lambda self, state: told)
    run = wf.evolve(**small(), checkpoint=tmp_path)
    assert run.status == "ok"
    assert wf.load(tmp_path).info["expectation_error"] == np.inf
    assert wf.load(tmp_path).info["table"] == [0, 1, 2]


# --- the bar --------------------------------------------------------------------------------------


def test_the_bar_tells_the_time_left(monkeypatch, capsys):
    """Of a run that goes on at t = 5 of 10: what is left is judged by this sitting alone."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.bar("SGD", 5.0, 10.0, True) as update:
        now[0] += 2.0
        update(6.0, np.array([0.25, 0.75]))
        now[0] += 0.05
        update(6.1)  # too soon to be shown
        now[0] += 8.0
        update(10.0, 0.125)
    shown = [" ".join(line.split()) for line in capsys.readouterr().err.strip().split("\r")]
    assert shown == [
        "SGD ██████████████·········· 60% t = 6 of 10 risk 0.5 0:08 left",
        "SGD ████████████████████████ 100% t = 10 of 10 risk 0.125 0:10",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar_of_a_part(monkeypatch, capsys, terminal):
    """Half of a part took 40 s, and after it comes another of three times its length: 40 + 3·80 s are left.
    Its bar goes in the end; without a terminal it is a line every half minute."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: terminal, raising=False)
    with progress.bar("flow", 0.0, 10.0, progress.Part("level 1", after=3.0)) as update:
        for seconds in (10.0, 40.0):
            now[0] = seconds
            update(5.0 * seconds / 40, 0.25)
        update(10.0, 0.25)
    out = capsys.readouterr().err
    assert "level 1 ████████████············  50%  t = 5 of 10  risk 0.25  4:40 left" in out
    assert out.endswith("\r" if terminal else "left\n") and out.count("\n") == (0 if terminal else 1)


def test_the_bar_is_for_terminals(capsys):
    wf.evolve(**small())
    assert capsys.readouterr().err == ""
    wf.evolve(**small(), progress=True)
    assert "GradientDescent" in capsys.readouterr().err


# --- observers -----------------------------------------------------------------------------------


def test_observers_are_checked():
    def one(t, state):
        return 1.0

    bad = {
        "Two observers are called 'one'": [one, one],
        "must be a function of": {"x": 3},
        "The name 'risk' is taken": {"risk": one},
        "Observers have names": {3: one},
    }
    for message, observe in bad.items():
        with pytest.raises(ValueError, match=message):
            wf.evolve(**small(observe=observe))
    assert wf.evolve(**small(observe=one)).keys() == ["risk", "fresh_risk", "fresh_risk_error", "one"]


def test_an_observer_that_changes_its_shape_is_told():
    with pytest.raises(
        ValueError, match=r"'grows' returned an array of shape \(2,\) at t = 0\.5, but \(1,\)"
    ):
        wf.evolve(**small(observe={"grows": lambda t, state: np.ones(1 if t == 0 else 2)}))


def test_observers_by_the_names_of_the_manifest_are_kept(tmp_path):
    observe = {name: lambda t, state: t for name in ("file", "sha256")}
    run = wf.evolve(**small(observe=observe), checkpoint=tmp_path)
    assert_same_bits(wf.load(tmp_path), run)
    assert np.array_equal(run["file"], run.t)


# --- randomness ----------------------------------------------------------------------------------


def test_saved_times_do_not_change_a_flow(whole):
    """Steps do not depend on saved times, and a state between two steps is interpolated."""
    case = CASES["GradientFlow"]
    few, many = whole(case, 5), whole(case, 41)
    assert np.array_equal(few.t, many.t[::10])
    for name in few:
        assert np.array_equal(few[name], many[name][::10])
    assert np.array_equal(few.final.theta, many.final.theta)
    assert few.info["steps"] == many.info["steps"] > 20


def recompiled(call, why):
    """The same run, but code compiled before is not used again: another name is another constant."""
    return call | {"dynamics": replace(call["dynamics"], name=why)}


STOCHASTIC = ["SGD-law", "SGD-law-many-passes", "SGD-data", "SGD-data-one-pass", "Adam"]


@pytest.mark.parametrize("name", STOCHASTIC)
def test_draws_do_not_depend_on_how_many_are_made_ahead(name):
    drawn, steps = CASES[name].make().batches, jnp.arange(20)
    draw = jax.jit(lambda steps: drawn.draw(jax.random.key(9), steps))
    together = draw(steps)
    for k in steps:
        alone = draw(k[None])
        for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            assert np.array_equal(a[0], b[k])
    assert len(np.unique(together.x[:, 0], axis=0)) > 5  # and they are draws: steps differ


@pytest.mark.parametrize("name", STOCHASTIC)
def test_runs_do_not_depend_on_how_many_are_made_ahead(name, whole, monkeypatch):
    expected, call = whole(CASES[name]), CASES[name].call()
    before = call["dynamics"].batches.block
    monkeypatch.setattr(batches, "_AHEAD", 1)
    assert call["dynamics"].batches.block < before
    assert_same_bits(wf.evolve(**recompiled(call, "ahead")), expected)


@pytest.mark.parametrize("name", [*STOCHASTIC, "Langevin"])
def test_draws_do_not_depend_on_the_chunks_of_data(name, whole, monkeypatch):
    """Another order of summation and nothing else: other draws would differ in the first digit."""
    used = []
    monkeypatch.setattr(engine, "chunk_rows", lambda *sizes: used.append(sizes) or 1)
    run = wf.evolve(**recompiled(CASES[name].call(), "chunks"))
    assert used
    # 50 steps or so, each rounding in the 16th digit; errors grow by little over t <= 1.2
    assert np.allclose(run.final.theta, whole(CASES[name]).final.theta, rtol=1e-12, atol=1e-13)


def test_widths_are_nested():
    """Particle j is a function of (key, j): a narrow network is the beginning of a wide one."""
    problem = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("tanh", bias=True))
    law, key = wf.init(problem, w=wf.laws.Uniform(), b=wf.laws.Normal(1.0, 2.0)), jax.random.key(0)
    narrow, wide = law.sample(key, 30), law.sample(key, 300)
    assert np.array_equal(narrow.theta, wide.theta[:30])
    assert not np.array_equal(narrow.theta, law.sample(jax.random.key(2), 30).theta)


def test_a_run_does_not_draw_what_its_start_has_drawn():
    """One key for both, as in the first example of the documentation: noise is no copy of the start."""
    key = jax.random.key(0)
    problem = wf.Problem(x=wf.Gaussian(4), target=wf.single_index("erf"), neuron=wf.Neuron("tanh"))
    start = wf.init(problem).sample(key, 6)
    flat = 0.0 * wf.Risk(problem, wf.Sample(4))
    noise = wf.evolve(wf.Langevin(flat, 0.5, beta=1.0), start, np.arange(7) * 0.5, key=key)
    moves = np.diff([state.theta for state in noise.states], axis=0)
    drawn = np.asarray(start.theta)[:, 1:] * 2.0  # w ~ N(0, I/4), so this is N(0, I) as `moves` is
    for step in moves:
        for w in drawn:
            assert not np.isclose(step.ravel()[:4], w, atol=1e-6).any()
    assert abs(moves.std() - 1.0) < 0.2  # 180 normal draws: the standard deviation is known to 5 %
