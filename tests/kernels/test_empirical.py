import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels_models import cases, explicit, mlp, normal, two_layer
from wideflow.kernels.empirical.ntk import empirical_ntk, plan
from wideflow.kernels.parameters import same_tree

CASES = cases()
METHODS = ("contraction", "products")
# Relative to the largest entry: sums of some hundred products, each rounded at 1e-16.
DIGITS = 1e-12


def close(kernel, reference, digits=DIGITS):
    np.testing.assert_allclose(kernel, reference, rtol=0, atol=digits * abs(reference).max(), strict=True)


def diagonal(kernel):
    return kernel[np.arange(len(kernel)), np.arange(len(kernel))]


def mean_over_outputs(kernel):
    return kernel if kernel.ndim == 2 else np.trace(kernel, axis1=2, axis2=3) / kernel.shape[2]


# --- against explicit Jacobians ----------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_every_form_equals_explicit_jacobians(case, method):
    f, params, x, other = CASES[case]
    reference = explicit(f, params, x)
    close(empirical_ntk(f, params, x, method=method), reference)
    close(empirical_ntk(f, params, x, other, method=method), explicit(f, params, x, other))
    close(empirical_ntk(f, params, x, form="trace", method=method), mean_over_outputs(reference))
    close(empirical_ntk(f, params, x, form="diagonal", method=method), diagonal(reference))


@pytest.mark.parametrize("memory", [1, 20_000])
@pytest.mark.parametrize("method", METHODS)
def test_small_tiles_give_the_same(method, memory):
    f, params, x, other = CASES["mlp"]
    options = {"method": method, "memory": memory}
    assert plan(f, params, x, **options).tile < len(x)
    for second in (None, other):
        reference = explicit(f, params, x, second)
        close(empirical_ntk(f, params, x, second, **options), reference)
        close(empirical_ntk(f, params, x, second, form="trace", **options), mean_over_outputs(reference))
    close(empirical_ntk(f, params, x, form="diagonal", **options), diagonal(explicit(f, params, x)))


@pytest.mark.parametrize("method", METHODS)
def test_leaves_longer_than_a_slice(method):
    """9000 and 18000 weights a leaf: two whole slices of the sum over parameters and a rest."""
    params = (normal(0, 9000), normal(1, 9000, 2))
    x = normal(2, 3, 2)
    close(empirical_ntk(two_layer, params, x, method=method), explicit(two_layer, params, x))


@pytest.mark.parametrize("form", ["full", "trace", "diagonal"])
@pytest.mark.parametrize("method", METHODS)
def test_kernels_of_leaves_sum_to_the_kernel(method, form):
    f, params, x, _ = CASES["mlp"]
    options = {"form": form, "method": method}
    parts = empirical_ntk(f, params, x, per_leaf=True, **options)
    assert jax.tree.structure(parts) == jax.tree.structure(params)
    close(sum(jax.tree.leaves(parts)), np.asarray(empirical_ntk(f, params, x, **options)))
    if form == "full":  # each of them is the kernel in which that leaf alone moves
        for i, part in enumerate(jax.tree.leaves(parts)):
            alone = explicit(f, params, x, rates=np.eye(6)[i])
            close(part, alone)


@pytest.mark.parametrize("method", METHODS)
def test_rates_weigh_the_leaves(method):
    f, params, x, _ = CASES["mlp"]
    prefix = [2.0, (0.5, 0.0), 3.0]  # one number for both leaves of the first and of the last layer
    reference = explicit(f, params, x, rates=[2.0, 2.0, 0.5, 0.0, 3.0, 3.0])
    close(empirical_ntk(f, params, x, rates=prefix, method=method), reference)
    close(empirical_ntk(f, params, x, rates=0.25, method=method), 0.25 * explicit(f, params, x))


@pytest.mark.parametrize("case", CASES)
def test_positive_semi_definite_and_symmetric(case):
    f, params, x, _ = CASES[case]
    kernel = np.asarray(empirical_ntk(f, params, x))
    n = len(x) * (kernel.shape[2] if kernel.ndim == 4 else 1)
    matrix = kernel if kernel.ndim == 2 else kernel.transpose(0, 2, 1, 3).reshape(n, n)
    values = np.linalg.eigvalsh(matrix)
    close(matrix, matrix.T, 1e-15)  # two orders of summation inside a block of outputs
    assert values[0] > -1e-14 * values[-1]  # rounding of entries, times √n


def test_integer_leaves_and_functions_are_held():
    f, params, x, _ = CASES["dictionary"]
    assert empirical_ntk(f, params, x, per_leaf=True)["step"] is None
    module = eqx.nn.MLP(4, 2, 8, 2, key=jax.random.key(8))  # with its activations among the leaves
    equinox, weights = CASES["equinox"][:2]
    whole = empirical_ntk(lambda model, x: jax.vmap(model)(x), module, x)
    close(whole, explicit(equinox, weights, x))


def test_single_precision():
    f, params, x, _ = CASES["mlp"]
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), params)
    for method in METHODS:
        kernel = empirical_ntk(f, single, np.float32(x), method=method)
        assert kernel.dtype == jnp.float32
        close(np.float64(kernel), explicit(f, params, x), 1e-5)  # a hundred roundings of 6e-8


# --- plan, compilation ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["full", "diagonal"])
def test_no_new_trace_on_the_second_call(method, form):
    traces = []

    def counted(params, x):
        if isinstance(x, jax.core.Tracer):
            traces.append(x.shape)
        return mlp(params, x)

    _, params, x, _ = CASES["mlp"]
    options = {"method": method, "form": form}
    empirical_ntk(counted, params, x, rates=1.0, **options)
    first = len(traces)
    moved = jax.tree.map(lambda leaf: 2 * leaf, params)
    empirical_ntk(counted, moved, 3 * x, rates=0.5, **options)
    # One abstract evaluation of the output's shape; it compiles nothing.
    assert first > 1 and len(traces) - first <= 1


def test_plan_prefers_what_is_cheaper_and_fits():
    _, params, x, _ = CASES["mlp"]
    # 1000 outputs of few parameters: O² products of Jacobian rows against O pushes.
    many = [(normal(0, 4, 30), normal(1, 30)), (normal(2, 30, 1000), normal(3, 1000))]
    assert plan(mlp, many, x).method == "products"
    # The trace needs O products of rows, less than O pushes through the whole network.
    assert plan(mlp, params, jnp.tile(x, (40, 1)), form="trace").method == "contraction"
    # No budget for a Jacobian of one sample with all its outputs.
    tight = plan(mlp, many, x, form="trace", memory=2 * 10**6)
    assert tight.method == "products" and tight.bytes <= 2 * 10**6 and "alone fits" in tight.why
    forced = plan(mlp, many, x, method="contraction", memory=10**5)
    assert forced.tile == 1 and "exceeds the budget" in forced.why


# --- bad input -----------------------------------------------------------------------------------


def test_coupled_rows_and_randomness_are_refused():
    _, params, x, _ = CASES["mlp"]
    rng, key = np.random.default_rng(0), jax.random.key(0)

    def normalised(params, x):
        h = mlp(params, x)
        return (h - h.mean(0)) / (1 + h.std(0))

    def dropout(params, x):
        return mlp(params, x * jax.random.bernoulli(key, 0.5, x.shape))

    with pytest.raises(ValueError, match="row by row"):
        empirical_ntk(normalised, params, x)
    with pytest.raises(ValueError, match="row by row"):
        empirical_ntk(dropout, params, x)
    with pytest.raises(ValueError, match="two answers"):
        empirical_ntk(lambda p, x: mlp(p, x * rng.random(x.shape)), params, x)


@pytest.mark.parametrize("form", ["full", "trace", "diagonal"])
@pytest.mark.parametrize("method", METHODS)
def test_the_first_sample_without_a_finite_kernel_is_named(method, form):
    def root(params, x):
        return jnp.sqrt(params["w"] * x[:, 0])

    x = np.ones((6, 1))
    x[[3, 4]] = 0.0
    with pytest.raises(ValueError, match=r"x1\[3\]"):
        empirical_ntk(root, {"w": jnp.asarray(2.0)}, x, form=form, method=method)
    if form == "full":
        with pytest.raises(ValueError, match=r"x2\[3\]"):
            empirical_ntk(root, {"w": jnp.asarray(2.0)}, np.ones((2, 1)), x, method=method)


BAD = {
    "form": ({"form": "ful"}, "Did you mean 'full'"),
    "method": ({"method": "jacobian"}, "method must be one of"),
    "memory": ({"memory": 0}, "memory must be"),
    "rates": ({"rates": [1.0, 2.0]}, "rates must be"),
    "rate": ({"rates": -1.0}, "a rate must be"),
    "x2": ({"x2": np.ones((3, 5))}, "samples of one kind"),
    "diagonal": ({"x2": np.ones((3, 4)), "form": "diagonal"}, "x1 alone"),
    "nan": ({"x1": np.full((3, 4), np.nan)}, "x1 must be finite"),
    "nan in params": (
        {"params": {"w": jnp.ones(3), "b": jnp.array([1.0, np.nan])}},
        r"params must be finite, but \['b'\] has 1 of 2",
    ),
    "x and y": (
        {"x1": (np.ones((3, 4)), np.ones(3))},
        r"x1 must be one array.*tuple of 2 parts \(\(3, 4\), \(3,\)\).*pass the first",
    ),
    "no array": ({"x2": None, "x1": None}, "x1 must be one array"),
    "no rows": ({"x1": np.ones((0, 4))}, "at least one sample"),
    "f": ({"f": 3}, "f must be a JAX function"),
    "rows": ({"f": lambda p, x: x.sum()}, "a row for each"),
    "dtype": ({"f": lambda p, x: jnp.argmax(mlp(p, x), 1)}, "real floating dtype"),
    "pair": ({"f": lambda p, x: (mlp(p, x), x)}, "one array"),
    "integers": ({"params": [jnp.arange(3)]}, "at least one array"),
    "complex": ({"params": [jnp.ones(3, complex)]}, "must be real"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    changed, message = BAD[case]
    f, params, x, _ = CASES["mlp"]
    with pytest.raises(ValueError, match=message):
        empirical_ntk(**{"f": f, "params": params, "x1": x, **changed})


shapes = st.dictionaries(
    st.sampled_from("abc"), st.lists(st.integers(1, 3), max_size=2).map(tuple), min_size=1, max_size=3
)


@settings(deadline=None, max_examples=50)
@given(shapes, shapes)
def test_trees_that_differ_are_refused_with_the_first_difference(first, second):
    one, two = ({name: np.ones(shape) for name, shape in tree.items()} for tree in (first, second))
    if first == second:
        same_tree("before", one, "after", two)
        return
    names = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    with pytest.raises(ValueError) as error:
        same_tree("before", one, "after", two)
    assert any(f"['{name}']" in str(error.value) for name in names) and "before" in str(error.value)


def test_trees_of_other_containers_are_refused():
    with pytest.raises(ValueError, match="same structure"):
        same_tree("before", (np.ones(2),), "after", [np.ones(2)])
    with pytest.raises(ValueError, match=r"float64 \(2,\).*float32 \(2,\)"):
        same_tree("before", [np.ones(2)], "after", [np.ones(2, np.float32)])


def test_a_weakly_typed_parameter_keeps_its_digits():
    f = lambda params, x: jnp.sin(params["a"] * x[:, 0])
    x = np.linspace(0.1, 1.0, 5)[:, None]
    K = empirical_ntk(f, {"a": jnp.asarray(0.7)}, x)
    slope = x[:, 0] * np.cos(0.7 * x[:, 0])
    np.testing.assert_allclose(K, np.outer(slope, slope), rtol=1e-13)
