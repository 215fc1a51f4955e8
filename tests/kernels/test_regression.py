"""Kernel ridge regression against primal ridge regression, repeated rows and brute-force refits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_cases import EXACT, data, gaussian, laplace, linear, matrix
from wideflow.kernels.machines.regression import kernel_regression, select_ridge
from wideflow.problems.nodes import Nodes

# --- exact answers ------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_one_point(ridge):
    """f(x) = K(x, x₁) y/(K(x₁, x₁) + ridge)."""
    fit = kernel_regression(linear, ([[2.0]], [3.0]), ridge=ridge)
    np.testing.assert_allclose(fit(np.array([[5.0]])), [10 * 3 / (4 + ridge)], rtol=1e-14)
    np.testing.assert_allclose(fit.info["risk"], 0.5 * (3 - 4 * 3 / (4 + ridge)) ** 2, atol=1e-14)
    np.testing.assert_allclose(fit.info["freedom"], 4 / (4 + ridge), rtol=1e-14)
    residuals, error = fit.leave_one_out()  # without its one row a fit is 0
    np.testing.assert_allclose([residuals[0], error], [3, 4.5], rtol=1e-14)


@pytest.mark.parametrize("outputs", [None, 3])
def test_linear_kernel_is_primal_ridge_regression(outputs):
    """f(x) = ⟨b, x⟩ with (Σ ω x xᵀ + ridge I) b = Σ ω x y; its freedom is tr C(C + ridge)⁻¹."""
    x, y, weights = data(40, d=3, outputs=outputs)
    fit = kernel_regression(linear, (x, y, weights), ridge=0.1)
    C = x.T @ (weights[:, None] * x)
    b = np.linalg.solve(C + 0.1 * np.eye(3), x.T @ (weights * y.T).T)
    new = data(7, d=3, seed=1)[0]
    np.testing.assert_allclose(fit(new), new @ b, **EXACT)
    np.testing.assert_allclose(
        fit.info["freedom"], np.trace(np.linalg.solve(C + 0.1 * np.eye(3), C)), **EXACT
    )
    risk = 0.5 * np.sum(weights * ((y - x @ b) ** 2).reshape(40, -1).sum(1))
    np.testing.assert_allclose(fit.info["risk"], risk, **EXACT)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_weights_are_repeated_rows(ridge):
    x, y, _ = data(6)
    times = np.array([1, 3, 2, 1, 0, 5])
    weighted = kernel_regression(laplace, (x, y, times / times.sum()), ridge=ridge)
    repeated = kernel_regression(laplace, (np.repeat(x, times, 0), np.repeat(y, times)), ridge=ridge)
    new = data(9, seed=1)[0]
    np.testing.assert_allclose(weighted(new), repeated(new), **EXACT)
    np.testing.assert_allclose(weighted.info["risk"], repeated.info["risk"], **EXACT)
    assert len(weighted.coefficients) == 5  # the row of weight 0 has no part
    assert repeated.info["duplicates"] == times.sum() - 5


def test_nodes_and_default_weights():
    x, y, _ = data(10)
    nodes = Nodes(jnp.array(x), jnp.array(y), jnp.full(10, 0.1))
    one, other = kernel_regression(laplace, nodes, ridge=0.2), kernel_regression(laplace, (x, y), ridge=0.2)
    np.testing.assert_allclose(one(x), other(x), **EXACT)


def test_ridge_to_zero_interpolates_at_rate_one():
    """y − f = ridge c/ω, so that the residual falls with slope 1, and is rounding at 0."""
    x, y, weights = data(30)
    ridges = np.array([1e-5, 1e-6, 1e-7])
    gaps = [np.abs(y - kernel_regression(laplace, (x, y, weights), ridge=r)(x)).max() for r in ridges]
    slopes = np.diff(np.log(gaps)) / np.diff(np.log(ridges))
    # the next term is of relative size ridge/(least eigenvalue of S), below 1e-2 here
    np.testing.assert_allclose(slopes, 1, atol=0.02)
    fit = kernel_regression(laplace, (x, y, weights))
    np.testing.assert_allclose(fit(x), y, **EXACT)
    assert fit.info["method"] == "cholesky" and fit.info["jitter"] == 0 and fit.info["rank"] == 30
    np.testing.assert_allclose(fit.info["freedom"], 30)


# --- tiles and the object --------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("rows", [1, 5, 7, 35])
def test_tiles_do_not_matter(rows, ridge):
    x, y, weights = data(35, outputs=2)
    whole = kernel_regression(laplace, (x, y, weights), ridge=ridge)
    tiled = kernel_regression(laplace, (x, y, weights), ridge=ridge, memory=8 * rows**2)
    new = data(11, seed=1)[0]
    assert tiled.rows == rows and whole.rows > 35
    np.testing.assert_allclose(tiled(new), whole(new), **EXACT)
    np.testing.assert_allclose(tiled.leave_one_out()[0], whole.leave_one_out()[0], **EXACT)
    np.testing.assert_allclose(tiled.info["freedom"], whole.info["freedom"], **EXACT)


def test_tiles_are_of_one_shape_and_half_of_them():
    shapes = []

    def kernel(x, y):
        shapes.append((len(x), len(y)))
        return laplace(x, y)

    kernel_regression(kernel, data(20)[:2], memory=8 * 6**2)
    assert shapes == [(6, 6)] * 10  # 4 · 5/2


def test_too_large_is_refused_before_anything_is_computed(monkeypatch):
    called = []
    monkeypatch.setattr("wideflow._checks.available_memory", lambda: 8.0 * 50**2)
    with pytest.raises(MemoryError, match="Gram matrix of 51 rows"):
        kernel_regression(lambda x, y: called.append(0), data(51)[:2], memory=8)
    assert not called


def test_a_given_gram_matrix():
    x, y, weights = data(15)
    K, new = matrix(laplace, x), data(4, seed=1)[0]
    weights[3] = 0
    weights /= weights.sum()
    fit = kernel_regression(laplace, (x, y, weights), ridge=0.1)
    for kernel, rows in ((laplace, x), (None, None)):
        given = kernel_regression(kernel, (rows, y, weights), ridge=0.1, gram=K)
        np.testing.assert_allclose(given.coefficients, fit.coefficients, **EXACT)
    np.testing.assert_array_equal(K, matrix(laplace, x))  # untouched
    np.testing.assert_allclose(given.from_gram(matrix(laplace, new, np.delete(x, 3, 0))), fit(new), **EXACT)
    with pytest.raises(ValueError, match="from_gram"):
        given(new)
    with pytest.raises(ValueError, match=r"shape \(k, 14\)"):
        given.from_gram(K)


def test_regressor_is_a_pytree_that_traces():
    x, y, _ = data(12)
    fit = kernel_regression(gaussian, (x, y), ridge=0.1)
    again = jax.tree.map(lambda leaf: leaf, fit)
    np.testing.assert_array_equal(again(x), fit(x))
    np.testing.assert_allclose(jax.jit(fit.__call__)(x), fit(x), **EXACT)
    traces = []

    @eqx.filter_jit
    def apply(fit, x):
        traces.append(0)
        return fit(x)

    for ridge in (0.1, 0.2):  # one program for both
        other = kernel_regression(gaussian, (x, y), ridge=ridge)
        np.testing.assert_allclose(apply(other, x), other(x), **EXACT)
    assert len(traces) == 1
    # the derivative of f by hand: ∂K(x, x')/∂x = −2(x − x')K
    point = jnp.array([0.3, -0.2])
    by_hand = (-2 * (point - x) * matrix(gaussian, point[None], x).T).T @ fit.coefficients
    np.testing.assert_allclose(jax.grad(lambda p: fit(p[None])[0])(point), by_hand, **EXACT)
    assert "12 rows" in repr(fit) and "cholesky" in repr(fit)
    with pytest.raises(AttributeError):
        fit.rows = 3


# --- leave one out ----------------------------------------------------------------------------------


def refits(kernel, x, y, weights, ridge):
    """Residuals of fits without row i: ridge/(1 − ω_i) keeps ridge/ω_j for weights that sum to 1 again."""
    out = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        left = (x[rest], y[rest], weights[rest] / weights[rest].sum())
        fit = kernel_regression(kernel, left, ridge=ridge / weights[rest].sum())
        out.append(y[i] - np.asarray(fit(x[i : i + 1]))[0])
    return np.array(out)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("kernel, outputs", [(laplace, None), (laplace, 2), (linear, None)])
def test_leave_one_out_is_brute_force(kernel, outputs, ridge):
    """The linear kernel in two dimensions is singular: its limit for ridge → 0."""
    x, y, weights = data(9, outputs=outputs)
    residuals, error = kernel_regression(kernel, (x, y, weights), ridge=ridge).leave_one_out()
    brute = refits(kernel, x, y, weights, ridge)
    np.testing.assert_allclose(residuals, brute, **EXACT)
    np.testing.assert_allclose(error, 0.5 * np.sum(weights * (brute**2).reshape(9, -1).sum(1)), **EXACT)


def test_leave_one_out_where_only_some_rows_are_dependent():
    """Two copies of a row, in the null space's support, and rows that are not."""
    x, y, weights = data(7)
    x[4] = x[0]
    residuals, _ = kernel_regression(laplace, (x, y, weights)).leave_one_out()
    np.testing.assert_allclose(residuals, refits(laplace, x, y, weights, 0.0), **EXACT)


@pytest.mark.parametrize("kernel", [laplace, linear])
def test_select_ridge_is_the_best_of_single_fits(kernel):
    x, noise, weights = data(25)
    y = np.sin(2 * x[:, 0]) + 0.5 * noise
    ridges = [0.1, 1e-3, 0.0, 1.0, 0.01]
    choice = select_ridge(kernel, x, y, ridges, weights=weights)
    fits = {r: kernel_regression(kernel, (x, y, weights), ridge=r) for r in ridges}
    np.testing.assert_allclose(choice.errors, [fits[r].leave_one_out()[1] for r in choice.ridges], **EXACT)
    assert choice.ridge == min(ridges, key=lambda r: fits[r].leave_one_out()[1])
    np.testing.assert_allclose(choice.fit(x), fits[choice.ridge](x), **EXACT)
    assert choice.fit.info["ridge"] == choice.ridge


def test_select_ridge_takes_the_larger_of_equals():
    choice = select_ridge(linear, np.zeros((3, 1)), np.ones(3), [0.1, 1.0])
    assert choice.ridge == 1.0


# --- bad input --------------------------------------------------------------------------------------

X, Y, W = data(4)
BAD = {
    "ridge below 0": (lambda: kernel_regression(laplace, (X, Y), ridge=-1), "ridge"),
    "ridge a string": (lambda: kernel_regression(laplace, (X, Y), ridge="a"), "ridge"),
    "jitter below 0": (lambda: kernel_regression(laplace, (X, Y), jitter=-1), "jitter"),
    "memory 0": (lambda: kernel_regression(laplace, (X, Y), memory=0), "memory"),
    "no kernel": (lambda: kernel_regression(None, (X, Y)), "kernel"),
    "no data": (lambda: kernel_regression(laplace, X), "wf.types.Nodes"),
    "rows differ": (lambda: kernel_regression(laplace, (X[:3], Y)), "as many rows"),
    "y of three axes": (lambda: kernel_regression(laplace, (X, np.ones((4, 1, 1)))), "shape"),
    "no rows": (lambda: kernel_regression(laplace, (np.ones((0, 2)), np.ones(0))), "m >= 1"),
    "NaN in y": (lambda: kernel_regression(laplace, (X, Y * np.nan)), "y must be finite"),
    "NaN in x": (lambda: kernel_regression(laplace, (X * np.nan, Y)), "x must be finite"),
    "weights sum to 4": (lambda: kernel_regression(laplace, (X, Y, np.ones(4))), "sum to 1"),
    "weights of another length": (lambda: kernel_regression(laplace, (X, Y, W[:3])), "weights"),
    "gram of another size": (lambda: kernel_regression(laplace, (X, Y), gram=np.eye(3)), r"\(4, 4\)"),
    "x of another width": (lambda: kernel_regression(laplace, (X, Y))(np.ones((2, 3))), r"\(2,\)"),
    "no ridges": (lambda: select_ridge(laplace, X, Y, []), "at least one"),
    "one ridge": (lambda: select_ridge(laplace, X, Y, 0.1), "list of numbers"),
    "ridges below 0": (lambda: select_ridge(laplace, X, Y, [-1.0]), "ridges"),
}


@pytest.mark.parametrize("call, said", BAD.values(), ids=BAD.keys())
def test_bad_input(call, said):
    with pytest.raises(ValueError, match=said):
        call()


numbers = st.floats(-1e3, 1e3, width=32) | st.sampled_from([np.nan, np.inf, 0.0])


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(numbers, numbers, st.floats(0, 2)), min_size=1, max_size=6),
    ridge=st.sampled_from([0.0, 1e-12, 0.1, -1.0, np.nan, np.inf]),
    memory=st.sampled_from([None, 8, 40.0]),
)
def test_any_input_is_fitted_or_refused(rows, ridge, memory):
    """Every fit is finite and leaves no more risk than f = 0; anything else is a ValueError."""
    x, y, weights = map(np.array, zip(*rows, strict=True))
    weights = weights / weights.sum() if weights.sum() > 1e-3 else weights
    valid = (
        np.isfinite(x).all()
        and np.isfinite(y).all()
        and abs(weights.sum() - 1) < 1e-4
        and 0 <= ridge < np.inf
    )
    if not valid:
        with pytest.raises(ValueError):
            kernel_regression(laplace, (x[:, None], y, weights), ridge=ridge, memory=memory)
        return
    fit = kernel_regression(laplace, (x[:, None], y, weights), ridge=ridge, memory=memory)
    assert np.isfinite(fit(x[:, None])).all() and np.isfinite(fit.leave_one_out()[0]).all()
    nothing = 0.5 * np.sum(weights * y**2)
    # 1e-3: what rounding may cost of |y| by design
    assert fit.info["risk"] <= nothing * (1 + 2e-3) + 1e-12
