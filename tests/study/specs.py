"""Specs for the tests of studies: a small one, and changes to it."""

import tomllib
from pathlib import Path

import tomli_w

from wideflow.spec.changes import changed
from wideflow.spec.reading import read
from wideflow.spec.study import Spec
from wideflow.study.build import Study, build
from wideflow.study.perform import in_precision

SMALL = """\
precision = "float64"
[problem]
x = { law = "gaussian", d = 4 }
target = { kind = "single_index", link = "erf" }
neuron = "erf"
[risk]
expectation = { way = "sample", m = 64 }
[times]
end = 1.0
count = 3
[[dynamics]]
name = "gd"
method = "gradient_descent"
step = 0.1
width = 6
"""


def spec(*changes: str, text: str = SMALL, **tables) -> Spec:
    """The small spec with changes as on the command line, and whole tables in place of its own."""
    data = changed(tomllib.loads(text), changes) | tables
    return read(tomli_w.dumps(data))


def study(*changes: str, text: str = SMALL, folder: Path = Path(), **tables) -> Study:
    """What the spec stands for, built in its precision."""
    made = spec(*changes, text=text, **tables)
    with in_precision(made):
        return build(made, folder)
