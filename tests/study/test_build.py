"""A spec is built by the library's constructors; what they object to arrives with its field, all at once."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from study.specs import spec, study
from wideflow.dynamics import optimisers
from wideflow.report.words import data_notes
from wideflow.store.records import fingerprint
from wideflow.study import parts
from wideflow.study.build import NotBuiltError, located
from wideflow.study.points import DIRECTIONS, KERNEL, TEST, VERDICT, points

KNOTS = [[0.0, -1.0], [1.0, 2.0]]


def problem(**given):
    return wf.Problem(
        **(dict(x=wf.Gaussian(4), target=wf.single_index("erf"), neuron=wf.Neuron("erf")) | given)
    )


def assert_same(one, other):
    assert fingerprint(one) == fingerprint(other)


# Which part, what is written, and what a user of the library writes for it.
PARTS = {
    "gaussian": ("x", [], lambda: wf.Gaussian(4)),
    "covariance": ("x", ["problem.x.covariance=2.0"], lambda: wf.Gaussian(4, 2.0)),
    "diagonal": ("x", ["problem.x.covariance=[1,2,3,4]"], lambda: wf.Gaussian(4, [1.0, 2, 3, 4])),
    "matrix": (
        "x",
        ["problem.x.d=2", "problem.x.covariance=[[2,1],[1,2]]"],
        lambda: wf.Gaussian(2, [[2.0, 1], [1, 2]]),
    ),
    "sphere": ("x", ["problem.x.law=sphere"], lambda: wf.Sphere(4)),
    "infinite": ("x", ["problem.x.d=inf"], lambda: wf.Gaussian(np.inf)),
    "single index": ("target", [], lambda: wf.single_index("erf")),
    "direction": (
        "target",
        ["problem.target.direction=[0,3,0,4]"],
        lambda: wf.single_index("erf", [0.0, 3, 0, 4]),
    ),
    "hermite": ("target", ["problem.target={kind='hermite',degree=3}"], lambda: wf.hermite(3)),
    "polynomial": (
        "target",
        ["problem.target={kind='polynomial',coefficients=[1,0,2],direction=[1,1,0,0]}"],
        lambda: wf.polynomial([1.0, 0, 2], [1.0, 1, 0, 0]),
    ),
    "teacher": (
        "target",
        ["problem.target={kind='teacher',w=[[1,0,0,0],[0,2,0,0]],a=[1,-1],b=[0,0.5],link='tanh'}"],
        lambda: wf.teacher([[1.0, 0, 0, 0], [0, 2, 0, 0]], [1.0, -1], [0.0, 0.5], link="tanh"),
    ),
    "teacher, plain": (
        "target",
        ["problem.target={kind='teacher',w=[[1,0,0,0]]}"],
        lambda: wf.teacher([[1.0, 0, 0, 0]]),
    ),
    "neuron": ("neuron", [], lambda: wf.Neuron("erf")),
    "options": (
        "neuron",
        ["problem.neuron={activation={name='leaky_relu',slope=0.2},bias=true,output='frozen',outputs=2}"],
        lambda: wf.Neuron(wf.activation("leaky_relu", slope=0.2), bias=True, output="frozen", outputs=2),
    ),
    "knots": (
        "neuron",
        [f"problem.neuron={{activation={{name='piecewise_linear',knots={KNOTS}}},output='unit'}}"],
        lambda: wf.Neuron(wf.activation("piecewise_linear", knots=KNOTS), output="unit"),
    ),
    "squared": ("loss", [], lambda: wf.losses.Squared()),
    "huber": ("loss", ["problem.loss={name='huber',delta=0.5}"], lambda: wf.losses.Huber(0.5)),
    "logistic": ("loss", ["problem.loss=logistic"], lambda: wf.losses.Logistic()),
    "cross entropy": ("loss", ["problem.loss=cross_entropy"], lambda: wf.losses.SoftmaxCrossEntropy()),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_the_problem_is_that_of_the_constructor(name):
    which, changes, by_hand = PARTS[name]
    makers = {"x": lambda x: parts.law_of_x(x, Path()), "target": parts.target}
    make = (makers | {"neuron": parts.neuron, "loss": parts.loss})[which]
    assert_same(make(getattr(spec(*changes).problem, which)), by_hand())


def test_the_problem_is_made_of_its_parts():
    made = study("problem.loss={name='huber',delta=0.5}", "problem.noise=0.1")
    assert_same(made.whole, problem(loss=wf.losses.Huber(0.5), noise=0.1))
    assert made.problem is made.whole


def test_a_law_with_labels_needs_no_target():
    x = {"law": "two_gaussians", "d": 4, "delta": 0.5, "subspace": 2}
    made = study(problem={"x": x, "neuron": "erf", "loss": "logistic"})
    by_hand = wf.Problem(x=wf.two_gaussians(4, 0.5, 2), neuron=wf.Neuron("erf"), loss=wf.losses.Logistic())
    assert_same(made.whole, by_hand)


def test_rows_of_a_file(tmp_path):
    """Relative to the folder of the spec, or located beforehand and read from anywhere; features standardised
    unless it is said otherwise."""
    rows = np.random.default_rng(0).normal(size=(7, 4))
    lines = ["p,q,y,m", *[",".join(map(repr, row)) for row in np.abs(rows).tolist()]]
    (tmp_path / "rows.csv").write_text("\n".join(lines), "utf-8")
    x = dict(law="dataset", file="rows.csv", features=["q", "p"], weights="m", standardise=False)
    given = spec(problem={"x": x, "neuron": "erf"})
    by_hand = wf.Dataset(np.abs(rows)[:, [1, 0]], np.abs(rows)[:, 2], np.abs(rows)[:, 3])
    assert_same(study(problem={"x": x, "neuron": "erf"}, folder=tmp_path).whole.x, by_hand)
    full = located(given, tmp_path)
    assert full.problem.x.file == str(tmp_path / "rows.csv")
    assert located(full, tmp_path / "elsewhere") == full
    del x["standardise"]
    scaled = study(problem={"x": x, "neuron": "erf"}, folder=tmp_path).whole.x
    np.testing.assert_allclose(scaled.weights @ scaled.x, 0, atol=1e-14)  # sums of seven numbers of order 1


STARTS = {
    "default": ({}, {}),
    "numbers": ({"a": 2.0, "w": 0.5}, {"a": 2.0, "w": 0.5}),
    "laws": (
        {"a": {"law": "signs", "scale": 2.0}, "w": {"law": "normal", "mean": 1.0, "sd": 0.1}},
        {"a": wf.laws.Rademacher(2.0), "w": wf.laws.Normal(1.0, 0.1)},
    ),
    "more laws": (
        {"a": {"law": "constant", "value": 3.0}, "w": {"law": "uniform", "low": 0.0, "high": 1.0}},
        {"a": wf.laws.Constant(3.0), "w": wf.laws.Uniform(0.0, 1.0)},
    ),
}


@pytest.mark.parametrize("name", STARTS)
def test_the_start_is_that_of_init(name):
    written, given = STARTS[name]
    assert_same(study(start=written).start, wf.init(problem(), **given))


def test_biases_and_reduced_coordinates():
    made = study("problem.neuron.bias=true", "start.b=0.5", "problem.reduced=true")
    whole = problem(neuron=wf.Neuron("erf", bias=True))
    assert_same(made.whole, whole)
    assert_same(made.problem, whole.reduced())
    assert_same(made.start, wf.init(whole, b=0.5).reduced())


def test_an_entry_starts_where_it_says():
    """Its own law in place of the study's, with the same key; the others keep that of the study."""
    own = {"method": "gradient_flow", "name": "own", "width": 6, "start": {"a": 0.5, "mirrored": True}}
    common = {"method": "gradient_flow", "name": "common", "width": 6}
    made = study(dynamics=[own, common])
    first, second = made.cases
    assert_same(made.start_of(first), wf.init(problem(), a=0.5))
    assert_same(made.start_of(second), wf.init(problem()))
    assert_same(made.state(first), wf.init(problem(), a=0.5).sample(first.key, 6, mirrored=True))
    assert_same(made.state(second), wf.init(problem()).sample(second.key, 6))


def test_families_take_dimension_and_activation_of_the_problem():
    mlp = dict(kind="mlp", depth=2, gain=1.5, bias=0.1, input_scale="front")
    by_hand = wf.MLP(4, 2, "erf", gain=1.5, bias=0.1, input_scale="front")
    assert_same(study(start=mlp).start, by_hand)
    assert_same(study(start={"kind": "mlp", "activation": "tanh"}).start, wf.MLP(4, 1, "tanh"))
    cnn = dict(kind="cnn", inputs=[2, 2, 1], window=2, padding="VALID", head="average")
    by_hand = wf.CNN([2, 2, 1], 1, "erf", window=2, padding="VALID", head="average")
    assert_same(study(start=cnn).start, by_hand)


def test_the_risk_and_what_is_added_to_it():
    made = study("risk.expectation={way='sample',m=32,seed=5}", "risk.second_moment=0.1")
    risk = wf.Risk(problem(), wf.Sample(32, 5))
    assert_same(made.risk, risk)
    assert_same(made.penalty, 0.1 * wf.SecondMoment())
    descended = wf.GradientDescent(risk + 0.1 * wf.SecondMoment(), 0.1)
    assert_same(made.dynamics(made.cases[0]), descended)
    both = study("risk.second_moment=0.1", "risk.path_norm=0.2").penalty
    assert_same(both, 0.1 * wf.SecondMoment() + 0.2 * wf.PathNorm())
    assert study().penalty is None
    assert_same(study("risk.expectation={way='closed_form'}").risk, wf.Risk(problem(), wf.ClosedForm()))
    assert_same(study("risk.expectation={way='auto'}").risk, wf.Risk(problem()))
    two = study("problem.x.d=2", "risk.expectation={way='quadrature',order=20}")
    assert_same(two.risk, wf.Risk(problem(x=wf.Gaussian(2)), wf.Quadrature(20)))


R = wf.Risk(problem(), wf.Sample(64))
METHODS = {
    "gradient_flow": (dict(rtol=1e-5, max_steps=99), lambda: wf.GradientFlow(R, rtol=1e-5, max_steps=99)),
    "gradient_descent": (dict(step=0.1), lambda: wf.GradientDescent(R, 0.1)),
    "sgd": (dict(step=0.1, batch=3), lambda: wf.SGD(R, 0.1, batch=3)),
    "sgd, passes": (dict(step=0.1, one_pass=False), lambda: wf.SGD(R, 0.1, one_pass=False)),
    "langevin": (dict(step=0.1, beta=9.0, decay=0.2), lambda: wf.Langevin(R, 0.1, beta=9.0, decay=0.2)),
    "langevin, cold": (dict(step=0.1, beta=np.inf), lambda: wf.Langevin(R, 0.1, beta=np.inf)),
    "adam": (
        dict(step=0.1, b1=0.8, b2=0.9, eps=1e-6, decay=0.3, batch=2),
        lambda: wf.Adam(R, 0.1, b1=0.8, b2=0.9, eps=1e-6, decay=0.3, batch=2),
    ),
    "kernel_flow": (dict(rtol=1e-7), lambda: wf.KernelFlow(R, rtol=1e-7)),
    "langevin, annealed": (
        dict(step=0.1, beta={"start": 1.0, "end": 9.0, "over": 2.0, "kind": "power", "power": 3.0}),
        lambda: wf.Langevin(R, 0.1, beta=wf.Annealing(1.0, 9.0, 2.0, "power", power=3.0)),
    ),
    "langevin, noise on": (
        dict(step=0.1, beta=9.0, noise_on=["w1", "a"]),
        lambda: wf.Langevin(R, 0.1, beta=9.0, noise_on=("w1", "a")),
    ),
    "optax": (dict(optimiser="lion", step=0.1, batch=2), lambda: wf.Optax(R, optimisers.lion, 0.1, batch=2)),
    "jko": (
        dict(step=0.1, beta=9.0, decay=0.2, tol=1e-5),
        lambda: wf.JKO(R, 0.1, beta=9.0, decay=0.2, tol=1e-5),
    ),
    "fisher_rao": (dict(step=0.1, decay=0.2), lambda: wf.FisherRao(R, 0.1, decay=0.2)),
    "wasserstein_fisher_rao": (
        dict(step=0.1, reaction=0.5, decay=0.2),
        lambda: wf.WassersteinFisherRao(R, 0.1, reaction=0.5, decay=0.2),
    ),
    "birth_death": (
        dict(step=0.1, reaction=0.5, beta=9.0, decay=0.2),
        lambda: wf.BirthDeath(R, 0.1, reaction=0.5, beta=9.0, decay=0.2),
    ),
    "sgd, frozen": (dict(step=0.1, linearised=True), lambda: wf.Linearised(wf.SGD(R, 0.1))),
}


@pytest.mark.parametrize("name", METHODS)
def test_the_dynamics_are_those_of_the_constructors(name):
    fields, by_hand = METHODS[name]
    method = {"method": name.split(",")[0], "width": 4} | fields
    made = study(dynamics=[method])
    assert_same(made.dynamics(made.cases[0]), by_hand())


# Two coordinates, a and w, on a box of 10 × 12 cells.
FLAT = ["problem.x.d=1", "risk.expectation={way='quadrature',order=20}"]
GRID = {"low": [-6.0, -7.0], "high": 6.0, "cells": [10, 12]}
DENSITIES = {
    "grid_flow": (
        dict(beta=9.0, decay=0.2, tol=1e-4),
        lambda risk: wf.GridFlow(risk, beta=9.0, decay=0.2, tol=1e-4),
    ),
    "jko": (dict(step=0.1, beta=9.0, epsilon=1.0), lambda risk: wf.JKO(risk, 0.1, beta=9.0, epsilon=1.0)),
    "fisher_rao": (dict(step=0.1, beta=9.0), lambda risk: wf.FisherRao(risk, 0.1, beta=9.0)),
}


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_start_as_the_law_on_a_grid(name):
    fields, by_hand = DENSITIES[name]
    made = study(*FLAT, dynamics=[{"method": name, "grid": GRID, "alpha": [1.0, 2.0]} | fields])
    flat = problem(x=wf.Gaussian(1))
    assert [case.label for case in made.cases] == [f"{name.replace('_', ' ')}, α = {a}" for a in (1, 2)]
    for case, alpha in zip(made.cases, (1.0, 2.0), strict=True):
        assert case.width is None and not case.is_limit and case.neurons == 120
        assert_same(made.dynamics(case), by_hand(wf.Risk(flat, wf.Quadrature(20))))
        by_law = wf.on_grid(wf.init(flat), [-6.0, -7.0], 6.0, [10, 12], alpha=alpha)
        assert_same(made.state(case), by_law)


TIMES = {
    "linear": ({"end": 2.0, "count": 5}, [0, 0.5, 1, 1.5, 2]),
    "log": ({"end": 1.0, "count": 4, "spacing": "log"}, [0, 1e-3, 10**-1.5, 1]),
    "log, first": ({"end": 1.0, "count": 3, "spacing": "log", "first": 0.1}, [0, 0.1, 1]),
    "at": ({"at": [0.5, 0.75, 3.0]}, [0.5, 0.75, 3.0]),
}


@pytest.mark.parametrize("name", TIMES)
def test_times(name):
    written, expected = TIMES[name]
    made = study(times=written, dynamics=[{"method": "gradient_flow", "width": 4}])
    np.testing.assert_allclose(made.ts, expected, rtol=1e-14)  # powers of ten by logarithms


# Changes, the place that is named, words that are said there.
FLOW = "dynamics.0={name='gd',method='gradient_flow',width=4}"
UNIT = "problem.neuron={activation='erf',output='unit'}"
WRONG = {
    "covariance": (["problem.x.covariance=[1,2]"], "problem.x", "shape (4,) or (4, 4), got (2,)"),
    "not positive": (["problem.x.covariance=[1,2,3,-1]"], "problem.x", "smallest eigenvalue is -1"),
    "subspace": (["problem.x={law='two_gaussians',d=4,delta=0.5,subspace=9}"], "problem.x", "below"),
    "no file": (["problem.x={law='dataset',file='no.csv'}"], "problem.x", "There is no file"),
    "direction": (["problem.target.direction=[0,0,0,0]"], "problem.target", "not 0"),
    "other dimension": (["problem.target.direction=[1,0]"], "problem", "R^4, as x is, got some in R^2"),
    "target twice": (["problem.x={law='two_gaussians',d=4,delta=0.5}"], "problem", "brings its own labels"),
    "option": (["problem.neuron.activation={name='erf',degree=3}"], "problem.neuron", "no option"),
    "no knots": (["problem.neuron=piecewise_linear"], "problem.neuron", "needs the option"),
    "degree": (["problem.target={kind='hermite',degree=2147483648}"], "problem.target", "at most 100"),
    "delta": (["problem.loss={name='squared',delta=1}"], "problem.loss", "huber"),
    "labels": (["problem.loss=logistic"], "problem", "labels y = -1 or +1"),
    "outputs": (["problem.neuron.outputs=3"], "problem", "3 output(s)"),
    "no symmetry": (["problem.x.d=2", "problem.reduced=true"], "problem.reduced", "There is no symmetry"),
    "infinite": (["problem.x.d=inf"], "dynamics.0.width", "problem.reduced = true"),
    "bias": (["start.b=1.0"], "start", "no bias"),
    "unit": ([UNIT, "start.a=1.0"], "start", "a = 1"),
    "mirrored, unit": ([UNIT, "start.mirrored=true"], "dynamics.0.width", "output weights a to mirror"),
    "mirrored, odd": (["start.mirrored=true", "dynamics.gd.width=7"], "dynamics.0.width", "even"),
    "uniform": (["start.a={law='uniform',low=1,high=0}"], "start", "low < high"),
    "image": (["start={kind='cnn',inputs=[3,3,1]}"], "start", "d = 4, got 3 × 3 × 1"),
    "window": (["start={kind='cnn',inputs=[2,2,1],padding='VALID'}"], "start", "does not fit"),
    "deep": (["start={kind='mlp',depth=2147483648}"], "start", "1 to 1000"),
    "reduced mlp": (["start={kind='mlp'}", "problem.reduced=true"], "start", "particles"),
    "limit of mlp": (["start={kind='mlp'}", "dynamics.0={method='limit'}"], "dynamics.0", "particles"),
    "own start": (["dynamics.gd.start={b=1.0}"], "dynamics.0.start", "no bias"),
    "own start, deep": (["dynamics.gd.start={kind='mlp'}"], "dynamics.0.start", "neurons"),
    "own start of mlp": (
        ["start={kind='mlp'}", "dynamics.gd.start={a=1.0}"],
        "dynamics.0.start",
        'start.kind = "mlp"',
    ),
    "own start, mirrored": (
        ["dynamics.gd.start={mirrored=true}", "dynamics.gd.width=7"],
        "dynamics.0.width",
        "even",
    ),
    "own start of a limit": (
        ["dynamics.0={method='limit',start={mirrored=true,a={law='normal',mean=1.0}}}"],
        "dynamics.0.start.mirrored",
        "symmetric",
    ),
    "not of mlp": (
        ["start={kind='mlp'}", "dynamics.0={method='birth_death',step=0.1}"],
        "dynamics.0.method",
        'birth_death moves neurons: it takes start.kind = "particles"',
    ),
    "noise of mlp": (
        ["start={kind='mlp'}", "dynamics.0={method='langevin',step=0.1,beta=1.0,noise_on='w'}"],
        "dynamics.0.noise_on",
        "coordinates of neurons",
    ),
    "noise on nothing": (
        ["dynamics.0={method='langevin',step=0.1,beta=1.0,noise_on='z'}"],
        "dynamics.0",
        "noise_on = 'z' is no coordinate",
    ),
    "five coordinates": (
        ["dynamics.0={method='grid_flow',grid={low=-1,high=1,cells=4}}"],
        "dynamics.0.grid",
        "at most 3 coordinates, got D = 5",
    ),
    "box elsewhere": (
        ["problem.x.d=1", "dynamics.0={method='grid_flow',grid={low=50,high=60,cells=4}}"],
        "dynamics.0.grid",
        "choose",
    ),
    "blur": (
        ["problem.x.d=1", "dynamics.0={method='jko',step=0.1,epsilon=0.1,grid={low=-6,high=6,cells=10}}"],
        "dynamics.0.grid",
        "blurs by less than a cell",
    ),
    "density of a mirrored start": (
        [
            "problem.x.d=1",
            "start={mirrored=true,a={law='normal',mean=1.0}}",
            "dynamics.0={method='grid_flow',grid={low=-9,high=9,cells=4}}",
        ],
        "start.mirrored",
        "the density of a mirrored start needs",
    ),
    "rule": (["risk.expectation={way='quadrature'}"], "risk", "d = 4"),
    "order": (["problem.x.d=1", "risk.expectation={way='quadrature',order=2147483648}"], "risk", "too large"),
    "terms": (["risk.expectation={way='closed_form',order=2147483648}"], "risk", "1 to 1024"),
    "no closed form": (
        ["risk.expectation={way='closed_form'}", "problem.loss=huber"],
        "risk",
        "no closed form",
    ),
    "sample": (["risk.expectation={way='sample',m=1000000000000}"], "risk", "GiB are free"),
    "penalty": (
        ["dynamics.0={method='kernel_flow',width=4}", "risk.second_moment=0.1"],
        "dynamics.0",
        "a penalty would move K",
    ),
    "one pass": (
        ["dynamics.gd.method=langevin", "dynamics.gd.beta=1.0", "dynamics.gd.one_pass=true"],
        "dynamics.0",
        "batch",
    ),
    "times and step": (["times.end=0.1"], "dynamics.0", "at least a step of 0.1 apart"),
    "steps": (["times.end=1e300"], "dynamics.0", "at most 2147483647"),
    "mup": (["dynamics.gd.parametrisation=mup"], "dynamics.0.parametrisation", "mean_field, ntk, got 'mup'"),
    "both": (
        ["dynamics.gd.parametrisation=ntk", "dynamics.gd.alpha=2"],
        "dynamics.0.parametrisation",
        "not both",
    ),
    "exponents": (
        ["start={kind='mlp'}", "dynamics.gd.parametrisation={a=[0,0,0],b=[0,0,0],c=[0,0,0]}"],
        "dynamics.0.parametrisation",
        "needs 2 exponents",
    ),
    "depth": (
        ["start={kind='mlp',depth=2}", "dynamics.gd.parametrisation=mean_field"],
        "dynamics.0.parametrisation",
        "one hidden layer",
    ),
    "width": (["dynamics.gd.width=1000000000000"], "dynamics.0.width", "GiB are free"),
    "width of mlp": (
        ["start={kind='mlp',depth=2}", "dynamics.gd.width=1000000"],
        "dynamics.0.width",
        "GiB are free",
    ),
    "path norm, frozen": (
        ["risk.path_norm=0.1", "dynamics.gd.linearised=true"],
        "dynamics.0.linearised",
        "neurons that move",
    ),
    "path norm of mlp": (["risk.path_norm=0.1", "start={kind='mlp'}"], "dynamics.0.linearised", "deeper"),
    "noise, reduced and frozen": (
        [
            "dynamics.0={method='langevin',step=0.1,beta=9.0,linearised=true,width=4}",
            "problem.reduced=true",
        ],
        "dynamics.0.linearised",
        "linearised = false",
    ),
    "batch": (
        ["dynamics.gd.method=sgd", "dynamics.gd.batch=1000000000000"],
        "dynamics.0.batch",
        "GiB are free",
    ),
    "dimension": (["problem.x.d=1000000000"], "problem.x.d", "at most 1000000, or inf"),
    "dimension of classes": (
        ["problem.x={law='two_gaussians',d=1000000000,delta=0.5,subspace=5}"],
        "problem.x.d",
        "at most 1000000, or inf",
    ),
    "seeds": (["dynamics.gd.seeds=1000000000"], "dynamics.0.seeds", "at most 10000"),
    "scales and seeds": (
        [f"dynamics.gd.alpha={[1.0 + i for i in range(120)]}", "dynamics.gd.seeds=100"],
        "dynamics.0.alpha",
        "12000 runs are too many",
    ),
    "entries together": (
        ["dynamics.1={method='gradient_flow', seeds=6000}", "dynamics.gd.seeds=6000"],
        "dynamics.0.seeds",
        "12000 runs are too many",
    ),
    "what all runs keep": (
        ["times.count=100000", "observe.test=100000", "dynamics.gd.seeds=100"],
        "observe",
        "What 100 runs keep at 100000 times needs about",
    ),
    "the same width": (["dynamics.gd.width=[6,6]"], "dynamics.0.name", "share the folder"),
    "cloud": (["observe.cloud=['w1','zz']"], "observe.cloud.1", "no coordinate 'zz'"),
    "feature": (["observe.feature=rr"], "observe.feature", "Did you mean 'r'?"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_objection_arrives_with_its_place(name, tmp_path):
    changes, place, words = WRONG[name]
    with pytest.raises(NotBuiltError) as caught:
        study(*changes, folder=tmp_path)
    said = {".".join(map(str, where)): message for where, message in caught.value.found}
    assert words in said[place]
    assert all("\n" not in message and message for message in said.values())


def test_all_objections_come_at_once_and_none_that_follows_from_another():
    """What needs a part that could not be made is not objected to as well."""
    with pytest.raises(NotBuiltError) as caught:
        study(
            "problem.x.covariance=[1,2]",
            "problem.neuron.activation={name='erf',degree=3}",
            "problem.loss={name='squared',delta=1}",
            "times.end=1e300",
        )
    places = [".".join(map(str, where)) for where, _ in caught.value.found]
    assert places == ["problem.x", "problem.neuron", "problem.loss"]
    with pytest.raises(NotBuiltError) as caught:
        study("start.b=1.0", "risk.expectation={way='quadrature'}", "observe.feature=zz")
    places = [".".join(map(str, where)) for where, _ in caught.value.found]
    assert places == ["start", "risk", "observe.feature"]
    assert str(caught.value).count("\n") == 2


def test_points_to_look_at_are_no_part_of_the_training_data(tmp_path):
    """Draws of a stream of their own, the same for every seed; rows of a data set, spread evenly."""
    one, other = study("seed=1"), study("seed=2")
    x = points(one.whole, 5, 77)
    np.testing.assert_array_equal(x, points(other.whole, 5, 77))
    np.testing.assert_array_equal(x, one.whole.sample(jax.random.key(77), 5).x)
    assert not np.array_equal(x, points(one.whole, 5, 78))
    assert points(one.whole, 0, 77) is None
    assert points(study("problem.x.d=inf", "problem.reduced=true").whole, 5, 77) is None
    (tmp_path / "rows.csv").write_text("x,y\n" + "\n".join(f"{i},0" for i in range(9)), "utf-8")
    given = {"x": {"law": "dataset", "file": "rows.csv", "standardise": False}, "neuron": "erf"}
    data = study(problem=given, folder=tmp_path)
    np.testing.assert_array_equal(points(data.whole, 3, 77)[:, 0], [0, 4, 8])
    np.testing.assert_array_equal(points(data.whole, 99, 77)[:, 0], np.arange(9))


def test_class_names_and_missing_values_of_a_file(tmp_path):
    """Refused with the fix in the words of a spec; read as asked, and told in the report."""
    (tmp_path / "rows.csv").write_text("x,kind\n1,dog\n,cat\n3,cat\n", "utf-8")
    given = {"law": "dataset", "file": "rows.csv", "target": "kind"}
    with pytest.raises(NotBuiltError, match=r'1 of 3 rows has a missing value.*missing = "drop"'):
        study(problem={"x": given, "neuron": "erf"}, risk={}, folder=tmp_path)
    made = study(problem={"x": given | {"missing": "drop"}, "neuron": "erf"}, risk={}, folder=tmp_path)
    assert made.whole.x.classes == ("cat", "dog") and made.whole.x.y.tolist() == [1, 0]
    assert data_notes(made) == [
        "The labels y are 2 classes by name: 0 = cat, 1 = dog.",
        "1 of 3 rows with missing values were left out.",
    ]


def test_precision_is_that_of_the_spec(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n2,1\n", "utf-8")
    given = {"x": {"law": "dataset", "file": "rows.csv"}, "neuron": "erf"}
    for precision in ("float32", "float64"):
        made = study(f"precision={precision}", problem=given, risk={}, folder=tmp_path)
        assert made.whole.x.x.dtype == made.risk.sample.x.dtype == jnp.dtype(precision)


def test_no_stream_is_drawn_from_twice():
    assert len({TEST, KERNEL, VERDICT, DIRECTIONS}) == 4
    assert min(TEST, KERNEL, VERDICT, DIRECTIONS) > 2**31 + 10**6  # beyond every seed
