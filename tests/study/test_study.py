"""A study in its folder: what is there is not done again, what is another's is left alone."""

import errno
import json
import os
import shutil

import jax.numpy as jnp
import numpy as np
import pytest

from store.cases import assert_same_bits
from study.specs import SMALL, spec, study
from wideflow.observables import label
from wideflow.salvage import load
from wideflow.spec.reading import read
from wideflow.store import folder, retrying
from wideflow.study import study as study_module
from wideflow.study.folder import FolderError, OtherStudyError, StudyFolder, UnsavedError, write_text
from wideflow.study.perform import in_precision
from wideflow.study.study import reopened, run_study

TWO = ["dynamics.gd.seeds=2", "observe={kernel=4,test=8,particles=3}"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A small study, done once."""
    return run_study(study(*TWO), StudyFolder(tmp_path_factory.mktemp("done") / "study"))


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
        assert set(run.keys()) >= {"risk", "kernel_movement", "weight_movement", "f", "cloud", "feature"}
        np.testing.assert_allclose(run.t, [0, 0.5, 1], rtol=1e-15)
        assert run["f"].shape == (3, 8) and run["cloud"].shape == (3, 3, 3)


def test_results_are_plain_numbers_of_the_runs(done):
    """Strict JSON; means and standard errors over the two seeds by hand."""
    text = (done.folder.path / "results.json").read_text("utf-8")
    found = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert found == done.results
    (group,) = found["groups"]
    for name in ("risk", "kernel_movement", "weight_movement"):
        first, second = (float(run[name][-1]) for run in done.runs.values())
        measured = group[label(name)]
        assert measured["value"] == pytest.approx((first + second) / 2, rel=1e-14)
        assert measured["error"] == pytest.approx(abs(first - second) / 2, rel=1e-9)  # of two that cancel
    assert [run["status"] for run in found["runs"]] == ["ok", "ok"]
    assert found["status"] == "ok" and found["verdict"]
    assert {"seed", "precision", "versions", "seconds"} <= set(found["provenance"])


def test_a_study_is_read_back_as_it_was(done):
    again = reopened(done.folder)
    assert again.results == done.results
    same_runs(again.runs, done.runs)


def test_the_same_seeds_give_the_same_bits_anywhere(done, tmp_path):
    other = run_study(study(*TWO), StudyFolder(tmp_path / "elsewhere"))
    same_runs(other.runs, done.runs)


def test_runs_that_are_there_are_not_done_again(place, done, monkeypatch):
    """One run is lost and the results: that one is done, the other is read."""
    os.remove(place.path / "results.json")
    shutil.rmtree(place.path / "runs" / "gd-seed-1")
    before = {p: p.stat().st_mtime_ns for p in (place.path / "runs" / "gd-seed-0").iterdir()}
    again = run_study(study(*TWO), place)
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


JUNK = ['{"kind": "stu', "", "null", "[]", "{}", '{"kind": "study", "format": 3}', "\x00", "[" * 100_000]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_damaged_results_are_told(place, junk):
    (place.path / "results.json").write_text(junk)
    with pytest.raises(FolderError, match=r"results\.json is damaged.*--resume"):
        reopened(place)


def test_every_altered_digit_of_the_results_is_found(place):
    """One digit at a time, of all numbers; a file laid out in another way is the same file."""
    path = place.path / "results.json"
    text = path.read_text("utf-8")
    for i in (i for i, letter in enumerate(text) if letter.isdigit()):
        altered = f"{text[:i]}{(int(text[i]) + 1) % 10}{text[i + 1 :]}"
        if json.loads(altered) == json.loads(text):
            continue  # the seventeenth digit of a double
        path.write_text(altered, "utf-8")
        with pytest.raises(FolderError, match=r"results\.json is damaged"):
            place.results()
    path.write_text(json.dumps(json.loads(text)), "utf-8")
    assert place.results() == json.loads(text)


def test_results_belong_to_their_runs_and_their_spec(place, tmp_path):
    """Each file is whole in itself, but of another study."""
    other = run_study(study(*TWO, "seed=1"), StudyFolder(tmp_path / "other"))
    theirs, ours = (p.path / "runs" / s for p, s in ((other.folder, "gd-seed-1"), (place, "gd-seed-0")))
    kept = tmp_path / "kept"
    shutil.move(ours, kept)
    shutil.copytree(theirs, ours)
    with pytest.raises(FolderError, match=r"gd-seed-0/manifest\.json is not the run that .*results\.json"):
        reopened(place)
    shutil.rmtree(ours)
    with pytest.raises(FileNotFoundError, match="gd-seed-0 holds no saved run"):
        reopened(place)
    shutil.move(kept, ours)
    (place.path / "spec.toml").write_text((other.folder.path / "spec.toml").read_text("utf-8"), "utf-8")
    with pytest.raises(FolderError, match=r"spec\.toml was changed"):
        reopened(place)
    for junk in (b"[[[", b"\xff\xfe\x00"):
        (place.path / "spec.toml").write_bytes(junk)
        for opened in (lambda: reopened(place), lambda: place.check(spec(*TWO), resume=True)):
            with pytest.raises(FolderError, match=r"spec\.toml is damaged"):
                opened()


def refuses(monkeypatch, number, name):
    """Let no file be written whose path has `name` in it."""
    write = folder.write

    def refuse(path, content):
        if name in str(path):
            raise OSError(number, os.strerror(number))
        write(path, content)

    monkeypatch.setattr(folder, "write", refuse)
    monkeypatch.setattr(retrying, "DELAYS", (0.0,))


REFUSED = {
    "gd-seed-0/rows": errno.EFBIG,
    "gd-seed-1/final": errno.ENOSPC,
    "gd-seed-0/manifest.json": errno.EDQUOT,
    "results.json": errno.ENOSPC,
}


@pytest.mark.parametrize("name, number", REFUSED.items())
@pytest.mark.filterwarnings("ignore:The checkpoint in")
def test_a_study_is_finished_when_all_of_it_is_on_disk(done, tmp_path, monkeypatch, name, number):
    """Whatever file the disk refuses; with room again the same study is completed, to the same bits."""
    place = StudyFolder(tmp_path / "study")
    with monkeypatch.context() as patch:
        refuses(patch, number, name)
        words = f"{name.partition('/')[0]}.*{os.strerror(number)}" if "/" in name else os.strerror(number)
        with pytest.raises(OSError, match=words) as told:
            run_study(study(*TWO), place)
        assert "in memory" not in str(told.value)  # a command has nothing left to save elsewhere
    assert place.begun and not place.finished
    again = run_study(study(*TWO), place)
    same_runs(again.runs, done.runs)
    assert again.results["groups"] == done.results["groups"]
    same_runs(reopened(place).runs, done.runs)


LIMIT = ["problem.reduced=true", 'dynamics=[{name="limit",method="limit",tol=0.1}]', "observe.kernel=0"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The checkpoint in")
def test_a_limit_that_cannot_be_saved_does_not_finish_a_study(tmp_path, monkeypatch):
    place = StudyFolder(tmp_path / "study")
    with monkeypatch.context() as patch:
        refuses(patch, errno.ENOSPC, "limit/final")
        with pytest.raises(UnsavedError, match=r"limit was computed, but could not be saved.*No space left"):
            run_study(study(*LIMIT), place)
    assert not place.finished
    assert run_study(study(*LIMIT), place).results["status"] == "ok"


def rows_of(path, factor=1.0):
    rows = factor * np.random.default_rng(0).normal(size=(9, 3))
    np.savetxt(path / "rows.csv", rows, delimiter=",", header="p,q,y", comments="")


def on_data(path):
    x = {"law": "dataset", "file": str(path / "rows.csv")}
    return study(folder=path, problem={"x": x, "neuron": "erf"}, risk={})


def test_other_data_under_a_finished_study_are_told(tmp_path):
    """The file is another one; the same numbers written in another way are the same data."""
    rows_of(tmp_path)
    place = StudyFolder(tmp_path / "study")
    first = run_study(on_data(tmp_path), place)
    text = (tmp_path / "rows.csv").read_text()
    (tmp_path / "rows.csv").write_text(text.replace("\n", "\r\n"))
    assert reopened(place).results == first.results
    rows_of(tmp_path, 1 + 1e-15)
    with pytest.raises(OtherStudyError, match="the study of other data"):
        reopened(place)


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

    with place.lock(), pytest.raises(InUseError, match="still going on"):
        run_study(study(*TWO), place)


def test_an_interrupted_run_stops_the_study_without_results(tmp_path, monkeypatch, done):
    """Two seeds that go together are stopped once their runs are on the disk, all but the last: what was
    reached is kept, and the same call goes on."""
    place, real = StudyFolder(tmp_path / "study"), study_module.perform_together

    def stopped(made, cases, paths, path, **more):
        real(made, cases, paths, path, **more)
        shutil.rmtree(paths[-1])
        raise KeyboardInterrupt

    monkeypatch.setattr(study_module, "perform_together", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_study(study(*TWO), place)
    assert place.begun and not place.finished
    monkeypatch.setattr(study_module, "perform_together", real)
    same_runs(run_study(study(*TWO), place).runs, done.runs)
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
