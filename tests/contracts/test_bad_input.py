"""Bad input ends in a ValueError that names the argument, what was given and what is allowed; what is
larger than memory in a MemoryError, before anything is allocated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wideflow as wf
from wideflow import _checks

ERF, KEY = wf.Neuron("erf"), jax.random.key(0)
PROBLEM = wf.Problem(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=ERF)
DATA = wf.Dataset(np.eye(2), [1.0, -1.0])
START = wf.init(PROBLEM).sample(KEY, 3)
RISK = wf.Risk(PROBLEM, wf.Sample(10))
NAN, INF = float("nan"), float("inf")


def problem(**changes):
    return wf.Problem(**(dict(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=ERF) | changes))


def crash(*_):
    raise RuntimeError("mine")


# name of the call, the call, and what its message must hold: the argument, what was given or allowed
CASES = [
    # laws
    *(
        (f"{law.__name__}({d!r})", lambda law=law, d=d: law(d), [f"{law.__name__}(d)", repr(d), ">="])
        for law in (wf.Gaussian, wf.Sphere)
        for d in (0, -1, 1.5, "3", None, True, NAN)
    ),
    ("sphere in d = 1", lambda: wf.Sphere(1), ["Sphere(d)", "got 1", ">= 2"]),
    ("covariance of another d", lambda: wf.Gaussian(2, np.eye(3)), ["covariance", "(3, 3)", "(2, 2)"]),
    ("covariance with NaN", lambda: wf.Gaussian(2, [1.0, NAN]), ["covariance", "nan", "index (1,)"]),
    (
        "covariance, negative",
        lambda: wf.Gaussian(2, [1.0, -1.0]),
        ["covariance", "positive semi-definite", "-1"],
    ),
    ("covariance 0", lambda: wf.Gaussian(2, [0.0, 0.0]), ["covariance", "not 0"]),
    (
        "covariance, asymmetric",
        lambda: wf.Gaussian(2, [[1.0, 0.5], [0.0, 1.0]]),
        ["covariance", "symmetric", "0.5"],
    ),
    ("covariance of strings", lambda: wf.Gaussian(2, ["a", "b"]), ["covariance", "real numbers"]),
    ("covariance, ragged", lambda: wf.Gaussian(2, [[1.0], [0.0, 1.0]]), ["covariance", "array of numbers"]),
    ("no components", lambda: wf.Mixture([], []), ["components", "[]"]),
    ("one component, no list", lambda: wf.Mixture(wf.Gaussian(2), [1.0]), ["components", "list"]),
    ("component of another kind", lambda: wf.Mixture([wf.Sphere(2)], [1.0]), ["components", "Sphere"]),
    (
        "components of unlike d",
        lambda: wf.Mixture([wf.Gaussian(1), wf.Gaussian(2)], [1, 2]),
        ["components", "[1, 2]"],
    ),
    ("too few labels", lambda: wf.Mixture([wf.Gaussian(2)] * 2, [1.0]), ["labels", "(2,)", "(1,)"]),
    (
        "mixture weights",
        lambda: wf.Mixture([wf.Gaussian(2)] * 2, [1, 2], [0.5, 0.6]),
        ["weights", "sum to 1", "0.6"],
    ),
    ("mixture label NaN", lambda: wf.Mixture([wf.Gaussian(2)], [NAN]), ["labels", "nan"]),
    ("delta 1", lambda: wf.two_gaussians(2, 1.0), ["delta", "[0, 1)", "1.0"]),
    ("delta -0.1", lambda: wf.two_gaussians(2, -0.1), ["delta", "-0.1"]),
    (
        "X a vector",
        lambda: wf.Dataset(np.ones(3), np.ones(3)),
        ["Dataset(X)", "(3,)", "(m, d)", "X[:, None]"],
    ),
    ("X of images", lambda: wf.Dataset(np.ones((3, 2, 2)), np.ones(3)), ["Dataset(X)", "reshape"]),
    ("X empty", lambda: wf.Dataset(np.ones((0, 2)), np.ones(0)), ["Dataset(X)", "(0, 2)", ">= 1"]),
    ("X of strings", lambda: wf.Dataset([["a"]], [1.0]), ["Dataset(X)", "real numbers"]),
    (
        "X with NaN",
        lambda: wf.Dataset([[1.0, 2.0], [3.0, NAN]], [1.0, 2.0]),
        ["Dataset(X)", "nan", "index (1, 1)"],
    ),
    ("y with inf", lambda: wf.Dataset(np.eye(3), [1.0, 2.0, INF]), ["Dataset(y)", "inf", "index (2,)"]),
    ("y too short", lambda: wf.Dataset(np.eye(3), [1.0, 2.0]), ["Dataset(y)", "3 rows", "(2,)"]),
    ("y complex", lambda: wf.Dataset(np.eye(2), [1j, 2.0]), ["Dataset(y)", "real", "complex"]),
    ("data weights, negative", lambda: wf.Dataset(np.eye(2), [1, 2], [1.0, -1.0]), ["weights", ">= 0", "-1"]),
    ("data weights, all 0", lambda: wf.Dataset(np.eye(2), [1, 2], [0.0, 0.0]), ["weights", "not all 0"]),
    (
        "data weights, too many",
        lambda: wf.Dataset(np.eye(2), [1, 2], np.ones(3)),
        ["weights", "2 numbers", "(3,)"],
    ),
    ("sampler, no function", lambda: wf.laws.Sampler(3, 2), ["Sampler(fn)", "3"]),
    (
        "sampler of another d",
        lambda: wf.laws.Sampler(lambda k, m: jnp.ones((m, 3)), 2),
        ["Sampler(fn)", "(3, 2)", "(3, 3)"],
    ),
    (
        "sampler, hidden labels",
        lambda: wf.laws.Sampler(lambda k, m: (jnp.ones((m, 2)), 0), 2),
        ["fn", "labelled=True"],
    ),
    (
        "sampler, no labels",
        lambda: wf.laws.Sampler(lambda k, m: jnp.ones((m, 2)), 2, labelled=True),
        ["fn", "and y"],
    ),
    ("sampler that crashes", lambda: wf.laws.Sampler(crash, 2), ["Sampler(fn)", "mine"]),
    # targets
    ("direction 0", lambda: wf.single_index("erf", [0.0, 0.0]), ["direction", "not 0"]),
    ("direction a matrix", lambda: wf.single_index("erf", np.eye(2)), ["direction", "vector"]),
    ("direction NaN", lambda: wf.polynomial([1.0], [1.0, NAN]), ["polynomial(direction)", "nan"]),
    ("unknown link", lambda: wf.single_index("errf"), ["'errf'", "Did you mean 'erf'?"]),
    ("degree -1", lambda: wf.hermite(-1), ["degree", "-1", ">= 0"]),
    ("no coefficients", lambda: wf.polynomial([]), ["coefficients", "(0,)"]),
    ("coefficient inf", lambda: wf.polynomial([1.0, INF]), ["coefficients", "inf"]),
    ("teacher without rows", lambda: wf.teacher(np.ones((0, 2))), ["teacher(w)", "(0, 2)", "(k, d)"]),
    ("teacher a vector", lambda: wf.teacher([1.0, 2.0]), ["teacher(w)", "(2,)"]),
    ("teacher's a", lambda: wf.teacher(np.eye(2), a=[1.0]), ["teacher(a)", "(2,)", "(1,)"]),
    ("multi-index without function", lambda: wf.multi_index("erf", 1), ["multi_index(fn)", "'erf'"]),
    ("multi-index k 0", lambda: wf.multi_index(jnp.sum, 0), ["multi_index(k)", "got 0"]),
    (
        "multi-index directions",
        lambda: wf.multi_index(jnp.sum, 2, np.eye(3)),
        ["directions", "(3, 3)", "k = 2"],
    ),
    # neurons
    ("unknown activation", lambda: wf.Neuron("rellu"), ["'rellu'", "Did you mean 'relu'?"]),
    ("activation 3", lambda: wf.Neuron(3), ["activation", "3"]),
    ("outputs 0", lambda: wf.Neuron("erf", outputs=0), ["Neuron(outputs)", "got 0"]),
    ("output misspelt", lambda: wf.Neuron("erf", output="fixed"), ["Neuron(output)", "'fixed'", "frozen"]),
    ("unit with outputs", lambda: wf.Neuron("erf", output="unit", outputs=2), ["Neuron(outputs)", "got 2"]),
    ("bias yes", lambda: wf.Neuron("erf", bias="yes"), ["Neuron(bias)", "'yes'"]),
    ("custom, no function", lambda: wf.CustomNeuron(1, 2), ["CustomNeuron(fn)", "got 1"]),
    ("custom, dim 0", lambda: wf.CustomNeuron(crash, 0), ["CustomNeuron(dim)", "got 0"]),
    # losses
    ("Huber 0", lambda: wf.losses.Huber(0.0), ["Huber(delta)", "> 0", "0.0"]),
    ("Huber NaN", lambda: wf.losses.Huber(NAN), ["Huber(delta)", "nan"]),
    ("unknown loss", lambda: problem(loss="hubr"), ["'hubr'", "Did you mean 'huber'?", "known"]),
    # problems
    ("x not a law", lambda: problem(x=3), ["Problem(x)", "got 3", "wf.Gaussian"]),
    ("neuron a name", lambda: problem(neuron="erf"), ["Problem(neuron)", "'erf'", "wf.Neuron"]),
    ("loss a class", lambda: problem(loss=wf.losses.Squared), ["Problem(loss)", "Squared"]),
    ("noise -1", lambda: problem(noise=-1), ["Problem(noise)", "-1", ">= 0"]),
    ("noise '1'", lambda: problem(noise="1"), ["Problem(noise)", "'1'"]),
    ("noise of arrays", lambda: problem(noise=np.ones(2)), ["Problem(noise)", "array"]),
    ("no target", lambda: problem(target=None), ["Problem(target)", "Gaussian", "single_index"]),
    ("two targets", lambda: problem(x=DATA), ["Problem(target)", "Dataset", "left out"]),
    ("noise on data", lambda: problem(x=DATA, target=None, noise=0.1), ["Problem(noise)", "0.1"]),
    ("target 3", lambda: problem(target=3), ["Problem(target)", "got 3"]),
    (
        "target in another R^d",
        lambda: problem(target=wf.single_index("erf", np.ones(3))),
        ["target", "R^2", "R^3"],
    ),
    (
        "target of too many axes",
        lambda: problem(target=wf.multi_index(jnp.sum, 3)),
        ["target", "k = 3", "R^2"],
    ),
    ("target that crashes", lambda: problem(target=crash), ["Problem(target)", "R^2", "mine"]),
    ("target of two outputs", lambda: problem(target=lambda x: x), ["1 output", "(64, 2)", "outputs="]),
    ("target a matrix", lambda: problem(target=lambda x: jnp.outer(x, x)), ["Problem(target)", "(3, 2, 2)"]),
    (
        "y of one output for three",
        lambda: problem(neuron=wf.Neuron("erf", outputs=3)),
        ["3 output", "3)", "(64,)"],
    ),
    (
        "custom neuron of shape (1,)",
        lambda: problem(neuron=wf.CustomNeuron(lambda x, t: t, 1)),
        ["neuron", "(1,)", "()"],
    ),
    (
        "custom neuron that crashes",
        lambda: problem(neuron=wf.CustomNeuron(crash, 1)),
        ["Problem(neuron)", "mine"],
    ),
    (
        "logistic labels",
        lambda: wf.Problem(x=wf.Dataset(np.eye(2), [0, 1]), neuron=ERF, loss="logistic"),
        ["Logistic", "-1 or +1", "0, 1"],
    ),
    (
        "logistic labels of a rare class",
        lambda: wf.Problem(
            x=wf.Mixture([wf.Gaussian(2)] * 2, [1.0, 0.5], [1 - 1e-9, 1e-9]), neuron=ERF, loss="logistic"
        ),
        ["Logistic", "0.5"],
    ),
    (
        "class out of range",
        lambda: wf.Problem(
            x=wf.Dataset(np.eye(3), [0, 1, 3]), neuron=wf.Neuron("erf", outputs=3), loss="cross_entropy"
        ),
        ["class number", "0…2", "3"],
    ),
    (
        "one class",
        lambda: wf.Problem(x=wf.Dataset(np.eye(2), [0, 0]), neuron=ERF, loss="cross_entropy"),
        ["SoftmaxCrossEntropy", "outputs="],
    ),
    ("sample of 0", lambda: PROBLEM.sample(KEY, 0), ["m must", "got 0"]),
    ("sample by a number", lambda: PROBLEM.sample(0, 5), ["key", "got 0", "jax.random.key"]),
    ("quadrature of order 0", lambda: PROBLEM.quadrature(0), ["order", "got 0"]),
    # nodes
    (
        "nodes of unlike lengths",
        lambda: wf.types.Nodes(np.eye(3), np.ones(2), np.ones(3) / 3),
        ["Nodes", "(2,)", "(m, d)"],
    ),
    (
        "nodes that weigh 2",
        lambda: wf.types.Nodes(np.eye(2), [1.0, 2.0], [1.0, 1.0]),
        ["Nodes(weights)", "sum to 1", "2.0"],
    ),
    (
        "nodes with NaN",
        lambda: wf.types.Nodes(np.eye(2), [1.0, NAN], [0.5, 0.5]),
        ["Nodes(y)", "nan", "(1,)"],
    ),
    # particles
    ("theta a vector", lambda: wf.Particles(np.ones(3), neuron=ERF), ["Particles(theta)", "(3,)", "(n, D)"]),
    (
        "theta ragged",
        lambda: wf.Particles([[1.0, 2.0], [3.0]], neuron=ERF),
        ["Particles(theta)", "array of numbers"],
    ),
    ("theta with NaN", lambda: wf.Particles([[1.0, NAN]], neuron=ERF), ["Particles(theta)", "nan", "(0, 1)"]),
    (
        "theta without w",
        lambda: wf.Particles(np.ones((3, 1)), neuron=ERF),
        ["Particles(theta)", "D = 2 or more", "1"],
    ),
    (
        "theta of a custom neuron",
        lambda: wf.Particles(np.ones((3, 2)), neuron=wf.CustomNeuron(crash, 4)),
        ["Particles(theta)", "D = 4", "got 2"],
    ),
    (
        "weights that sum to 2",
        lambda: wf.Particles(np.eye(2), [1.0, 1.0], neuron=ERF),
        ["weights", "sum to 1", "2.0"],
    ),
    (
        "weights, negative",
        lambda: wf.Particles(np.eye(2), [2.0, -1.0], neuron=ERF),
        ["weights", ">= 0", "-1.0"],
    ),
    ("weights, too few", lambda: wf.Particles(np.eye(2), [1.0], neuron=ERF), ["weights", "(2,)", "(1,)"]),
    ("no neuron", lambda: wf.Particles(np.eye(2)), ["Particles(neuron)", "None", "wf.Neuron"]),
    *(
        (f"alpha {a!r}", lambda a=a: wf.Particles(np.eye(2), alpha=a, neuron=ERF), ["Particles(alpha)"])
        for a in (0.0, -1.0, NAN, INF, "1", None, [1.0, 2.0])
    ),
    ("x of another d", lambda: START(np.ones((4, 5))), ["input x", "(4, 5)", "R^3"]),
    ("x a vector", lambda: START(np.ones(2)), ["input x", "(2,)", "(m, d)"]),
    # starts
    ("init of a number", lambda: wf.init(3), ["init(problem)", "3"]),
    ("a = -1", lambda: wf.init(PROBLEM, a=-1.0), ["init(a)", "-1.0", ">= 0"]),
    ("w = 'x'", lambda: wf.init(PROBLEM, w="x"), ["init(w)", "'x'"]),
    ("b without bias", lambda: wf.init(PROBLEM, b=1.0), ["bias", "init(b"]),
    (
        "a of a unit output",
        lambda: wf.init(problem(neuron=wf.Neuron("erf", output="unit")), a=1.0),
        ["a = 1", "init(a"],
    ),
    ("theta of a ridge neuron", lambda: wf.init(PROBLEM, theta=1.0), ["init(theta", "custom"]),
    (
        "a of a custom neuron",
        lambda: wf.init(problem(neuron=wf.CustomNeuron(lambda x, t: t[0], 1)), a=1.0),
        ["init(a, w, b)", "theta"],
    ),
    (
        "law of a wrong shape",
        lambda: wf.init(PROBLEM, w=lambda k, s: jnp.ones(7)).sample(KEY, 3),
        ["(2,)", "(7,)"],
    ),
    ("0 neurons", lambda: wf.init(PROBLEM).sample(KEY, 0), ["n must", "got 0"]),
    ("1.5 neurons", lambda: wf.init(PROBLEM).sample(KEY, 1.5), ["n must", "1.5"]),
    ("key 0", lambda: wf.init(PROBLEM).sample(0, 3), ["key", "got 0", "jax.random.key"]),
    ("dtype int", lambda: wf.init(PROBLEM).sample(KEY, 3, dtype=int), ["dtype", "int", "float"]),
    ("start with alpha 0", lambda: wf.init(PROBLEM).sample(KEY, 3, alpha=0.0), ["alpha", "> 0"]),
    ("sd -1", lambda: wf.laws.Normal(0.0, -1.0), ["Normal(sd)", "-1.0"]),
    ("mean NaN", lambda: wf.laws.Normal(NAN), ["Normal(mean)", "nan", "finite"]),
    ("mean 'a'", lambda: wf.laws.Normal("a"), ["Normal(mean)", "'a'"]),
    ("low above high", lambda: wf.laws.Uniform(1.0, 1.0), ["Uniform", "low < high", "1.0"]),
    ("high inf", lambda: wf.laws.Uniform(0.0, INF), ["Uniform(high)", "inf"]),
    ("signs of None", lambda: wf.laws.Rademacher(None), ["Rademacher(scale)", "None"]),
    ("constant NaN", lambda: wf.laws.Constant(NAN), ["Constant(value)", "nan"]),
    # functionals
    ("risk of a number", lambda: wf.Risk(3), ["Risk(problem)", "3"]),
    (
        "expectation a name",
        lambda: wf.Risk(PROBLEM, "sample"),
        ["Risk(expectation)", "'sample'", "wf.Sample"],
    ),
    ("expectation a class", lambda: wf.Risk(PROBLEM, wf.Sample), ["Risk(expectation)", "Sample"]),
    ("data without data", lambda: wf.Risk(PROBLEM, wf.Data()), ["wf.Data()", "Gaussian", "wf.Dataset"]),
    (
        "quadrature of data",
        lambda: wf.Risk(problem(x=DATA, target=None), wf.Quadrature(3)),
        ["Dataset", "wf.Sample"],
    ),
    (
        "quadrature in d = 4",
        lambda: wf.Risk(problem(x=wf.Gaussian(4)), wf.Quadrature(2)),
        ["d = 4", "d <= 3"],
    ),
    ("too many nodes", lambda: wf.Risk(PROBLEM, wf.Quadrature(10**4)), ["order 10000", "131072", "1e+08"]),
    ("order 0", lambda: wf.Quadrature(0), ["Quadrature(order)", "got 0"]),
    ("order '3'", lambda: wf.Quadrature("3"), ["Quadrature(order)", "'3'"]),
    (
        "noise by quadrature",
        lambda: wf.Risk(problem(loss="huber", noise=0.1), wf.Quadrature(3)),
        ["noise", "squared"],
    ),
    ("sample of -1", lambda: wf.Sample(-1), ["Sample(m)", "-1"]),
    ("seed 'a'", lambda: wf.Sample(5, seed="a"), ["Sample(seed)", "'a'"]),
    ("state a number", lambda: RISK.value(3), ["state", "got 3", "wf.Particles"]),
    (
        "state of another d",
        lambda: RISK.value(wf.Particles(np.ones((2, 6)), neuron=ERF)),
        ["R^2", "must be in R^3", "got particles in R^6"],
    ),
    (
        "state of two outputs",
        lambda: RISK.velocity(wf.Particles(np.ones((2, 4)), neuron=wf.Neuron("erf", outputs=2))),
        ["1 output", "2 output"],
    ),
    ("psi at a vector", lambda: RISK.psi(np.ones(3), START), ["theta", "(3,)", "(k, D)"]),
    ("V of another D", lambda: RISK.V(np.ones((2, 4))), ["theta", "D = 3", "(2, 4)"]),
    ("U of another D", lambda: RISK.U(np.ones((2, 3)), np.ones((2, 2))), ["theta", "D = 3", "(2, 2)"]),
    ("batch a pair", lambda: RISK.on((1, 2)), ["Risk.on(nodes)", "(1, 2)"]),
    ("factor a name", lambda: "2" * RISK, ["factor", "'2'"]),
    ("factor NaN", lambda: NAN * RISK, ["factor", "nan"]),
    ("moment of a number", lambda: wf.Moment(2), ["Moment(fn)", "2"]),
    ("moment of a vector", lambda: wf.Moment(lambda t: t).value(START), ["Moment(fn)", "(3,)"]),
    (
        "path norm of a custom neuron",
        lambda: wf.PathNorm().value(wf.Particles(np.ones((2, 1)), neuron=wf.CustomNeuron(crash, 1))),
        ["PathNorm", "CustomNeuron", "wf.Moment"],
    ),
    # distances and dynamics, the little that other tests leave
    ("w2 of matrices", lambda: wf.distances.w2_line(np.eye(2), np.eye(2)), ["w2_line", "(2, 2)"]),
    (
        "w2 of unlike Gaussians",
        lambda: wf.distances.w2_gaussian([0.0], np.eye(1), [0.0, 0.0], np.eye(2)),
        ["(1,)", "(2, 2)"],
    ),
    ("step 0", lambda: wf.GradientDescent(RISK, 0.0), ["step", "0.0", "> 0"]),
    ("step '1'", lambda: wf.SGD(RISK, "1"), ["step", "'1'"]),
    ("batch 0", lambda: wf.SGD(RISK, 0.1, batch=0), ["batch", "got 0"]),
    ("rtol -1", lambda: wf.GradientFlow(RISK, rtol=-1), ["rtol", "-1"]),
    ("beta 0", lambda: wf.Langevin(RISK, 0.1, beta=0.0), ["beta", "0.0"]),
    ("decay NaN", lambda: wf.Langevin(RISK, 0.1, beta=1.0, decay=NAN), ["decay", "nan"]),
]


@pytest.mark.parametrize(("call", "told"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_bad_input_is_refused_by_name(call, told):
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    assert all(part in message for part in told), message
    assert "Traceback" not in message and len(message) < 900


def test_ids_are_one_each():
    names = [c[0] for c in CASES]
    assert len(names) == len(set(names))


def test_weights_of_another_length_than_the_points():
    with pytest.raises(ValueError, match=r"weights.*\(2,\)"):
        wf.distances.w2_line([1.0], [1.0], [0.5, 0.5])


# --- by hypothesis -------------------------------------------------------------------------------

junk = st.one_of(
    st.none(), st.text(max_size=3), st.booleans(), st.lists(st.floats(), max_size=2), st.complex_numbers()
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.one_of(st.floats(), st.integers(), junk))
def test_positive_lets_numbers_through_and_nothing_else(value):
    number = isinstance(value, int | float)
    good = number and 0 < value < INF and abs(value) < 1e308
    try:
        assert _checks.positive("this", value) == float(value) and good
    except ValueError as error:
        assert not good and "this" in str(error) and repr(value) in str(error)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.one_of(st.floats(), st.integers(), junk))
def test_count_lets_whole_numbers_through_and_nothing_else(value):
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    try:
        assert _checks.count("this", value) == value and good
    except ValueError as error:
        assert not good and "this" in str(error) and repr(value) in str(error)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 4), st.integers(0, 2), st.sampled_from([NAN, INF, -INF]))
def test_the_first_bad_entry_of_a_data_set_is_named(row, column, bad):
    x = np.ones((5, 3))
    x[row, column] = bad
    with pytest.raises(ValueError, match=rf"Dataset\(X\).*1 of 15.*{bad} at index \({row}, {column}\)"):
        wf.Dataset(x, np.ones(5))
    x[4, 2] = bad  # the last entry: the first one stays the one that is named
    with pytest.raises(ValueError, match=rf"index \({row}, {column}\)"):
        wf.Dataset(x, np.ones(5))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 4), max_size=4))
def test_particles_of_any_shape_are_refused_or_right(shape):
    """(…, n, D) with n ≥ 1 and D ≥ 2 are particles; every other shape is refused by name."""
    good = len(shape) >= 2 and shape[-2] >= 1 and shape[-1] >= 2
    try:
        p = wf.Particles(np.ones(shape), neuron=ERF)
        assert good and p.theta.shape == tuple(shape)
    except ValueError as error:
        assert not good and "Particles(theta)" in str(error)


# --- memory --------------------------------------------------------------------------------------

HUGE = 10**12


@pytest.mark.parametrize(
    "call",
    [
        lambda: wf.init(PROBLEM).sample(KEY, HUGE),
        lambda: wf.Risk(PROBLEM, wf.Sample(HUGE)),
        lambda: PROBLEM.sample(KEY, HUGE),
        lambda: PROBLEM.fixed_sample(HUGE, KEY),
    ],
    ids=["network", "risk", "sample", "fixed sample"],
)
def test_more_than_memory_is_refused(call):
    with pytest.raises(MemoryError, match=r"1000000000000 .*needs about .* GiB, but .* GiB are free\. Use"):
        call()


def test_memory_is_asked_before_anything_is_allocated(monkeypatch):
    """A small network is refused where little is left, and a message says what would help."""
    monkeypatch.setattr(_checks, "available_memory", lambda: 1000.0)
    with pytest.raises(MemoryError, match=r"100 neurons in R\^3.*fewer neurons or dtype=jnp\.float32"):
        wf.init(PROBLEM).sample(KEY, 100)
    assert wf.init(PROBLEM).sample(KEY, 10).n == 10  # 3 · 10 · 3 · 8 = 720 bytes


def test_available_memory_is_a_number_of_bytes():
    assert 2**20 < _checks.available_memory() <= float("inf")
