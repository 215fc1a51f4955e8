"""A spec that is written and read again is the same spec."""

import math
import tomllib
from typing import Literal, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec.examples import EXAMPLES
from wideflow.spec import forms
from wideflow.spec.base import Listed, Said
from wideflow.spec.dynamics import METHOD_TABLES, Measure
from wideflow.spec.reading import read
from wideflow.spec.study import Spec, Times
from wideflow.spec.writing import written
from wideflow.vocabulary.methods import METHODS

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


def limit(metadata, *names):
    return next((getattr(m, n) for m in metadata for n in names if getattr(m, n, None) is not None), None)


def values(kind, metadata):
    """Values of one kind that a field may have, extremes included."""
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is list:
        least, most = limit(metadata, "min_length") or 0, limit(metadata, "max_length") or 4
        many = st.lists(any_of(get_args(kind)[0]), min_size=least, max_size=most)
        return many | any_of(get_args(kind)[0]) if Listed in metadata else many
    if kind is bool or kind is str:
        return st.booleans() if kind is bool else TEXT
    if any(isinstance(m, Said) for m in metadata):
        return st.integers(1, 2**53 - 1) | st.just(math.inf)
    low, high = limit(metadata, "ge", "gt"), limit(metadata, "le", "lt")
    if kind is int:
        return st.integers(low, min(high, 2**62) - 1 if high is not None else 2**62)
    finite = limit(metadata, "allow_inf_nan") is False
    return st.floats(
        low,
        high,
        exclude_min=limit(metadata, "gt") is not None,
        exclude_max=limit(metadata, "lt") is not None,
        allow_nan=False,
        allow_infinity=not finite and high is None,
    )


def any_of(annotation):
    """Values of every kind that may stand somewhere."""
    kinds = forms.branches(annotation)
    return st.one_of([tables(k) if hasattr(k, "model_fields") else values(k, m) for k, m in kinds])


def tables(table):
    """Tables with all that is required and some of the rest."""
    if table is Times:
        return ways_to_say_when()
    fields = {k: any_of(forms.of(table, k).annotation) for k in table.model_fields}
    needed = {k for k, info in table.model_fields.items() if info.is_required()}
    if issubclass(table, Measure):
        neurons, density = OF_DENSITIES[table], {"width", "seeds", "alpha"}
        return st.one_of(_table(fields, needed, neurons), _table(fields, needed | {"grid"}, density))
    return _table(fields, needed, set())


# Fields that neurons do not have: the grid, and options that go with it.
OF_DENSITIES = {
    table: {"grid"} | {option.name for option in METHODS[name].options if option.on_grid}
    for name, table in METHOD_TABLES.items()
}


def _table(fields, needed, left_out):
    return st.fixed_dictionaries(
        {k: v for k, v in fields.items() if k in needed},
        optional={k: v for k, v in fields.items() if k not in needed | left_out},
    )


def ways_to_say_when():
    end, at = (
        st.floats(1e-3, 1e6),
        st.lists(st.floats(0, 1e6), min_size=1, max_size=5, unique=True).map(sorted),
    )
    log = st.fixed_dictionaries(
        {"end": end, "spacing": st.just("log")}, optional={"first": st.floats(1e-9, 1e-4)}
    )
    return st.one_of(
        st.fixed_dictionaries({"end": end, "count": st.integers(2, 100_000)}),
        log,
        at.map(lambda t: {"at": t}),
    )


@st.composite
def specs(draw):
    data = draw(tables(Spec))
    for i, method in enumerate(data["dynamics"]):
        method["name"] = f"{method.get('name', '')}{i}"
    return Spec.model_validate(data)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(specs())
def test_any_spec_is_read_as_it_was_written(spec):
    assert read(written(spec)) == spec


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_examples_are_read_as_they_were_written(text):
    spec = read(text)
    assert read(written(spec)) == spec
    assert written(read(written(spec))) == written(spec)


def test_defaults_are_filled_in_and_what_is_left_open_is_left_out():
    data = tomllib.loads(written(read(EXAMPLES["hermite"])))
    assert data["problem"]["loss"] == {"name": "squared"}
    assert data["risk"]["expectation"] == {"way": "auto"}
    assert data["times"] == {"end": 10.0, "count": 41, "spacing": "linear"}
    assert data["observe"]["kernel"] == 64 and "cloud" not in data["observe"]


def test_infinity_survives():
    data = tomllib.loads(written(read(EXAMPLES["teacher"])))
    assert data["problem"]["x"]["d"] == math.inf and data["dynamics"][1]["beta"] == math.inf


def test_the_order_is_that_of_the_model_and_the_kind_of_a_table_comes_first():
    data = tomllib.loads(written(read(EXAMPLES["neuron"])))
    assert [key for key in data] == [key for key in Spec.model_fields if key in data]
    assert all(next(iter(method)) == "method" for method in data["dynamics"])
