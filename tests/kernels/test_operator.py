import jax
import numpy as np
import pytest

from kernels_models import cases, explicit, normal
from wideflow.kernels.operator import KernelOperator, MatrixOperator

CASES = cases()
RATES = {"mlp": [2.0, (0.5, 0.0), 3.0]}


def flat(kernel):
    n = kernel.shape[0] * (kernel.shape[2] if kernel.ndim == 4 else 1)
    return kernel.reshape(n, n) if kernel.ndim == 2 else kernel.transpose(0, 2, 1, 3).reshape(n, n)


def operators(case):
    """Both operators of a model's kernel, and the matrix."""
    f, params, x, _ = CASES[case]
    rates = [2.0, 2.0, 0.5, 0.0, 3.0, 3.0] if case == "mlp" else None
    kernel = explicit(f, params, x, rates=rates)
    operator = KernelOperator(f, params, x, rates=RATES.get(case), memory=2000)
    assert len(operator.chunks) > 1  # samples in several chunks, the last one filled up
    return operator, MatrixOperator(kernel), flat(kernel)


@pytest.mark.parametrize("case", CASES)
def test_products_equal_the_matrix(case):
    matrix_free, dense, matrix = operators(case)
    v = np.asarray(normal(0, len(matrix)))
    size = 1e-12 * np.linalg.norm(matrix, 2) * np.linalg.norm(v)  # rounding in sums of hundreds of terms
    for operator in (matrix_free, dense):
        assert operator.shape == matrix.shape
        np.testing.assert_allclose(operator @ v, matrix @ v, rtol=0, atol=size, strict=True)
        shaped = v.reshape(operator.m, operator.outputs)
        assert (operator @ shaped).shape == shaped.shape
        np.testing.assert_allclose((operator @ shaped).ravel(), matrix @ v, rtol=0, atol=size)


@pytest.mark.parametrize("case", ["two layers", "mlp"])
def test_conjugate_gradients_solve_the_system(case):
    *pair, matrix = operators(case)
    y, ridge = np.asarray(normal(1, len(matrix))), 0.1 * np.linalg.norm(matrix, 2)
    reference = np.linalg.solve(matrix + ridge * np.eye(len(matrix)), y)
    for operator in pair:
        solved = operator.solve(y, ridge=ridge, tol=1e-10)
        assert solved.converged and solved.residual <= 2e-10
        # |error| ≤ |residual| / (smallest eigenvalue ≥ ridge).
        error = np.linalg.norm(solved.solution - reference)
        assert error <= 2e-10 * np.linalg.norm(y) / ridge


def test_a_system_that_is_not_solved_says_so():
    matrix = np.diag([1.0, 0.0, 1e-3])
    solved = MatrixOperator(matrix).solve(np.ones(3), steps=5)  # no solution without a ridge
    assert not solved.converged and "larger ridge" in solved.message
    # The residual is at least the part of y outside the range, 1/√3.
    assert solved.residual > 0.57


@pytest.mark.parametrize("case", ["two layers", "mlp", "convolution"])
def test_lanczos_within_its_own_bounds(case):
    *pair, matrix = operators(case)
    exact = np.linalg.eigvalsh(matrix)[::-1]
    for operator in pair:
        spectrum = operator.eigenvalues(4, tol=1e-8)
        assert spectrum.converged and np.all(spectrum.bounds <= 1e-8 * exact[0])
        assert np.all(abs(spectrum.values - exact[:4]) <= spectrum.bounds)


@pytest.mark.parametrize("steps", [6, 10, 15])
def test_bounds_are_honest_before_convergence(steps):
    """A slowly falling spectrum: each value lies within its bound of some eigenvalue."""
    exact = 1 / np.arange(1.0, 101)
    basis = np.linalg.qr(np.asarray(normal(2, 100, 100)))[0]
    spectrum = MatrixOperator(basis * exact @ basis.T).eigenvalues(5, tol=1e-12, steps=steps)
    assert spectrum.steps == steps and not spectrum.converged and "more steps" in spectrum.message
    distance = abs(spectrum.values[:, None] - exact).min(axis=1)
    assert np.all(distance <= spectrum.bounds)
    assert spectrum.bounds.max() > 1e-6  # they are no mere rounding


def test_multiple_eigenvalues_after_all_steps():
    values = np.array([3.0, 3.0, 3.0, 1.0, 1.0, 0.0, 0.0])
    basis = np.linalg.qr(np.asarray(normal(3, 7, 7)))[0]
    spectrum = MatrixOperator(basis * values @ basis.T).eigenvalues(7)
    assert spectrum.steps == 7 and np.all(abs(spectrum.values - values) <= spectrum.bounds)
    zero = MatrixOperator(np.zeros((4, 4))).eigenvalues(2)
    np.testing.assert_array_equal(zero.values, 0.0)


def test_other_numbers_do_not_compile_again():
    traces = []
    f, params, x, _ = CASES["two layers"]

    def counted(params, x):
        if isinstance(x, jax.core.Tracer):
            traces.append(x.shape)
        return f(params, x)

    operator = KernelOperator(counted, params, x)
    y = np.ones(len(x))
    operator @ y, operator.solve(y, ridge=1.0)
    before = len(traces)
    operator @ (2 * y), operator.solve(3 * y, ridge=2.0, tol=1e-3, steps=7)
    assert len(traces) == before


def test_bad_input():
    operator = MatrixOperator(np.eye(3))
    with pytest.raises(ValueError, match=r"v must have shape \(3,\)"):
        operator @ np.ones(4)
    with pytest.raises(ValueError, match="must be finite"):
        operator.solve(np.full(3, np.nan))
    with pytest.raises(ValueError, match="ridge"):
        operator.solve(np.ones(3), ridge=-1.0)
    with pytest.raises(ValueError, match="at most 3"):
        operator.eigenvalues(4)
    with pytest.raises(ValueError, match=r"\(m, m, O, O\)"):
        MatrixOperator(np.ones((3, 2)))
