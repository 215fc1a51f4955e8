"""Whatever way a function is changed, a checkpoint notices or asks for a name; unchanged, it is the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wideflow as wf
from loop_cases import small
from store import changes
from wideflow.store.fingerprints import UnreadableError, fingerprint


@pytest.mark.parametrize("way", changes.WAYS)
def test_a_changed_function_is_noticed(way, tmp_path):
    one, other, again = (changes.made(way, value, tmp_path / str(i))[1] for i, value in enumerate((3, 5, 3)))
    if way in changes.REFUSED:
        assert one == other == again == "refused"
    else:
        assert "refused" not in (one, other)
        assert one != other
        assert one == again  # the same source once more, in another folder


def test_unchanged_functions_are_the_same_in_another_process(tmp_path):
    script = Path(changes.__file__)
    env = os.environ | {"PYTHONHASHSEED": "5"}
    command = [sys.executable, script, tmp_path / "theirs"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        way: changes.made(way, 3, tmp_path / "ours")[1] for way in changes.WAYS
    }


@pytest.mark.parametrize("way", ["constant of a class", "frompyfunc"])
def test_a_checkpoint_of_a_changed_observer_is_refused(way, tmp_path):
    """The old numbers are never the answer, by whichever door."""
    functions = [changes.made(way, value, tmp_path / str(value))[0] for value in (3, 5)]
    observe = lambda fn: {"observe": {"probe": lambda t, state: float(fn(t, state))}}
    folder = tmp_path / "run"
    if way in changes.REFUSED:
        told = r"observe → probe → .* → g is the compiled ufunc.*wf\.named\(\"scale-3\", fn\)"
        with pytest.raises(ValueError, match=told):
            wf.evolve(**small(**observe(functions[0])), checkpoint=folder)
        assert wf.evolve(**small(**observe(functions[0]))).status == "ok"  # without one it needs no name
        return
    first = wf.evolve(**small(**observe(functions[0])), checkpoint=folder)
    assert first["probe"][0] == 3
    with pytest.raises(ValueError, match="another run: other observers"):
        wf.evolve(**small(**observe(functions[1])), checkpoint=folder)


def test_a_name_stands_for_a_function(tmp_path):
    def call(name, value):
        fn = changes.made("frompyfunc", value, tmp_path / str(value))[0]
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

    with pytest.raises(UnreadableError, match=r"observe → stream is a .*whose content cannot be read"):
        fingerprint(Probe(), called="observe")
