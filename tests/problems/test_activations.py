import math
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wideflow._shown import shown
from wideflow.problems.activations import Activation, activation, derivative, jumps, names

examples = settings(derandomize=True, deadline=None, max_examples=60)

RAMP = ((-1.0, -1.0), (0.5, 0.2), (2.0, 3.0))
OPTIONS = {"hermite": {"degree": 3}, "piecewise_linear": {"knots": RAMP}}
ALL = [activation(name, **OPTIONS.get(name, {})) for name in names()]
H = np.linspace(-3.0, 3.0, 13)

REFERENCES = {
    "relu": lambda h: max(h, 0.0),
    "leaky_relu": lambda h: h if h > 0 else 0.01 * h,
    "erf": math.erf,
    "tanh": math.tanh,
    "sigmoid": lambda h: 1 / (1 + math.exp(-h)),
    "softplus": lambda h: math.log(1 + math.exp(h)),
    "gelu": lambda h: h * (1 + math.erf(h / math.sqrt(2))) / 2,
    "sin": math.sin,
    "cos": math.cos,
    "identity": lambda h: h,
    "square": lambda h: h**2,
    "hermite": lambda h: (h**3 - 3 * h) / math.sqrt(6),
    "piecewise_linear": lambda h: np.interp(h, *np.array(RAMP).T),
}


@pytest.mark.parametrize("phi", ALL, ids=lambda phi: phi.name)
def test_values_and_dtypes(phi):
    exact = [REFERENCES[phi.name](h) for h in H]
    # Rounding of a few operations on numbers up to 10.
    np.testing.assert_allclose(phi(jnp.asarray(H)), exact, rtol=0, atol=1e-14)
    assert phi(jnp.asarray(H, jnp.float32)).dtype == jnp.float32
    assert jnp.isnan(phi(jnp.asarray(jnp.nan)))


@pytest.mark.parametrize("degree", [0, 1, 2, 7])
def test_hermite_is_normalised_and_orthogonal(degree):
    z, w = np.polynomial.hermite_e.hermegauss(20)  # exact up to degree 39
    w = w / w.sum()
    phi = activation("hermite", degree=degree)(jnp.asarray(z))
    other = activation("hermite", degree=degree + 2)(jnp.asarray(z))
    # Rounding: the largest terms of the sum are about 10.
    np.testing.assert_allclose([w @ phi**2, w @ (phi * other)], [1.0, 0.0], rtol=0, atol=1e-13)


@pytest.mark.parametrize("phi", ALL, ids=lambda phi: phi.name)
def test_left_derivative_at_kinks(phi):
    for kink in phi.kinks:
        left = (phi(kink) - phi(kink - 1e-6)) / 1e-6
        # Exact for piecewise linear functions but for 1e-16/1e-6 of rounding.
        np.testing.assert_allclose(derivative(phi)(jnp.asarray(kink)), left, rtol=0, atol=1e-9)


@pytest.mark.parametrize("phi", ALL, ids=lambda phi: phi.name)
def test_kinks_are_where_the_derivative_jumps(phi):
    assert not jumps(phi)
    assert jumps(derivative(phi)) == bool(phi.kinks)
    fine = jnp.linspace(-3, 3, 600_001)
    steps = jnp.abs(jnp.diff(derivative(phi)(fine)))
    # |φ''| ≤ 50 on [−3, 3], so a smooth φ' moves by at most 5e-4 per step; the jumps are ≥ 0.8.
    near = jnp.any(jnp.abs(fine[:-1, None] - jnp.asarray(phi.kinks)) < 2e-5, axis=1)
    assert jnp.all(near | (steps < 1e-3))


def test_equal_arguments_give_equal_objects():
    for name in names():
        first, second = (activation(name, **OPTIONS.get(name, {})) for _ in range(2))
        assert first == second and hash(first) == hash(second)
    assert activation("leaky_relu") == activation("leaky_relu", slope=0.01)
    assert activation("leaky_relu") != activation("leaky_relu", slope=0.02)
    assert activation("piecewise_linear", knots=[[0, 0], [1, 2]]) == activation(
        "piecewise_linear", knots=np.array([[0.0, 0.0], [1.0, 2.0]])
    )
    assert activation("hermite", degree=np.int64(3)) == activation("hermite", degree=3)
    assert activation("hermite", degree=2) != activation("hermite", degree=3)


def test_jit_traces_once_for_equal_activations():
    traces = []

    def apply(phi, h):
        traces.append(phi.name)
        return phi(h)

    jitted = jax.jit(apply, static_argnums=0)
    for _ in range(2):
        jitted(activation("hermite", degree=3), jnp.asarray(H))
    assert traces == ["hermite"]
    jitted(activation("hermite", degree=4), jnp.asarray(H))
    assert traces == ["hermite"] * 2


def test_from_activation_and_callable():
    def swish(h):
        return h * jax.nn.sigmoid(h)

    own = Activation("abs", jnp.abs, kinks=(0.0,))
    assert activation(own) is own
    assert activation(swish) == Activation("swish", swish) == activation(swish)
    assert activation(jax.nn.relu) == activation("relu")  # not a φ without kinks
    assert jumps(Activation("step", lambda h: jnp.where(h > 1, 1.0, 0.0), kinks=(1.0,)))


@pytest.mark.parametrize(
    "bad",
    [jnp.sum, jax.nn.softmax, jnp.isnan, math.tanh, lambda h: (h, h), lambda g, h: h],
    ids=["reduces", "mixes", "bool", "not-jax", "tuple", "two-arguments"],
)
def test_callables_must_be_elementwise(bad):
    with pytest.raises(ValueError, match="elementwise"):
        activation(bad)


@pytest.mark.parametrize("spec", [None, 3, ["relu"]])
def test_other_specifications_are_refused(spec):
    with pytest.raises(ValueError, match=r"name, an Activation or a JAX callable.*piecewise_linear"):
        activation(spec)


def test_a_name_of_any_length_is_refused_without_comparing_it(monkeypatch):
    """10⁸ letters were compared with every known name, for minutes."""
    monkeypatch.setattr("difflib.get_close_matches", lambda *_, **__: pytest.fail("it was compared"))
    with pytest.raises(ValueError, match="Unknown activation"):
        activation("relu" * 1000)


@examples
@given(st.sampled_from(names()), st.data())
def test_typos_get_the_nearest_name(name, data):
    i = data.draw(st.integers(0, len(name) - 1))
    typo = data.draw(st.sampled_from([name[: i + 1] + name[i:], name.upper(), name + "x"]))
    with pytest.raises(ValueError) as error:
        activation(typo)
    message = str(error.value)
    assert repr(typo) in message and f"Did you mean {name!r}?" in message
    assert all(known in message for known in names())


@examples
@given(st.text().filter(lambda text: text not in names()))
def test_any_unknown_name_lists_the_known(text):
    with pytest.raises(ValueError) as error:
        activation(text)
    assert all(part in str(error.value) for part in (repr(text), *names()))


@examples
@given(st.one_of(st.integers(max_value=-1), st.floats(), st.booleans(), st.text(), st.none(), st.just([1])))
def test_bad_degrees(degree):
    with pytest.raises(ValueError, match="degree must be a whole number >= 0, got") as error:
        activation("hermite", degree=degree)
    assert repr(degree) in str(error.value)


NUMBERS = st.floats(-5, 5)
PAIRS = st.tuples(NUMBERS, NUMBERS)


@examples
@given(
    st.one_of(
        st.lists(PAIRS, max_size=1),
        st.lists(PAIRS, min_size=2).filter(lambda p: any(b <= a for (a, _), (b, _) in pairwise(p))),
        st.tuples(PAIRS, st.tuples(st.just(6.0), st.sampled_from([math.nan, math.inf]))),
        st.lists(NUMBERS),
        st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2),
        st.text(),
        st.none(),
    )
)
def test_bad_knots(knots):
    with pytest.raises(ValueError, match="knots must be from 2 to 256 finite pairs") as error:
        activation("piecewise_linear", knots=knots)
    assert shown(knots) in str(error.value) and "Try knots=" in str(error.value)


@pytest.mark.parametrize("slope", [math.nan, math.inf, "steep", None, (1, 2)])
def test_bad_slopes(slope):
    with pytest.raises(ValueError, match=r"slope must be a finite number; got .* Try slope=0.01"):
        activation("leaky_relu", slope=slope)


def test_unknown_missing_and_misplaced_options():
    with pytest.raises(ValueError, match=r"'hermite' has no option \['order'\]; it takes degree"):
        activation("hermite", order=3)
    with pytest.raises(ValueError, match=r"'relu' has no option \['slope'\]; it takes no options"):
        activation("relu", slope=3)
    with pytest.raises(ValueError, match=r"'hermite' needs the option \['degree'\]"):
        activation("hermite")
    with pytest.raises(ValueError, match=r"Options \['slope'\] were given"):
        activation(jnp.tanh, slope=1.0)
