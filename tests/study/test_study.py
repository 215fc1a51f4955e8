"""A study in its folder: what is there is not done again, what is another's is left alone."""

import json
import os
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from store.cases import assert_same_bits
from study.specs import SMALL, spec, study
from wideflow.run import load
from wideflow.spec.reading import read
from wideflow.study import study as study_module
from wideflow.study.folder import FolderError, StudyFolder, write_text
from wideflow.study.perform import in_precision
from wideflow.study.study import conduct, reopened

TWO = ["dynamics.gd.seeds=2", "observe={kernel=4,test=8,particles=3}"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A small study, done once."""
    return conduct(study(*TWO), StudyFolder(tmp_path_factory.mktemp("done") / "study"))


@pytest.fixture
def place(done, tmp_path):
    """A copy of its folder that a test may spoil."""
    shutil.copytree(done.folder.path, tmp_path / "study")
    return StudyFolder(tmp_path / "study")


def same_runs(one, other):
    assert list(one) == list(other)
    for slug in one:
        assert_same_bits(one[slug], other[slug])


def test_what_is_in_the_folder(done):
    path = done.folder.path
    assert sorted(p.name for p in path.iterdir()) == ["results.json", "runs", "spec.toml"]
    assert sorted(p.name for p in (path / "runs").iterdir()) == ["gd-seed-0", "gd-seed-1"]
    assert read((path / "spec.toml").read_text("utf-8")) == spec(*TWO)
    for case in done.study.cases:
        run = load(done.folder.run(case))
        assert set(run.keys()) >= {"risk", "kernel movement", "weight movement", "f", "cloud", "feature"}
        np.testing.assert_allclose(run.t, [0, 0.5, 1], rtol=1e-15)
        assert run["f"].shape == (3, 8) and run["cloud"].shape == (3, 3, 3)


def test_results_are_plain_numbers_of_the_runs(done):
    """Strict JSON; means and standard errors over the two seeds by hand."""
    text = (done.folder.path / "results.json").read_text("utf-8")
    found = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert found == done.results
    (group,) = found["groups"]
    for name in ("risk", "kernel movement", "weight movement"):
        first, second = (float(run[name][-1]) for run in done.runs.values())
        assert group[name]["value"] == pytest.approx((first + second) / 2, rel=1e-14)
        assert group[name]["error"] == pytest.approx(abs(first - second) / 2, rel=1e-9)  # of two that cancel
    assert [run["status"] for run in found["runs"]] == ["ok", "ok"]
    assert found["status"] == "ok" and found["verdict"]
    assert {"seed", "precision", "versions", "seconds"} <= set(found["provenance"])


def test_a_study_is_read_back_as_it_was(done):
    again = reopened(done.folder)
    assert again.results == done.results
    same_runs(again.runs, done.runs)


def test_the_same_seeds_give_the_same_bits_anywhere(done, tmp_path):
    other = conduct(study(*TWO), StudyFolder(tmp_path / "elsewhere"))
    same_runs(other.runs, done.runs)


def test_runs_that_are_there_are_not_done_again(place, done, monkeypatch):
    """One run is lost and the results: that one is done, the other is read."""
    os.remove(place.path / "results.json")
    shutil.rmtree(place.path / "runs" / "gd-seed-1")
    before = {p: p.stat().st_mtime_ns for p in (place.path / "runs" / "gd-seed-0").iterdir()}
    again = conduct(study(*TWO), place)
    same_runs(again.runs, done.runs)
    assert before == {p: p.stat().st_mtime_ns for p in (place.path / "runs" / "gd-seed-0").iterdir()}
    assert again.results["groups"] == done.results["groups"]


def test_a_finished_folder_takes_its_own_spec_alone(place):
    assert place.finished
    place.check(spec(*TWO), resume=False)
    place.check(spec(*TWO), resume=True)
    for resume in (False, True):
        with pytest.raises(FolderError, match="finished study of another spec"):
            place.check(spec(*TWO, "seed=1"), resume)


def test_an_unfinished_one_goes_on_only_when_asked(place):
    os.remove(place.path / "results.json")
    assert place.begun and not place.finished
    with pytest.raises(FolderError, match="--resume"):
        place.check(spec(*TWO), resume=False)
    place.check(spec(*TWO), resume=True)
    with pytest.raises(FolderError, match="unfinished study of another spec"):
        place.check(spec(*TWO, "seed=1"), resume=True)
    with pytest.raises(FolderError, match="unfinished study: run it again with --resume"):
        place.results()


def test_folders_of_others_are_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("mine")
    with pytest.raises(FolderError, match="is a file"):
        StudyFolder(tmp_path / "file").check(spec(), resume=True)
    with pytest.raises(FolderError, match="holds other things"):
        StudyFolder(tmp_path / "letters").check(spec(), resume=True)
    with pytest.raises(FolderError, match="holds no study"):
        StudyFolder(tmp_path / "letters").results()
    for fresh in ("new", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        StudyFolder(tmp_path / fresh).check(spec(), resume=False)


def test_a_writer_killed_before_the_first_file_leaves_a_folder_that_can_be_used(tmp_path):
    (tmp_path / "spec.toml.4242.tmp").write_text("half a sp")
    StudyFolder(tmp_path).check(spec(), resume=False)


def test_damaged_results_are_told(place):
    (place.path / "results.json").write_text('{"kind": "stu')
    with pytest.raises(FolderError, match=r"results\.json is damaged"):
        place.results()


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "page.html"
    write_text(path, "first")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_text(path, "second")
    assert path.read_text() == "first"
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]


def test_one_process_at_a_time(place):
    from wideflow.store.folder import InUseError

    with place.held(), pytest.raises(InUseError, match="still going on"):
        conduct(study(*TWO), place)


def test_an_interrupted_run_stops_the_study_without_results(tmp_path, monkeypatch, done):
    """The second of two runs is interrupted: what was reached is kept, and the same call goes on."""
    place, real = StudyFolder(tmp_path / "study"), study_module.perform

    def stopped(made, case, path, **more):
        if case.seed == 0:
            return real(made, case, path, **more)
        raise KeyboardInterrupt

    monkeypatch.setattr(study_module, "perform", stopped)
    with pytest.raises(KeyboardInterrupt):
        conduct(study(*TWO), place)
    assert place.begun and not place.finished
    monkeypatch.setattr(study_module, "perform", real)
    same_runs(conduct(study(*TWO), place).runs, done.runs)
    assert place.finished


def test_precision_ends_with_the_study():
    """A study of single numbers does not change what comes after it."""
    assert jnp.ones(()).dtype == np.float64
    with in_precision(spec("precision=float32")):
        assert jnp.ones(()).dtype == np.float32
    assert jnp.ones(()).dtype == np.float64


def test_every_other_spec_is_another(tmp_path):
    """Also one that differs in a default that was not written."""
    place = StudyFolder(tmp_path)
    place.begin(spec())
    place.check(read(SMALL + "\n[observe]\nkernel = 64\n"), resume=True)
    with pytest.raises(FolderError, match="another spec"):
        place.check(spec("observe.kernel=65"), resume=True)
