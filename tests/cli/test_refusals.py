"""What the system refuses is a message and an exit code, never a traceback: real limits on the size of files,
and an output that is full."""

import contextlib
import errno
import fcntl
import os
import resource
import shutil
import subprocess
import sys
import warnings

import pytest
from typer.testing import CliRunner

from cli.specs import TINY
from study.specs import study
from wideflow.cli.app import app
from wideflow.experiments.base import Check, Outcome
from wideflow.experiments.catalogue import Experiment
from wideflow.figures import panels
from wideflow.store import folder
from wideflow.study import study as study_module
from wideflow.study.folder import OtherStudyError, StudyFolder
from wideflow.study.study import run_study

ONE = TINY.replace("seeds = 2", "seeds = 1")


def command(*args):
    done = CliRunner().invoke(app, list(map(str, args)), catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


@contextlib.contextmanager
def largest(size):
    """No file of this process may become larger than so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A finished study of one run, which was warned of something."""
    path = tmp_path_factory.mktemp("work")
    (path / "one.toml").write_text(ONE, "utf-8")
    performed = study_module._performed

    def warning(*args):
        for _ in range(2):
            warnings.warn("the mass\nat the edge is <large>", stacklevel=1)
        return performed(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "_performed", warning)
        code, _, error = command("run", path / "one.toml", "--out", path / "done")
    assert (code, error) == (0, "warning: the mass at the edge is <large>\n")  # once, in one line
    return path


@pytest.fixture
def copy(work, tmp_path):
    shutil.copytree(work / "done", tmp_path / "copy")
    return tmp_path / "copy"


def contents(path):
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_warnings_are_in_the_results_and_the_report(work):
    done = study_module.reopened(StudyFolder(work / "done"))
    assert [run["warnings"] for run in done.results["runs"]] == [["the mass at the edge is <large>"]]
    assert "the mass at the edge is &lt;large&gt;" in done.folder.report.read_text("utf-8")
    assert not (work / "done" / "warnings.json").exists()


def test_warnings_of_a_run_survive_a_stop(tmp_path, monkeypatch):
    """Warned in the run, then no room for the results; the run is not done again, the warning is kept."""
    place, performed = StudyFolder(tmp_path / "study"), study_module._performed

    def warning(*args):
        warnings.warn("a doubt", stacklevel=1)
        return performed(*args)

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, pytest.warns(UserWarning, match="a doubt"):
        patch.setattr(study_module, "_performed", warning)
        patch.setattr(StudyFolder, "finish", full)
        with pytest.raises(OSError, match="No space"):
            run_study(study(), place)
    assert run_study(study(), place).results["runs"][0]["warnings"] == ["a doubt"]
    assert not (place.path / "warnings.json").exists()


def test_a_disk_without_room_for_anything(work, tmp_path):
    """Nothing was computed: code 2."""
    with largest(10):
        for args in (
            ("run", work / "one.toml", "--out", tmp_path / "run"),
            ("presets", "own-data", "--copy", tmp_path / "copied"),
        ):
            code, out, error = command(*args)
            assert (code, out) == (2, "") and "cannot be written: File too large" in error, args
    left = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert left == []  # also no half of a file
    assert command("run", work / "one.toml", "--out", tmp_path / "run")[0] == 0


@pytest.mark.parametrize("long", ["a" * 10**5, "a/" * 50_000], ids=["one name", "many folders"])
def test_a_place_that_no_file_can_have_is_not_repeated_whole(work, long):
    for args in (
        ("run", long),
        ("run", work / "one.toml", "--out", long),
        ("presets", "own-data", "--copy", long),
        ("report", long),
        ("compare", long),
        ("compare", work / "done", "--out", long),
        ("reproduce", "abc-table", "--out", long),
    ):
        code, out, error = command(*args)
        assert (code, out) == (2, "") and 20 < len(error) < 1000, args[0]


def test_a_report_without_room_leaves_the_old_one(copy):
    before = contents(copy)
    with largest(3000):
        code, out, error = command("report", copy)
    assert (code, out) == (4, "") and f"wideflow report {copy}" in error
    assert contents(copy) == before
    with largest(3000):
        code, out, error = command("compare", copy, copy, "--out", copy.parent / "page.html")
    assert (code, out) == (4, "") and "page.html cannot be written: File too large" in error
    assert not (copy.parent / "page.html").exists()


def test_a_claim_that_cannot_be_saved(tmp_path, monkeypatch):
    def loaded(experiment, reduced=False):
        with panels(1) as (figure, (axis,)):
            axis.plot([1, 2])
        return lambda say: Outcome((Check("a slope", "1", 1.0, 0.1, 0.5, 1.5),), figure)

    monkeypatch.setattr(Experiment, "load", loaded)
    with largest(0):
        code, _, error = command("reproduce", "abc-table", "--out", tmp_path / "none")
    assert code == 2 and "Nothing was computed" in error
    with largest(1000):
        code, out, error = command("reproduce", "abc-table", "--out", tmp_path / "out")
    assert (code, out) == (4, "") and "abc-table was performed (PASS), but not saved: File too large" in error
    code, out, _ = command("reproduce", "abc-table", "--out", tmp_path / "out")
    assert code == 0 and "1 of 1 claims hold" in out
    record = tmp_path / "out" / "abc-table.json"
    record.write_text(record.read_text().replace("1.0", "9.0", 1))
    code, out, error = command("reproduce", "abc-table", "--out", tmp_path / "out")
    assert code == 0 and "(done before)" not in out
    assert error.startswith("warning: ") and "abc-table.json is damaged" in error
    record.unlink()
    record.mkdir()
    code, out, error = command("reproduce", "abc-table", "--out", tmp_path / "out")
    assert code == 2 and "abc-table.json" in error


@pytest.mark.parametrize("args", [["presets"], ["show", "--schema"], ["--version"], ["reproduce", "--list"]])
def test_an_output_that_is_full(args):
    start = "import sys; sys.argv[0] = 'wideflow'; from wideflow.cli.app import main; main()"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", start, *args], stdout=full, stderr=-1, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "Standard output cannot be written or read: No space left on device.\n",
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed(closed, tmp_path):
    """As under some schedulers: the same files, and none of them with the number of a stream."""
    start = "import sys; sys.argv[0] = 'wideflow'; from wideflow.cli.app import main; main()"
    line = f'exec "$0" -c "$1" presets own-data --copy "$2" {closed}'
    done = subprocess.run(["sh", "-c", line, sys.executable, start, tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert {p.suffix for p in tmp_path.iterdir()} == {".toml", ".csv"}


def test_an_output_that_is_full_after_a_report(copy, monkeypatch):
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as left:
            app(["report", str(copy)])
    assert left.value.code == 4


@pytest.mark.parametrize("spoil", ["missing", "damaged", "a folder of figures that is a link"])
def test_figures_and_report_are_made_anew(copy, spoil, tmp_path):
    figures = copy / "figures"
    if spoil == "missing":
        shutil.rmtree(figures)
        (copy / "report.html").unlink()
    elif spoil == "damaged":
        for path in figures.iterdir():
            path.write_bytes(b"junk")
        (copy / "report.html").write_bytes(b"\0")
    else:
        (tmp_path / "elsewhere").mkdir()
        shutil.rmtree(figures)
        figures.symlink_to(tmp_path / "elsewhere")
        code, out, error = command("report", copy)
        assert (code, out) == (2, "") and f"{figures} is a link" in error
        assert not list((tmp_path / "elsewhere").iterdir())
        return
    assert command("report", copy)[0] == 0
    assert (copy / "report.html").read_text("utf-8").startswith("<!")
    assert all(p.read_bytes()[:4] in (b"\x89PNG", b"<?xm") for p in figures.iterdir())


@pytest.mark.parametrize("file", ["results.json", "spec.toml", "runs/gd/manifest.json"])
def test_a_folder_or_a_pipe_in_place_of_a_file(work, copy, file):
    for make in (os.mkdir, os.mkfifo):
        (copy / file).unlink() if not (copy / file).is_dir() else (copy / file).rmdir()
        make(copy / file)
        for args in (
            ["run", work / "one.toml", "--out", copy],
            ["report", copy],
            ["compare", copy, work / "done", "--out", copy.parent / "page.html"],
        ):
            code, out, error = command(*args)
            assert (code, out) == (2, "") and file.rpartition("/")[2] in error, args


def test_two_writers_do_not_mix(tmp_path):
    """Both have looked at the empty folder before one of them has the lock."""
    place, mine, other = StudyFolder(tmp_path / "study"), study(), study("seed=1")
    for each in (mine, other):
        place.check(each.spec, resume=False)
    run_study(mine, place)
    before = contents(place.path)
    with pytest.raises(OtherStudyError, match="another spec"):
        run_study(other, place)
    again = run_study(mine, place)  # nothing is written once it is finished
    assert contents(place.path) == before and again.results["status"] == "ok"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told_once(tmp_path, monkeypatch, number):
    def none(*args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", none)
    monkeypatch.setattr(folder, "_UNLOCKED", set())
    with pytest.warns(UserWarning, match="has no locks") as told:
        for name in "abc":
            with folder.lock(tmp_path / name):
                pass
    assert len(told) == 1
