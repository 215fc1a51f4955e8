"""What is done is kept and not done again; what is damaged, changed or broken off is."""

import json
import math
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.experiments import catalogue, records, reproduction, sources
from wideflow.experiments.base import Check, Outcome
from wideflow.experiments.catalogue import Experiment
from wideflow.experiments.reproduction import reproduce
from wideflow.figures import panels
from wideflow.store.opening import DamagedError
from wideflow.store.seals import sealed

CHECKS = (
    Check("a slope", "-0.5", -0.49, 0.01, -0.6, -0.4),
    Check("a ratio <of> two & more", "1 or more", np.float32(1.5), 0.1, 1.0, math.inf),
)


def _figure():
    with panels(1) as (figure, (axis,)):
        axis.plot([1, 2])
    return figure


@pytest.fixture
def quick(monkeypatch):
    """Three experiments that only count how often they run, and the text that they are made of."""
    state = SimpleNamespace(runs=[], text="first", checks=CHECKS, fail={})

    def loaded(experiment, reduced=False):
        def run(say):
            state.runs.append(experiment.name)
            say("half way")
            state.digits = jnp.zeros(1).dtype
            if experiment.name in state.fail:
                raise state.fail[experiment.name]
            return Outcome(state.checks, _figure())

        return run

    listed = [Experiment(name, f"The claim of {name}.", ("mei2018",), 1) for name in ("one", "two", "three")]
    monkeypatch.setattr(Experiment, "load", loaded)
    monkeypatch.setattr(Experiment, "settings", lambda experiment, reduced=False: f"settings {reduced}")
    for name in listed:
        monkeypatch.setitem(catalogue.EXPERIMENTS, name.name, name)
    for module in (reproduction, reproduction.pages):
        monkeypatch.setattr(module, "text_hash", lambda module: f"{module} {state.text}")
    return state


def _verdicts(names, out, **more):
    return [(r.record.name, r.record.verdict, r.already) for r in reproduce(names, out, **more)]


def test_what_is_done_is_not_done_again(quick, tmp_path):
    said = []
    with jax.enable_x64(False):
        first = list(reproduce(["one", "two"], tmp_path, say=lambda name, text: said.append((name, text))))
    assert [r.record.verdict for r in first] == ["PASS", "PASS"] and not any(r.already for r in first)
    assert ("one", "half way") in said and quick.digits == jnp.float64
    again = list(reproduce(["one", "two", "three"], tmp_path))
    assert quick.runs == ["one", "two", "three"]
    assert [r.already for r in again] == [True, True, False] and again[0].record == first[0].record
    assert _verdicts(["two"], tmp_path, fresh=True) == [("two", "PASS", False)]
    assert quick.runs == ["one", "two", "three", "two"]
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"{name}.{kind}" for name in ("one", "two", "three") for kind in ("json", "png")),
        "index.html",
    }


def test_a_record_is_strict_json_and_comes_back(quick, tmp_path):
    (made,) = reproduce(["one"], tmp_path)

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    data = json.loads((tmp_path / "one.json").read_text(), parse_constant=refuse)
    assert data["checks"][1] == {
        "what": "a ratio <of> two & more",
        "claimed": "1 or more",
        "measured": 1.5,
        "error": 0.1,
        "low": 1.0,
        "high": None,
        "passed": True,
    }
    assert data["passed"] and data["verdict"] == "PASS" and data["version"] == reproduction.__version__
    assert data["versions"]["jax"] and data["seconds"] >= 0 and data["date"].endswith("+00:00")
    assert records.read(tmp_path, "one") == made.record


def _cut(path):
    path.write_bytes(path.read_bytes()[:-40])


@pytest.mark.parametrize(
    "damage",
    [
        lambda out: _cut(out / "one.json"),
        lambda out: _cut(out / "one.png"),
        lambda out: (out / "one.png").unlink(),
        lambda out: (out / "one.json").write_text("[1, 2]"),
        lambda out: (out / "one.json").write_text('{"name": "one"}'),
        lambda out: (out / "one.json").write_bytes((out / "two.json").read_bytes()),
    ],
    ids=["cut record", "cut figure", "no figure", "a list", "fields missing", "another's"],
)
def test_a_damaged_record_is_made_anew(quick, tmp_path, damage):
    list(reproduce(["one", "two"], tmp_path))
    damage(tmp_path)
    with pytest.warns(UserWarning, match=r"one\.(json|png) .* is performed again"):
        assert _verdicts(["one", "two"], tmp_path) == [("one", "PASS", False), ("two", "PASS", True)]
    assert _verdicts(["one"], tmp_path) == [("one", "PASS", True)]


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data["checks"].pop(),
        lambda data: data["lines"].pop(),
        lambda data: data["checks"][0].update(measured=None, passed=False),
        lambda data: data["checks"][0].update(low=None),
        lambda data: data["checks"][0].update(error=None),
        lambda data: data["checks"][1].update(what="a ratio"),
        lambda data: data.update(figure=None),
        lambda data: data["hashes"].update(more="x"),
    ],
    ids=["check", "line", "null measured", "no bound", "no error bar", "renamed", "no figure", "more hashes"],
)
def test_an_edit_that_is_sealed_again_disagrees_with_the_rest(quick, tmp_path, edit):
    list(reproduce(["one"], tmp_path))
    data = json.loads((tmp_path / "one.json").read_text())
    edit(data)
    del data["hashes"]["results"]
    (tmp_path / "one.json").write_text(json.dumps(sealed(data)))
    with pytest.raises(DamagedError, match=r"one\.json is damaged: "):
        records.read(tmp_path, "one")


def test_changed_code_is_run_again(quick, tmp_path):
    list(reproduce(["one", "two"], tmp_path))
    quick.text = "second"
    assert _verdicts(["one"], tmp_path) == [("one", "PASS", False)]
    page = (tmp_path / "index.html").read_text()
    assert page.count("another version of the code") == 1  # two, which was not run again


def test_a_reduced_run_never_stands_for_the_claim(quick, tmp_path):
    (small,) = reproduce(["one"], tmp_path, reduced=True)
    assert small.record.reduced and small.record.passed
    assert json.loads((tmp_path / "one.json").read_text())["reduced"] is True
    page = (tmp_path / "index.html").read_text()
    assert (
        "0 of 0 claims hold" in page and "At a reduced size, which does not test a claim, 1 of 1 pass" in page
    )
    assert [r.already for r in reproduce(["one"], tmp_path, reduced=True)] == [True]
    (full,) = reproduce(["one"], tmp_path)  # the same folder: it is run, and is a claim
    assert not full.already and not full.record.reduced and quick.runs == ["one", "one"]
    assert "1 of 1 claims hold" in (tmp_path / "index.html").read_text()


def test_an_error_is_recorded_and_the_others_go_on(quick, tmp_path):
    quick.fail["one"] = ValueError("no <such> neuron")
    assert _verdicts(["one", "two"], tmp_path) == [("one", "ERROR", False), ("two", "PASS", False)]
    data = json.loads((tmp_path / "one.json").read_text())
    assert data["error"] == "ValueError: no <such> neuron" and not data["passed"] and not data["checks"]
    page = (tmp_path / "index.html").read_text()
    assert "no &lt;such&gt; neuron" in page and "Traceback" not in page and "1 of 2 claims hold" in page
    quick.fail.clear()
    assert _verdicts(["one", "two"], tmp_path) == [("one", "PASS", False), ("two", "PASS", True)]


def test_a_claim_that_fails_or_is_not_a_number(quick, tmp_path):
    quick.checks = (Check("a slope", "-0.5", -0.3, 0.01, -0.6, -0.4), Check("no", "1", math.nan, 0.1, 0, 2))
    (result,) = reproduce(["one"], tmp_path)
    assert result.record.verdict == "FAIL" and not any(check.passed for check in result.record.checks)
    assert _verdicts(["one"], tmp_path) == [("one", "FAIL", True)]
    assert json.loads((tmp_path / "one.json").read_text())["checks"][1]["measured"] is None


def test_an_interrupt_keeps_what_is_done(quick, tmp_path):
    quick.fail["two"] = KeyboardInterrupt()
    results = reproduce(["one", "two", "three"], tmp_path)
    assert next(results).record.verdict == "PASS"
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert {path.name for path in tmp_path.iterdir()} == {"one.json", "one.png", "index.html"}
    quick.fail.clear()
    assert _verdicts(["one", "two"], tmp_path) == [("one", "PASS", True), ("two", "PASS", False)]


def test_an_unknown_name_is_refused_before_anything_runs(quick, tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'three'"):
        reproduce(["one", "thre"], tmp_path)
    assert quick.runs == []


def test_the_hash_follows_imports(tmp_path):
    """All that the experiment imports, directly or not, at the top or in a function; nothing else."""
    package = tmp_path / "pack"
    texts = {
        "__init__.py": "",
        "far.py": "",
        "unused.py": "",
        "experiments/__init__.py": "",
        "experiments/trial.py": "from ..rooms import near\nfrom .other import run\nimport numpy.linalg",
        "experiments/other.py": "def run(say):\n    from pack.far import x",
        "rooms/__init__.py": "",
        "rooms/near.py": "from . import deep",
        "rooms/deep/__init__.py": "from ...experiments import trial",  # a cycle ends
    }
    for name, text in texts.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    before = sources.text_hash("trial", package)
    for name, text in texts.items():
        (package / name).write_text(text + "\n# changed")
        assert (sources.text_hash("trial", package) == before) == (name == "unused.py"), name
        (package / name).write_text(text)
    assert sources.text_hash("trial", package) == before
