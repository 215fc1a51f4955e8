"""A spec is the public face of the library's constructors: the same names, the same defaults. Tables made of
rows of the vocabulary have all that their rows have; the others are held against their constructors."""

import inspect
from typing import get_args

import pytest

import wideflow as wf
from wideflow import parametrisations
from wideflow.problems import activations
from wideflow.spec import dynamics, forms, kinds, problem, start, study
from wideflow.spec.places import places
from wideflow.vocabulary.laws import LAWS
from wideflow.vocabulary.losses import LOSSES
from wideflow.vocabulary.marginals import MARGINALS
from wideflow.vocabulary.methods import METHODS
from wideflow.vocabulary.targets import TARGETS

# The rows that tables are made of.
ROWS = {
    table: words[name]
    for words, tables in (
        (LAWS, problem.LAW_TABLES),
        (TARGETS, problem.TARGET_TABLES),
        (MARGINALS, start.MARGINAL_TABLES),
        (METHODS, dynamics.METHOD_TABLES),
    )
    for name, table in tables.items()
}
# The constructor that each other table stands for, and the fields that are the study's own.
MIRRORS = {
    problem.Neuron: (wf.Neuron, set()),
    problem.Problem: (wf.Problem, {"reduced"}),
    start.ParticlesStart: (wf.init, {"mirrored"}),
    start.MLPStart: (wf.MLP, {"centred"}),
    start.CNNStart: (wf.CNN, {"centred"}),
    kinds.Annealing: (wf.Annealing, set()),
    dynamics.Grid: (wf.on_grid, set()),
    study.ClosedForm: (wf.ClosedForm, set()),
    study.Quadrature: (wf.Quadrature, set()),
    study.Sample: (wf.Sample, set()),
    study.Risk: (wf.Risk, {"second_moment", "path_norm"}),
}
# Tables of the study itself, without a constructor; Activation and Loss have tests of their own below.
OWN = {study.Spec, study.Times, study.Observe, study.Auto, dynamics.Exponents, problem.DatasetX}
OWN |= {problem.Activation, problem.Loss}
# Where the spec chooses another default than the library, and why.
OTHERWISE = {
    (start.MLPStart, "activation"): "that of the problem's neuron",
    (start.CNNStart, "activation"): "that of the problem's neuron",
    (problem.Problem, "neuron"): "its activation is the default of every start",
    (study.Risk, "expectation"): "auto is the library's None",
}
TAGS = {place.table: place.form.tag for place in places()}
FIELDS = [
    (table, key)
    for table, (_, own) in MIRRORS.items()
    for key in table.model_fields
    if key not in own and key != TAGS[table]
]


def test_every_table_is_of_a_row_or_mirrors_a_constructor_or_is_the_studys_own():
    kinds_of = [set(ROWS), set(MIRRORS), OWN]
    assert set().union(*kinds_of) == {place.table for place in places()}
    assert sum(map(len, kinds_of)) == len(set().union(*kinds_of))


@pytest.mark.parametrize("table", ROWS, ids=lambda table: table.__name__)
def test_a_table_has_the_options_of_its_row(table):
    """With their defaults and meanings, in order, after what all tables of its kind have."""
    word, base = ROWS[table], set(table.__base__.model_fields)
    own = [key for key in table.model_fields if key not in base - {o.name for o in word.options}]
    assert own[-len(word.options) :] == [option.name for option in word.options]
    for option in word.options:
        info = table.model_fields[option.name]
        assert info.is_required() == option.required and info.description == option.meaning
        if not option.required:
            assert plain(info.get_default(call_default_factory=True)) == option.default


@pytest.mark.parametrize("table, key", FIELDS, ids=[f"{t.__name__}-{k}" for t, k in FIELDS])
def test_a_field_is_a_parameter_with_the_same_default(table, key):
    parameter = inspect.signature(MIRRORS[table][0]).parameters[key]
    info = table.model_fields[key]
    if (table, key) in OTHERWISE:
        return
    assert info.is_required() == (parameter.default is inspect.Parameter.empty)
    if not info.is_required():
        assert plain(info.get_default(call_default_factory=True)) == plain(parameter.default)


def plain(default):
    """A table or object with nothing but a name, as that name."""
    if isinstance(default, problem.Activation | problem.Loss):
        return default.name
    return next((n for n, word in LOSSES.items() if isinstance(default, word.constructor())), default)


def test_what_the_studys_own_fields_are_not():
    """A field that is the study's own is none of the constructor's."""
    for table, (constructor, own) in MIRRORS.items():
        assert not own & set(inspect.signature(constructor).parameters), table


def choices(table, key):
    return set(get_args(table.model_fields[key].annotation))


OPTIONS = {
    "leaky_relu": {"slope": 0.1},
    "hermite": {"degree": 2},
    "piecewise_linear": {"knots": [[0, 0], [1, 1]]},
}


def test_activations_are_those_of_the_library():
    """All of them, and the options of those that have some."""
    assert choices(problem.Activation, "name") == set(activations.names())
    for name in choices(problem.Activation, "name"):
        table = problem.Activation(name=name, **OPTIONS.get(name, {}))
        assert wf.activation(table.name, **table.options()).name == name
    assert {key for options in OPTIONS.values() for key in options} == set(
        problem.Activation.model_fields
    ) - {"name"}


def test_losses_are_those_of_the_library():
    assert choices(problem.Loss, "name") == set(LOSSES)
    assert {o.name for word in LOSSES.values() for o in word.options} == set(problem.Loss.model_fields) - {
        "name"
    }


def test_choices_of_words_are_those_of_the_library():
    assert choices(problem.Neuron, "output") == set(
        get_args(inspect.signature(wf.Neuron).parameters["output"].annotation)
    )
    family = dict(d=4, depth=1)
    for word in choices(start.MLPStart, "input_scale"):
        wf.MLP(**family, input_scale=word)
    for key in ("padding", "head", "input_scale"):
        for word in choices(start.CNNStart, key):
            wf.CNN([4, 4, 1], **{key: word})
    for name in get_args(dynamics.ParametrisationName):
        assert parametrisations.named(name, depth=1).depth == 1


def test_every_field_is_described():
    for place in places():
        for key in place.table.model_fields:
            assert forms.of(place.table, key).description, (place.table, key)
