"""A limit with a checkpoint: stopped at any level, it goes on to the same bits; finished, it is read back."""

import os
import signal

import numpy as np
import pytest

import wideflow as wf
from store.cases import assert_same_bits, limit_call
from wideflow.mean_field import solver
from wideflow.store import folder


@pytest.fixture(scope="module")
def call():
    return limit_call() | {"tol": 0.1, "probes": 4}


@pytest.fixture(scope="module")
def undisturbed(call):
    return wf.limit(**call)


def stopped_at(patch, number, solutions):
    """A real Ctrl-C before the solution of this number; returns how many were begun."""
    evolve = solver.evolve

    def counted(*args, **kwargs):
        solutions.append(kwargs["checkpoint"])
        if len(solutions) == number + 1:
            os.kill(os.getpid(), signal.SIGINT)
        return evolve(*args, **kwargs)

    patch.setattr(solver, "evolve", counted)


def test_an_interrupted_limit_is_the_best_level_and_goes_on(call, undisturbed, monkeypatch, tmp_path, capfd):
    kept = call | {"checkpoint": tmp_path}
    total, begun = 0, []
    for number in (1, 3, 1, 1):  # each goes on from the solutions of those before, which it asks for again
        solutions: list = []
        with monkeypatch.context() as patch:
            stopped_at(patch, total + number, solutions)
            run = wf.limit(**kept)
        total, begun = total + number, [*begun, len(solutions)]
        if run.status == "ok":
            break
        assert run.status == "interrupted" and run.message in capfd.readouterr().err
        assert "Stopped by hand" in run.message and "The limit is known" in run.message
        assert np.array_equal(run.t, call["ts"]) and np.isfinite(run["risk"]).all()
        error = run.info["error"]
        assert np.isinf(error) or np.max(np.abs(run["risk"] - undisturbed["risk"])) < error + 0.1
        assert_same_bits(wf.load(tmp_path), run)
    again = wf.limit(**kept)
    assert len(begun) >= 3  # it was stopped at several levels
    assert_same_bits(again, undisturbed)
    assert again.info["error"] == undisturbed.info["error"]
    assert again.info["resolution"] == undisturbed.info["resolution"]
    assert not (tmp_path / "levels").exists()


def test_a_finished_limit_is_not_solved_again(call, undisturbed, monkeypatch, tmp_path):
    assert_same_bits(wf.limit(**call, checkpoint=tmp_path), undisturbed)
    monkeypatch.setattr(solver, "evolve", lambda *args, **kwargs: pytest.fail("work was done"))
    assert_same_bits(wf.limit(**call, checkpoint=tmp_path), undisturbed)
    for other, part in [({"tol": 0.09}, "tolerance"), ({"alpha": 2.0}, "alpha"), ({"ts": [1.0]}, "times")]:
        with pytest.raises(ValueError, match=f"holds another run: other {part}"):
            wf.limit(**call | other, checkpoint=tmp_path)
    assert folder.exists(tmp_path)
