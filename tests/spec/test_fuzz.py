"""Whatever the text is: a spec, or mistakes that each name a field. Never another exception."""

import tomllib
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec.examples import EXAMPLES
from spec.mutations import mutated
from wideflow.spec.errors import SpecError
from wideflow.spec.reading import read
from wideflow.spec.writing import written

MANY = dict(deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)


def is_toml(text):
    try:
        return bool(tomllib.loads(text)) or True
    except ValueError:
        return False


def judge(text, changes=()):
    """Read it; what is refused says where, on lines of its own that exist."""
    try:
        spec = read(text, changes=changes)
    except SpecError as error:
        rows = str(error).split("\n")
        assert error.mistakes and len(rows) == len(error.mistakes) + bool(error.more)
        for mistake in error.mistakes:
            assert mistake.message and (mistake.line is None or 1 <= mistake.line <= text.count("\n") + 1)
            assert mistake.where or not is_toml(text) or mistake.source.startswith("--set")
            assert mistake.line is not None or mistake.where or mistake.source.startswith("--set")
        return "wrong" if is_toml(text) else "no TOML"
    assert read(written(spec)) == spec
    return "valid"


@pytest.mark.slow
def test_a_spoilt_spec_is_read_or_refused_with_the_field():
    """5,000 of them, of which each kind is a tenth at least, so that the test means something."""
    seen = Counter()

    @settings(max_examples=5000, **MANY)
    @given(mutated())
    def all_of_them(text):
        seen[judge(text)] += 1

    all_of_them()
    assert seen.total() >= 5000
    assert min(seen["valid"], seen["wrong"], seen["no TOML"]) > 500, seen


@settings(max_examples=500, **MANY)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_read_or_refused(text):
    judge(text)


@settings(max_examples=300, **MANY)
@given(st.binary())
def test_any_bytes_are_read_or_refused(raw):
    try:
        read(raw)
    except SpecError as error:
        assert error.mistakes


KEYS = [
    "problem",
    "x",
    "d",
    "dynamics",
    "*",
    "0",
    "9",
    "wide",
    "step",
    "neuron",
    "bias",
    "start",
    "a",
    "sd",
    "at",
]
KEYS += [
    "activation",
    "name",
    "width",
    "loss",
    "risk",
    "expectation",
    "way",
    "method",
    "nonsense",
    '"é b"',
    "'",
]


@settings(max_examples=1000, **MANY)
@given(
    st.sampled_from(list(EXAMPLES.values())),
    st.lists(
        st.one_of(
            st.builds(
                lambda keys, value: ".".join(keys) + "=" + value,
                st.lists(st.sampled_from(KEYS), min_size=1, max_size=4),
                st.sampled_from(
                    ["1", "-1", "nan", "erf", '""', "[1, 2]", "{}", "{ name = 'erf' }", "[[", "", "a=b"]
                ),
            ),
            st.text(max_size=20),
        ),
        max_size=3,
    ),
)
def test_any_change_is_made_or_refused(text, changes):
    judge(text, changes)
