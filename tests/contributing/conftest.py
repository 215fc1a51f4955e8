"""What CONTRIBUTING.md promises, done: one file and one row, and the new word is in specs, page and runs."""

import contextlib
import importlib
import sys
from pathlib import Path

import pytest

# What reads the vocabulary when it is imported: in a process of its own it would be read with the row there.
_READERS = ("wideflow.spec", "wideflow.study", "wideflow.report")


def _readers():
    return {name: module for name, module in sys.modules.items() if name.startswith(_READERS)}


@pytest.fixture
def with_row(monkeypatch):
    """with_row(words, word): the row is in the table, and specs are read anew, until the test ends."""
    before = _readers()
    with contextlib.ExitStack() as rows:

        def add(words, word):
            rows.enter_context(words.adding(word))
            root = importlib.import_module("wideflow")
            for name in _readers():
                del sys.modules[name]
            for reader in _READERS:
                short = reader.rpartition(".")[2]
                if hasattr(root, short):
                    monkeypatch.setattr(root, short, getattr(root, short))  # put back at the end

        yield add
    for name in _readers():  # also those that were first imported with the row there
        del sys.modules[name]
    sys.modules.update(before)


@pytest.fixture
def run_spec(tmp_path):
    """run_spec(text): the study of a spec, run and reported: (finished, text of the report)."""

    def run(text):
        module = lambda name: importlib.import_module(f"wideflow.{name}")
        spec = module("spec.reading").read(text)
        place = module("study.folder").StudyFolder(tmp_path / "study")
        with module("study.perform").in_precision(spec):
            made = module("study.build").build(spec, Path())
        done = module("study.study").run_study(made, place, progress=False)
        module("report.page_of_study").write_report(done)
        return done, place.report.read_text(encoding="utf-8")

    return run


SPEC = """\
precision = "float64"
[problem]
x = {{ law = "gaussian", d = 2 }}
target = {{ kind = "single_index", link = "erf" }}
neuron = {neuron}
loss = {loss}
[risk]
expectation = {{ way = "sample", m = 32 }}
[times]
end = 0.2
count = 2
[[dynamics]]
step = 0.1
width = 5
{dynamics}
[observe]
kernel = 0
test = 4
particles = 0
"""


@pytest.fixture
def text():
    """A small spec with one of its parts replaced."""
    given = {"neuron": '"erf"', "loss": '"squared"', "dynamics": 'method = "gradient_descent"'}
    return lambda **parts: SPEC.format(**(given | parts))
