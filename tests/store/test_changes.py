"""Whatever way a function is changed, a checkpoint notices or asks for a name; unchanged, it is the same."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wideflow as wf
from loop_cases import small
from reliability.functions import attack
from store import changes
from store.outside import OUTSIDE
from store.ways import WAYS
from wideflow.store.fingerprints import UnreadableError, fingerprint


@pytest.mark.filterwarnings("ignore")  # of the packages that are tried
def test_no_changed_function_is_taken_for_the_old_one():
    """All kinds of `ways`, `outside` and `alike`, and a hundred functions of our own, changed at random."""
    counts = attack(100, seed=0)
    assert counts["taken for another"] == 0
    assert counts["same, but not recognised"] == 0
    assert counts["readable, but refused"] == 0
    assert counts["kinds"] == len(changes.possible(WAYS | OUTSIDE)) >= 200
    assert counts["told apart"] >= 150
    assert counts["refused"] >= 75
    assert counts["same and recognised"] >= 15
    assert counts["mutants told apart"] == 100


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_every_kind_is_the_same_in_another_process(tmp_path):
    """Another order of sets, other addresses, another folder; the script is `__main__` there."""
    script = Path(changes.__file__)
    env = os.environ | {"PYTHONHASHSEED": "5", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, script, tmp_path / "theirs"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    ours = {way: changes.mark(way, 3, tmp_path / "ours") for way in changes.possible(changes.SOURCES)}
    assert theirs == ours


# A function with all that it reads, without wideflow's tests around it.
TYPED = """
import functools, math
SCALE = 3.0
TABLE = {"a", "b", "c"}
class Probe:
    "A probe."
    kinds = {"one", "two", "three"}
    def __init__(self, v): self.v = v
    def __call__(self, t, s):
        class Inner:
            x: float = SCALE
        return math.sin(self.v) + Inner.x + len(TABLE)
f = functools.partial(Probe(2.0), s=None)
"""
ASKED = "\nfrom wideflow.store.fingerprints import fingerprint\nprint(fingerprint(f))\n"


def test_code_typed_at_a_prompt_is_the_same_as_in_a_file(tmp_path):
    """-c, standard input, a script, a module and a moved module, each under another hash seed."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "script.py").write_text(TYPED + ASKED)
    (tmp_path / "mine.py").write_text("\n\n# moved\n" + TYPED)
    (tmp_path / "elsewhere" / "other.py").write_text(TYPED)
    calls = [
        (["-c", TYPED + ASKED], ""),
        (["-"], TYPED + ASKED),
        (["script.py"], ""),
        (["-c", f"from mine import f{ASKED}"], ""),
        (["-c", f"from elsewhere.other import f{ASKED}"], ""),  # a namespace package
    ]
    children = []
    for seed, (arguments, typed) in enumerate(calls):
        env = os.environ | {"PYTHONHASHSEED": str(seed + 1), "PYTHONDONTWRITEBYTECODE": "1"}
        child = subprocess.Popen(
            [sys.executable, *arguments],
            env=env,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        children.append((child, typed))
    marks = [child.communicate(typed)[0].strip() for child, typed in children]
    assert [child.returncode for child, _ in children] == [0] * 5
    assert len(set(marks)) == 1
    assert len(marks[0]) == 64


def test_a_module_that_is_loaded_again_is_the_same(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "loaded_again.py").write_text("K = 3\ndef g(): return K\ndef f(t, s): return g()\n")
    import loaded_again

    before = fingerprint(loaded_again.f)
    assert fingerprint(importlib.reload(loaded_again).f) == before
    (tmp_path / "loaded_again.py").write_text("K = 33\ndef g(): return K\ndef f(t, s): return g()\n")
    importlib.invalidate_caches()
    assert fingerprint(importlib.reload(loaded_again).f) != before
    monkeypatch.delitem(sys.modules, "loaded_again")


@pytest.mark.parametrize("way", ["constant of a class", "frompyfunc"])
def test_a_checkpoint_of_a_changed_observer_is_refused(way, tmp_path):
    """The old numbers are never the answer, by whichever door."""

    def call(value, **more):
        with changes.made(way, value, tmp_path / str(value)) as fn:
            observe = {"probe": lambda t, state: float(fn(t, state))}
            return wf.evolve(**small(observe=observe), **more)

    folder = tmp_path / "run"
    if way == "frompyfunc":
        message = r"observe → probe → .* → g is the compiled ufunc.*wf\.named\(\"scale-3\", fn\)"
        with pytest.raises(ValueError, match=message):
            call(3, checkpoint=folder)
        assert call(3).status == "ok"  # without one it needs no name
        return
    assert call(3, checkpoint=folder)["probe"][0] == 3
    assert call(3, checkpoint=folder)["probe"][0] == 3
    with pytest.raises(ValueError, match="another run: other observers"):
        call(5, checkpoint=folder)


def test_a_name_stands_for_a_function(tmp_path):
    def call(name, value):
        with changes.made("frompyfunc", value, tmp_path / str(value)) as fn:
            probe = wf.named(name, lambda t, state: float(fn(t, state)))
            return wf.evolve(**small(observe={"probe": probe}), checkpoint=tmp_path / "run")

    first = call("probe-3", 3)
    assert first["probe"][0] == 3.0
    assert call("probe-3", 3)["probe"][0] == 3.0  # another function, made anew, under the same name
    with pytest.raises(ValueError, match="another run: other observers"):
        call("probe-5", 5)


def test_names_are_texts_and_functions_functions():
    for bad in (("", abs), (3, abs), ("x", 3)):
        with pytest.raises(ValueError, match="named"):
            wf.named(*bad)
    assert fingerprint(wf.named("a", abs)) == fingerprint(wf.named("a", max))
    assert fingerprint(wf.named("a", abs)) != fingerprint(wf.named("b", abs))
    assert wf.named("a", max)(1, 2) == 2


def test_the_error_says_where_it_lies():
    class Probe:
        def __init__(self):
            self.stream = sys.stderr

        def __call__(self, t, state):
            return 0.0

    with pytest.raises(UnreadableError, match=r"observe → stream is a .*\. Give the function"):
        fingerprint(Probe(), called="observe")
    with pytest.raises(UnreadableError, match=r"observe → <lambda> is a function that uses os\.getenv, by"):
        fingerprint(lambda t, state: os.getenv("X"), called="observe")
