"""What the command answers, in this process: every verb with its options, and what it refuses."""

import json
import shutil
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

from cli.specs import TINY
from store.cases import assert_same_bits
from wellformed import well_formed
from wideflow import __version__, presets
from wideflow.cli import console
from wideflow.cli import run as run_module
from wideflow.cli.app import app
from wideflow.experiments import catalogue
from wideflow.salvage import load
from wideflow.spec.reading import read

DIVERGES = ["problem.neuron=square", "dynamics.gd.step=5", "times.end=500"]


def command(*args, text=None):
    """(exit code, standard output, standard error); an exception other than an exit is one here too."""
    done = CliRunner().invoke(app, list(map(str, args)), input=text, catch_exceptions=False)
    return done.exit_code, done.stdout, done.stderr


def changes(listed):
    return [word for change in listed for word in ("--set", change)]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a spec, and its study run once."""
    path = tmp_path_factory.mktemp("work")
    (path / "tiny.toml").write_text(TINY, "utf-8")
    code, out, error = command("run", path / "tiny.toml", "--out", path / "done")
    assert (code, out, error) == (0, f"{path / 'done' / 'report.html'}\n", "")
    return path


@pytest.fixture(scope="module")
def diverged(work):
    """The same with steps that are too large; code 3, and a report in any case."""
    code, out, error = command("run", work / "tiny.toml", *changes(DIVERGES), "--out", work / "diverged")
    assert (code, out) == (3, f"{work / 'diverged' / 'report.html'}\n")
    assert error.count("step = 5 is too large") == 2  # one line a seed, wherever one looks
    return work / "diverged"


def test_version_and_help():
    assert command("--version") == (0, f"wideflow {__version__}\n", "")
    code, out, _ = command("--help")
    assert code == 0
    for verb in ("run", "presets", "show", "report", "compare", "reproduce"):
        assert verb in out
        assert command(verb, "-h")[0] == 0
    assert command("rnu")[0] == 2


def test_a_finished_folder_is_left_as_it_is(work):
    files = lambda: {p: p.stat().st_mtime_ns for p in sorted((work / "done").rglob("*"))}
    before = files()
    for more in ([], ["--resume"]):
        code, out, error = command("run", work / "tiny.toml", "--out", work / "done", *more)
        assert (code, out) == (0, f"{work / 'done' / 'report.html'}\n")
        assert "nothing was done" in error
    assert files() == before


def test_a_missing_report_is_written_again_and_told(work, tmp_path):
    shutil.copytree(work / "done", tmp_path / "done")
    (tmp_path / "done" / "report.html").unlink()
    code, _, error = command("run", work / "tiny.toml", "--out", tmp_path / "done")
    assert code == 0 and "only the report was missing" in error
    assert (tmp_path / "done" / "report.html").is_file()


def test_json_is_one_document_and_nothing_else(work):
    code, out, error = command("run", work / "tiny.toml", "--out", work / "done", "--json")
    found = json.loads(out)
    assert code == 0 and "nothing was done" in error
    assert found["folder"] == str(work / "done") and found["report"].endswith("report.html")
    written = json.loads((work / "done" / "results.json").read_text("utf-8"))
    assert {k: v for k, v in found.items() if k not in ("folder", "report")} == written


def test_a_folder_is_not_taken_from_another(work, tmp_path):
    code, out, error = command("run", work / "tiny.toml", "--seed", 1, "--out", work / "done")
    assert (code, out) == (2, "") and "another spec" in error
    (tmp_path / "letter.txt").write_text("dear")
    code, out, error = command("run", work / "tiny.toml", "--out", tmp_path, "--json")
    assert code == 2 and "other things" in error
    assert json.loads(out)["status"] == "error" and json.loads(out)["folder"] == str(tmp_path)
    code, _, error = command("run", work / "tiny.toml", "--out", tmp_path / "letter.txt" / "inside")
    assert code == 2 and "cannot be written" in error


def test_where_results_go_if_nobody_says(work, tmp_path, monkeypatch):
    """out/NAME, and beside it where another spec lives there."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(work / "done", tmp_path / "out" / "tiny")
    assert command("run", work / "tiny.toml")[1] == "out/tiny/report.html\n"
    code, out, _ = command("run", work / "tiny.toml", "--seed", 3)
    assert (code, out) == (0, "out/tiny-2/report.html\n")
    assert read((tmp_path / "out" / "tiny-2" / "spec.toml").read_text("utf-8")).seed == 3
    # From standard input: the same numbers under another name.
    code, out, _ = command("run", "-", text=TINY)
    assert (code, out) == (0, "out/stdin/report.html\n")
    for name in ("gd-seed-0", "gd-seed-1"):
        ours, theirs = (load(p / "runs" / name) for p in (tmp_path / "out" / "stdin", work / "done"))
        assert_same_bits(ours, theirs)


def test_the_resolved_spec_gives_the_same_numbers(work, tmp_path):
    command("run", work / "done" / "spec.toml", "--out", tmp_path / "again")
    assert_same_bits(
        load(tmp_path / "again" / "runs" / "gd-seed-1"), load(work / "done" / "runs" / "gd-seed-1")
    )


def test_a_diverged_study_has_a_report_and_no_verdict(diverged):
    found = json.loads((diverged / "results.json").read_text("utf-8"))
    assert found["status"] == "diverged"
    assert all(group["verdict"] == "" and group["risk"] is None for group in found["groups"])
    assert "no verdict" in found["verdict"]
    assert all("step = 5 is too large" in run["message"] for run in found["runs"])
    page = (diverged / "report.html").read_text("utf-8")
    assert well_formed(page) and "step = 5 is too large" in page
    for args in (["report", diverged], ["run", work_spec(diverged), "--out", diverged]):
        code, out, error = command(*args, "--json")
        assert json.loads(out)["status"] == "diverged"
        assert ("nothing was done" in error) == (args[0] == "run")
        assert code == (3 if args[0] == "run" else 0)


def work_spec(folder):
    return folder / "spec.toml"


def test_a_start_that_is_not_finite_is_refused_in_words(work, tmp_path):
    args = ["run", work / "tiny.toml", "--set", "start.a=1e200", "--out", tmp_path / "huge"]
    code, _, error = command(*args)
    assert code in (2, 3) and "Traceback" not in error


def test_other_data_under_an_unfinished_run_are_refused(work, tmp_path):
    """The file that a spec names has changed since the run was begun."""
    rows = np.random.default_rng(0).normal(size=(9, 3))
    text = TINY.replace('x = { law = "gaussian", d = 4 }', 'x = { law = "dataset", file = "rows.csv" }')
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("target", "expect")))
    (tmp_path / "data.toml").write_text(text, "utf-8")
    save = lambda data: np.savetxt(tmp_path / "rows.csv", data, delimiter=",", header="p,q,y", comments="")
    args = ["run", tmp_path / "data.toml", "--out", tmp_path / "out"]
    save(rows)
    assert command(*args)[0] == 0
    (tmp_path / "out" / "results.json").unlink()
    code, out, error = command(*args)
    assert (code, out) == (2, "") and "--resume" in error  # nothing is done without being asked
    save(2 * rows)
    code, out, error = command(*args, "--resume")
    assert (code, out) == (2, "") and "other data" in error


def test_other_data_under_a_finished_study_are_refused(work, tmp_path, monkeypatch):
    """By `run` and by `report`; where no folder was named, the new data get one of their own."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(9, 3))
    text = TINY.replace('x = { law = "gaussian", d = 4 }', 'x = { law = "dataset", file = "rows.csv" }')
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("target", "expect")))
    (tmp_path / "data.toml").write_text(text, "utf-8")
    save = lambda data: np.savetxt(tmp_path / "rows.csv", data, delimiter=",", header="p,q,y", comments="")
    save(rows)
    assert command("run", "data.toml")[0] == 0
    save(2 * rows)
    for args in (["run", "data.toml", "--out", "out/data"], ["report", "out/data"], ["compare", "out/data"]):
        code, out, error = command(*args)
        assert (code, out) == (2, "") and "other data" in error and "out/data" in error
    code, out, _ = command("run", "data.toml")
    assert (code, out) == (0, "out/data-2/report.html\n")
    save(rows)
    code, out, error = command("run", "data.toml")
    assert (code, out) == (0, "out/data/report.html\n") and "nothing was done" in error


FILES = ["results.json", "spec.toml", "runs/gd-seed-1/manifest.json"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("junk", [b"", b"{]", b"\xff\xfe\x00\x01", b"null", b'{"a": 1e999}'], ids=range(5))
def test_junk_in_a_finished_folder_ends_with_2_and_the_files_name(work, tmp_path, file, junk):
    shutil.copytree(work / "done", tmp_path / "copy")
    (tmp_path / "copy" / file).write_bytes(junk)
    for args in (["run", work / "tiny.toml", "--out", tmp_path / "copy"], ["report", tmp_path / "copy"]):
        code, out, error = command(*args)
        assert (code, out) == (2, "") and file.rpartition("/")[2] in error and "Traceback" not in error


def test_a_digit_of_the_results_is_not_changed_unnoticed(work, tmp_path):
    shutil.copytree(work / "done", tmp_path / "copy")
    path = tmp_path / "copy" / "results.json"
    value = json.loads(path.read_text("utf-8"))["runs"][0]["risk"]
    path.write_text(path.read_text("utf-8").replace(repr(value), repr(value * 1.001)), "utf-8")
    for args in (["run", work / "tiny.toml", "--out", tmp_path / "copy"], ["report", tmp_path / "copy"]):
        code, out, error = command(*args)
        assert (code, out) == (2, "") and "results.json is damaged" in error
    path.unlink()  # what the message says
    before = (work / "done" / "results.json").read_text("utf-8")
    assert command("run", work / "tiny.toml", "--out", tmp_path / "copy", "--resume")[0] == 0
    assert json.loads(path.read_text("utf-8"))["groups"] == json.loads(before)["groups"]


def test_a_report_that_cannot_be_written_is_told(work, tmp_path, monkeypatch):
    shutil.copytree(work / "done", tmp_path / "copy")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("wideflow.report.page_of_study.write_report", full)
    code, out, error = command("report", tmp_path / "copy", "--json")
    assert code == 4 and json.loads(out)["status"] == "unsaved"
    assert "No space left on device" in error and f"wideflow report {tmp_path / 'copy'}" in error


SET = {
    "problem.x.d=7": lambda s: s.problem.x.d == 7,
    "problem.neuron.bias=true": lambda s: s.problem.neuron.bias,
    "problem.target.link=tanh": lambda s: s.problem.target.link.name == "tanh",
    "start.a=0.5": lambda s: s.start.a == 0.5,
    "start.w={law='uniform'}": lambda s: s.start.w.law == "uniform",
    "dynamics.gd.width=[4,8]": lambda s: s.dynamics[0].width == [4, 8],
    "dynamics.*.seeds=1": lambda s: s.dynamics[0].seeds == 1,
    "dynamics.0.alpha=sqrt(n)": lambda s: s.dynamics[0].alpha == ["sqrt(n)"],
    "risk.expectation.m=99": lambda s: s.risk.expectation.m == 99,
    "times.end=2": lambda s: s.times.end == 2,
    "observe.norms=['path_norm']": lambda s: s.observe.norms == ["path_norm"],
    "title=Other": lambda s: s.title == "Other",
    "seed=5": lambda s: s.seed == 5,
}


def test_set_reaches_every_kind_of_field(work):
    """All at once, and shown as they would be run."""
    code, out, _ = command("show", work / "tiny.toml", *changes(SET))
    assert code == 0
    spec = read(out)
    assert all(holds(spec) for holds in SET.values())


def test_show_is_the_spec_with_its_defaults_and_what_it_costs(work):
    code, out, error = command("show", work / "tiny.toml")
    assert (code, error) == (0, "")
    assert out.startswith((work / "done" / "spec.toml").read_text("utf-8").rstrip())
    table = [line for line in out.splitlines() if line.startswith("# ")]
    assert any("gd, seed 0" in line and "MB" in line for line in table)
    assert any(line.startswith("# all") for line in table)


def test_show_for_machines(work):
    code, out, error = command("show", "-", "--json", "--seed", 4, text=TINY)
    found = json.loads(out)
    assert (code, error) == (0, "")
    assert found["spec"]["seed"] == 4
    assert [c["run"] for c in found["cost"]] == ["gd, seed 4", "gd, seed 5"]
    assert all(c["seconds"] > 0 and c["bytes"] > 0 and c["steps"] == 10 for c in found["cost"])


def test_the_schema_is_printed():
    code, out, _ = command("show", "--schema")
    assert code == 0 and json.loads(out)["$schema"].startswith("https://json-schema.org/")
    assert command("show")[0] == 2


REFUSED = {
    "no file": (["run", "nowhere.toml"], "no file and no preset 'nowhere.toml'"),
    "a preset misspelt": (["show", "single-neurno"], "Did you mean 'single-neuron'?"),
    "a long name": (["run", "a" * 300], "cannot be read"),
    "a bad change": (["show", "single-neuron", "--set", "problem.x.dd=3"], "--set problem.x.dd=3"),
    "no change": (["show", "single-neuron", "--set", "problem.x.d"], "key=value"),
    "an objection to a change": (
        ["show", "single-neuron", "--set", "start.b=1.0"],
        "single-neuron.toml:19: start: The neuron has no bias",
    ),
    "a seed below 0": (["show", "single-neuron", "--seed", "-1"], "seed"),
    "a seed too large": (["show", "single-neuron", "--seed", "99999999999"], "--seed 99999999999"),
    "no study": (["report", "nowhere"], "nowhere holds no study"),
    "no study to compare": (["compare", "nowhere"], "nowhere holds no study"),
    "no preset": (["presets", "single-neurno"], "Did you mean 'single-neuron'?"),
    "no claim": (["reproduce", "node-oder"], "'node-oder'"),
    "names and all": (["reproduce", "node-order", "--all"], "Give names of claims, or --all"),
    "neither": (["reproduce"], "Give names of claims, or --all"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(name):
    args, words = REFUSED[name]
    code, out, error = command(*args)
    assert (code, out) == (2, "")
    assert words in error


def test_objections_of_the_library_come_with_line_and_field(work):
    text = TINY.replace("d = 4 }", "d = 4, covariance = [1, 2] }").replace(
        "width = 6", "width = 6\nalpha = 2"
    )
    text = text.replace('neuron = "erf"', 'neuron = { activation = "hermite" }')
    code, out, error = command("show", "-", "--json", text=text)
    assert code == 2
    assert error.splitlines()[0].startswith("<stdin>:4: problem.x: ")
    assert error.splitlines()[1].startswith("<stdin>:6: problem.neuron: ")
    found = json.loads(out)
    assert [(m["where"], m["line"]) for m in found["mistakes"]] == [("problem.x", 4), ("problem.neuron", 6)]


def test_a_folder_in_place_of_a_spec(work):
    code, _, error = command("run", work / "done")
    assert code == 2 and "report" in error and "spec.toml" in error


def with_inf(table):
    """inf is text in JSON, which has no number for it."""
    return {key: np.inf if value == "inf" else value for key, value in table.items()}


def test_presets_are_listed_printed_and_copied(tmp_path):
    code, out, _ = command("presets")
    assert code == 0 and [line.split()[0] for line in out.splitlines()[1:]] == presets.names()
    listed = json.loads(command("presets", "--json")[1])
    assert [one["name"] for one in listed] == presets.names() and all(one["about"] for one in listed)
    for name in presets.names():
        text = presets.file(name).read_text("utf-8")
        assert command("presets", name)[1].rstrip() == text.rstrip()
        found = json.loads(command("presets", name, "--json")[1], object_hook=with_inf)
        assert found == tomllib.loads(text)
    code, out, _ = command("presets", "own-data", "--copy", tmp_path / "mine")
    assert code == 0
    assert sorted(p.name for p in (tmp_path / "mine").iterdir()) == ["own-data.csv", "own-data.toml"]
    assert out.splitlines() == [str(tmp_path / "mine" / f"own-data.{s}") for s in ("toml", "csv")]
    # A copy reads its own data, and is not written over.
    code, shown, _ = command("show", tmp_path / "mine" / "own-data.toml")
    assert code == 0 and read(shown).problem.x.file == str(tmp_path / "mine" / "own-data.csv")
    code, _, error = command("presets", "own-data", "--copy", tmp_path / "mine")
    assert code == 2 and "there already" in error


def test_claims_are_listed():
    code, out, _ = command("reproduce", "--list")
    names = [row["name"] for row in catalogue.listing()]
    assert code == 0 and [line.split()[0] for line in out.splitlines()[1:]] == names
    assert [row["name"] for row in json.loads(command("reproduce", "--list", "--json")[1])] == names


def test_a_report_is_written_again(work, tmp_path):
    shutil.copytree(work / "done", tmp_path / "copy")
    page = (tmp_path / "copy" / "report.html").read_text("utf-8")
    (tmp_path / "copy" / "report.html").unlink()
    shutil.rmtree(tmp_path / "copy" / "figures")
    code, out, error = command("report", tmp_path / "copy")
    assert (code, out, error) == (0, f"{tmp_path / 'copy' / 'report.html'}\n", "")
    assert (tmp_path / "copy" / "report.html").read_text("utf-8") == page
    assert list((tmp_path / "copy" / "figures").iterdir())
    # Stopped between the last run and its report: the same command writes it.
    (tmp_path / "copy" / "report.html").unlink()
    assert command("run", work / "tiny.toml", "--out", tmp_path / "copy")[0] == 0
    assert (tmp_path / "copy" / "report.html").is_file()


def test_a_damaged_folder_is_told(work, tmp_path):
    shutil.copytree(work / "done", tmp_path / "copy")
    (rows,) = (tmp_path / "copy" / "runs" / "gd-seed-0").glob("rows*")
    rows.write_bytes(b"not what it was")
    code, out, error = command("report", tmp_path / "copy")
    assert (code, out) == (2, "") and rows.name in error
    shutil.rmtree(tmp_path / "copy" / "runs")
    code, out, error = command("report", tmp_path / "copy")
    assert (code, out) == (2, "") and str(tmp_path / "copy") in error


def test_studies_are_compared(work, diverged, tmp_path):
    page = tmp_path / "deep" / "page.html"
    code, out, error = command("compare", work / "done", diverged, "--out", page)
    assert (code, out, error) == (0, f"{page}\n", "")
    text = page.read_text("utf-8")
    assert well_formed(text) and "dynamics.0.step" in text and "diverged" in text
    found = json.loads(command("compare", work / "done", diverged, "--out", page, "--json")[1])
    assert [row["status"] for row in found["runs"]] == ["ok", "diverged"]
    code, _, error = command("compare", work / "done", "--out", work / "tiny.toml" / "page.html")
    assert code == 2 and "cannot be written" in error


def test_a_person_at_a_terminal_sees_the_results(work, diverged, monkeypatch):
    for module in (console, run_module):
        monkeypatch.setattr(module, "on_terminal", lambda: True)
    code, out, _ = command("run", work / "tiny.toml", "--out", work / "done")
    found = json.loads((work / "done" / "results.json").read_text("utf-8"))
    assert code == 0
    assert found["verdict"] in out.replace("\n", " ") and "report.html" in out
    code, out, error = command("run", diverged / "spec.toml", "--out", diverged)
    assert code == 3 and "diverged" in out and "is too large" in error
