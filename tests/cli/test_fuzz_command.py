"""Spoilt specs through the whole command, the library's constructors included: shown, or refused with field
or line. Never an exception, and no work to speak of, whatever size is asked for."""

import copy
import re
import tomllib
from collections import Counter

import numpy as np
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.specs import TINY
from spec.examples import CLASSES, DATA, HERMITE, NEURON, POLYNOMIAL
from spec.mutations import mutated, places
from wideflow.cli.app import app
from wideflow.spec.reading import read

MANY = dict(deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
WHERE = re.compile(r"<stdin>(:\d+: |: [\w.\"*-]+: )\S")


def shown(text):
    """The exit code; what was said is checked."""
    done = CliRunner().invoke(app, ["show", "-"], input=text, catch_exceptions=False)
    assert "Traceback" not in done.stderr
    if done.exit_code == 0:
        assert done.stderr == "" and read(done.stdout)
    else:
        assert done.exit_code == 2 and done.stdout == ""
        assert all(WHERE.match(line) for line in done.stderr.splitlines()), done.stderr
    return done.exit_code


@pytest.fixture(scope="module", autouse=True)
def rows(tmp_path_factory):
    """The data file that one of the specs names."""
    folder = tmp_path_factory.mktemp("data")
    draw = np.random.default_rng(0)
    table = np.column_stack([draw.normal(size=(20, 2)), np.arange(20) % 2, np.ones(20)])
    lines = ["p,q,y,m", *["{},{},{:.0f},{}".format(*row) for row in table.tolist()]]
    (folder / "rows.csv").write_text("\n".join(lines), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


# Specs that can be run as they are.
GOOD = [
    TINY,
    NEURON,
    CLASSES,
    HERMITE,
    POLYNOMIAL.replace('"closed_form", order = 20', '"sample", m = 64'),
    DATA.replace("[8, 8, 1]", "[1, 2, 1]")
    .replace("window = 3", "window = 1")
    .replace("pool = 2", "pool = 1")
    .replace("end = 1\n", "end = 10\n")
    .replace("path_norm", "second_moment")
    .replace('neuron = "relu"', 'neuron = { activation = "relu", outputs = 2 }'),
]
WHOLE = [0, 1, 2, 3, 7, 64, 1000, 10**6, 2**31, 2**40, 2**62]
REAL = [0.0, 1e-320, 1e-12, 0.1, 1.0, 3.0, 1e12, 1e300, float("inf")]
WORDS = [
    "relu",
    "erf",
    "square",
    "hermite",
    "piecewise_linear",
    "limit",
    "sgd",
    "adam",
    "kernel_flow",
    "langevin",
]
WORDS += [
    "gaussian",
    "sphere",
    "two_gaussians",
    "huber",
    "logistic",
    "cross_entropy",
    "particles",
    "mlp",
    "cnn",
]
WORDS += [
    "quadrature",
    "closed_form",
    "sample",
    "auto",
    "ntk",
    "mup",
    "unit",
    "frozen",
    "log",
    "w1",
    "s",
    "a",
]


@st.composite
def other_values(draw):
    """A good spec with one to three values exchanged for others of their kind, often extreme: most keep the
    form of a spec, and come to the library."""
    data = copy.deepcopy(tomllib.loads(draw(st.sampled_from(GOOD))))
    for _ in range(draw(st.integers(1, 3))):
        found = [(node, key) for node, key in places(data) if not isinstance(node[key], dict | list)]
        node, key = found[draw(st.integers(0, len(found) - 1))]
        kinds = [(bool, [True, False]), (int, WHOLE), (float, REAL), (str, WORDS)]
        values = next(values for kind, values in kinds if isinstance(node[key], kind))
        node[key] = draw(st.sampled_from(values))
    return tomli_w.dumps(data)


def test_the_specs_are_good_as_they_are():
    assert [shown(text) for text in GOOD] == [0] * len(GOOD)


@pytest.mark.slow
def test_spoilt_specs():
    seen = Counter()

    @settings(max_examples=250, **MANY)
    @given(mutated())
    def all_of_them(text):
        seen[shown(text)] += 1

    all_of_them()
    assert min(seen[0], seen[2]) > 10, seen


@pytest.mark.slow
def test_values_that_the_library_has_to_judge():
    seen = Counter()

    @settings(max_examples=250, **MANY)
    @given(other_values())
    def all_of_them(text):
        seen[shown(text)] += 1

    all_of_them()
    assert min(seen[0], seen[2]) > 50, seen
