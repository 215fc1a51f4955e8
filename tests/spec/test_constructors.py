"""A spec is the public face of the library's constructors: the same names, the same defaults."""

import inspect
from typing import get_args

import pytest

import wideflow as wf
from wideflow import parametrisations
from wideflow.problems import activations
from wideflow.problems.losses import LOSSES
from wideflow.spec import dynamics, forms, problem, start, study
from wideflow.spec.places import places

# The constructor that each table stands for, and the fields that are the study's own: what a method is
# called, on which networks it is run, and what is done to them before.
RUN = {"name", "start", "width", "alpha", "parametrisation", "seeds", "linearised"}
MIRRORS = {
    problem.GaussianX: (wf.Gaussian, set()),
    problem.SphereX: (wf.Sphere, set()),
    problem.TwoGaussiansX: (wf.two_gaussians, set()),
    problem.SingleIndex: (wf.single_index, set()),
    problem.Teacher: (wf.teacher, set()),
    problem.HermiteTarget: (wf.hermite, set()),
    problem.PolynomialTarget: (wf.polynomial, set()),
    problem.Neuron: (wf.Neuron, set()),
    problem.Problem: (wf.Problem, {"reduced"}),
    start.NormalLaw: (wf.Normal, set()),
    start.UniformLaw: (wf.Uniform, set()),
    start.SignsLaw: (wf.Signs, set()),
    start.ConstantLaw: (wf.Constant, set()),
    start.ParticlesStart: (wf.init, {"mirrored"}),
    start.MLPStart: (wf.MLP, {"centred"}),
    start.CNNStart: (wf.CNN, {"centred"}),
    dynamics.Limit: (wf.limit, {"name", "start"}),
    dynamics.GradientFlow: (wf.GradientFlow, RUN),
    dynamics.GradientDescent: (wf.GradientDescent, RUN),
    dynamics.SGD: (wf.SGD, RUN),
    dynamics.Langevin: (wf.Langevin, RUN),
    dynamics.Adam: (wf.Adam, RUN),
    dynamics.KernelFlow: (wf.KernelFlow, RUN),
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
    (dynamics.Limit, "probes"): "a study draws clouds of points",
    (start.MLPStart, "activation"): "that of the problem's neuron",
    (start.CNNStart, "activation"): "that of the problem's neuron",
    (study.Risk, "expectation"): "auto is the library's None",
}
TAGS = {place.table: place.form.tag for place in places()}
FIELDS = [
    (table, key)
    for table, (_, own) in MIRRORS.items()
    for key in table.model_fields
    if key not in own and key != TAGS[table]
]


def test_every_table_mirrors_a_constructor_or_is_the_studys_own():
    assert set(MIRRORS) | OWN == {place.table for place in places()}
    assert not set(MIRRORS) & OWN


@pytest.mark.parametrize("table, key", FIELDS, ids=[f"{t.__name__}-{k}" for t, k in FIELDS])
def test_a_field_is_a_parameter_with_the_same_default(table, key):
    parameter = inspect.signature(MIRRORS[table][0]).parameters[key]
    info = table.model_fields[key]
    assert info.is_required() == (parameter.default is inspect.Parameter.empty)
    if not info.is_required() and (table, key) not in OTHERWISE:
        assert plain(info.get_default(call_default_factory=True)) == plain(parameter.default)


def plain(default):
    """A table or object with nothing but a name, as that name."""
    if isinstance(default, problem.Activation | problem.Loss):
        return default.name
    return next((name for name, loss in LOSSES.items() if isinstance(default, loss)), default)


def test_what_the_studys_own_fields_are_not():
    """A field that is the study's own is none of the constructor's, but for the start of a limit."""
    for table, (constructor, own) in MIRRORS.items():
        assert own & set(inspect.signature(constructor).parameters) <= {"start"}, table


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
    assert "delta" in inspect.signature(LOSSES["huber"]).parameters


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
