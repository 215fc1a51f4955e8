"""Solves of ill-conditioned, singular and bad Gram matrices, against exact fractions and least squares."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_cases import EXACT, data, hilbert, laplace, linear
from wideflow.kernels.machines.regression import kernel_regression

# --- precision ----------------------------------------------------------------------------------


def fraction_solve(matrix, right):
    """Gauss–Jordan in exact fractions."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [v - rows[k][i] * w for v, w in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("x64", [True, False])
@pytest.mark.parametrize("m", [4, 8])
def test_single_inputs_have_double_accuracy(m, x64):
    """The Hilbert matrix, with a condition of 1.5e10 at m = 8, which leaves single precision no digit."""
    x, y = np.arange(m, dtype=np.float32)[:, None], np.ones(m, np.float32)
    with jax.enable_x64(x64):
        fit = kernel_regression(hilbert, (jnp.asarray(x), jnp.asarray(y)))
        at = fit(jnp.asarray(x))
    exact = fraction_solve([[Fraction(1, 1 + i + j) for j in range(m)] for i in range(m)], [Fraction(1)] * m)
    exact = np.array([float(v) for v in exact])
    error = np.linalg.norm(fit.coefficients - exact) / np.linalg.norm(exact)
    # m for the rounding of the matrix's entries, whose norm is below m eps‖K‖
    assert error < m * fit.info["condition"] * np.finfo(float).eps
    # the estimate is a bound from below in the 1-norm, within a factor m of the 2-norm, and seldom loose
    true = np.linalg.cond([[1 / (1 + i + j) for j in range(m)] for i in range(m)])
    assert true / m < fit.info["condition"] < true * m
    assert at.dtype == (jnp.float64 if x64 else jnp.float32)
    assert fit.info["residual"] < 1e-10  # one step of refinement leaves eps ‖S‖‖u‖/‖z‖, that is `rounding`


@pytest.mark.parametrize("m", [5, 7, 8])
def test_rounding_is_honest(m):
    """Predictions at the data miss y by about `rounding` at most: labels that change sign cost digits."""
    x, y = np.arange(m)[:, None], (-1.0) ** np.arange(m)
    fit = kernel_regression(hilbert, (x, y))
    gap = np.linalg.norm(y - np.asarray(fit(x))) / np.linalg.norm(y)
    assert fit.info["method"] == "cholesky"
    # a sum of m terms is rounded m times; and an estimate a hundred times too large would be of no use
    assert fit.info["rounding"] / 100 < gap < m * fit.info["rounding"]


# --- singular and bad matrices --------------------------------------------------------------------


def test_rank_deficient_gram_gives_the_minimum_norm():
    """Linear kernel with more rows than coordinates: weighted least squares; with fewer: least norm."""
    x, y, weights = data(30, d=4)
    fit = kernel_regression(linear, (x, y, weights))
    root = np.sqrt(weights)
    b = np.linalg.lstsq(root[:, None] * x, root * y, rcond=None)[0]
    np.testing.assert_allclose(fit(np.eye(4)), b, **EXACT)
    assert fit.info["method"] == "eigenvalues" and fit.info["rank"] == 4
    np.testing.assert_allclose(fit.info["freedom"], 4, **EXACT)
    fit = kernel_regression(linear, (x[:3], y[:3]))
    np.testing.assert_allclose(fit(np.eye(4)), np.linalg.pinv(x[:3]) @ y[:3], **EXACT)


def test_consistent_labels_need_a_little_jitter_only():
    """y in the range of a singular K: coefficients stay small, and so do the digits lost to jitter."""
    x = data(30, d=4)[0]
    b = np.array([1.0, -2.0, 0.5, 3.0])
    fit = kernel_regression(linear, (x, x @ b))
    info = fit.info
    assert info["method"] == "cholesky+jitter"
    np.testing.assert_allclose(fit(np.eye(4)), b, atol=1e-7)  # what a jitter may cost, by design 1e-8
    # it is reported in units of the ridge: the same fit with that ridge, by the primal normal equations
    assert 0 < info["jitter"] < 1e-11 * np.linalg.eigvalsh(x.T @ x / 30).max()


def test_a_given_jitter_acts_as_ridge():
    x, y, weights = data(20)
    one = kernel_regression(laplace, (x, y, weights), ridge=0.1, jitter=0.05)
    other = kernel_regression(laplace, (x, y, weights), ridge=0.15)
    np.testing.assert_allclose(one.coefficients, other.coefficients, **EXACT)
    assert one.info["jitter"] == 0.05 and one.info["method"] == "cholesky+jitter"
    assert kernel_regression(linear, (x, x[:, 0]), jitter=0.0).info["method"] == "eigenvalues"


def test_duplicates_with_different_labels():
    """Without ridge the fit takes the weighted mean of y at a point that occurs twice."""
    x, y, weights = data(8)
    x[5], x[6] = x[1], x[1]
    fit = kernel_regression(laplace, (x, y, weights))
    at = [1, 5, 6]
    np.testing.assert_allclose(fit(x[:1]), y[:1], **EXACT)
    np.testing.assert_allclose(fit(x[1:2]), [np.average(y[at], weights=weights[at])], **EXACT)
    assert fit.info["duplicates"] == 2 and fit.info["rank"] == 6 and fit.info["method"] == "eigenvalues"


def test_zero_kernel():
    fit = kernel_regression(lambda x, y: jnp.zeros((len(x), len(y))), data(5)[:2])
    np.testing.assert_array_equal(fit(data(5)[0]), np.zeros(5))
    assert fit.info["rank"] == 0


def test_indefinite_is_an_error():
    x, y, _ = data(5)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    K = rotation @ np.diag([3.0, 2.0, 1.0, 0.5, -1e-6]) @ rotation.T
    with pytest.raises(ValueError, match=r"not positive semi-definite.*eigenvalue -"):
        kernel_regression(None, (None, y), gram=K)
    with pytest.raises(ValueError, match=r"not positive semi-definite: \|K\(x_0, x_1\)\|"):
        kernel_regression(lambda x, y: 1 + jnp.abs(x[:, None, 0] - y[None, :, 0]), (x, y), ridge=10.0)
    with pytest.raises(ValueError, match=r"not positive semi-definite.*< 0"):
        kernel_regression(lambda x, y: -linear(x, y), (x, y), ridge=10.0)
    K = rotation @ np.diag([3.0, 2.0, 1.0, 0.5, -1e-16]) @ rotation.T  # rounding
    assert kernel_regression(None, (None, y), gram=(K + K.T) / 2).info["rank"] == 4


def test_entries_that_are_no_numbers_and_asymmetry():
    x, y, _ = data(6)
    x[4, 0] = -3
    with pytest.raises(ValueError, match=r"K\(x_4, x'_0\) = nan"):
        kernel_regression(lambda a, b: jnp.sqrt(a[:, None, 0] + 2.9) + 0 * b[None, :, 0], (x, y))
    for memory in (None, 8 * 4):  # also in tiles the entry has its number in the whole matrix
        with pytest.raises(ValueError, match=r"K\(x_4, x'_0\) = -inf"):
            bad = lambda a, b: jnp.where((a[:, :1] == x[4, 0]) & (b[:, 0] == x[0, 0])[None], -jnp.inf, 1.0)
            kernel_regression(bad, (x, y), memory=memory)
    with pytest.raises(ValueError, match="not symmetric"):
        kernel_regression(lambda a, b: laplace(a, b) * (1 + 0.01 * a[:, :1]), (x, y))
    with pytest.raises(ValueError, match=r"must return real numbers of shape \(6, 6\).*got shape \(6,\)"):
        kernel_regression(lambda a, b: jnp.sum(a * b, axis=-1), (x, y))
