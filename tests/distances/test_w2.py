"""W2 on the line against a linear programme, between Gaussians against closed forms."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import norm

import wideflow as wf
from exact_cases import slope


def by_linear_programme(x, y, p, q):
    """min Σ π_ij |x_i − y_j|² over couplings π of the weighted clouds."""
    n, m = len(x), len(y)
    cost = (x[:, None] - y[None, :]) ** 2
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    found = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.concatenate([p, q]))
    return np.sqrt(found.fun)


w2_line = jax.jit(wf.distances.w2_line)  # one program for each pair of sizes


@pytest.mark.parametrize("sizes", [(7, 5), (1, 6), (8, 8)], ids=str)
def test_line_against_linear_programme(sizes):
    """Uneven weights, one of them 0."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=sizes[0]), rng.normal(1.0, 2.0, size=sizes[1])
        p, q = rng.dirichlet(np.ones(sizes[0])), rng.dirichlet(np.ones(sizes[1]))
        q[1], q[2] = 0.0, q[1] + q[2]
        # the programme's own tolerance is 1e-7 in the constraints
        expected = pytest.approx(by_linear_programme(x, y, p, q), rel=1e-6, abs=1e-6)
        assert float(w2_line(x, y, p, q)) == expected


def test_line_by_hand():
    """Half the mass at 0 goes to 1, half to 3: W2² = ½·1 + ½·9."""
    assert float(wf.distances.w2_line([0.0], [1.0, 3.0])) == pytest.approx(np.sqrt(5.0), rel=1e-15)
    assert float(wf.distances.w2_line([0.0, 1.0], [1.0, 0.0], [0.25, 0.75], [0.75, 0.25])) == 0.0
    assert float(wf.distances.w2_line([2.0, 0.0], [0.0, 2.0], [0.25, 0.75])) == pytest.approx(
        1.0
    )  # ¼ of mass over 2


def points(n):
    return st.lists(st.floats(-5, 5).map(lambda v: round(v, 3)), min_size=n, max_size=n)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(points(4), points(4), st.floats(-3, 3), st.floats(0.1, 4))
def test_line_laws(x, y, shift, scale):
    x, y = np.array(x), np.array(y)
    w2 = lambda a, b: float(w2_line(a, b))
    # rounding of differences of numbers up to 50, and of the root of their squares
    near = lambda v: pytest.approx(v, rel=1e-12, abs=1e-12)
    assert w2(x, y) == near(w2(y, x))
    assert w2(x + shift, y + shift) == near(w2(x, y)) and w2(scale * x, scale * y) == near(scale * w2(x, y))
    assert w2(-x, -y) == near(w2(x, y))
    assert w2(x, x + shift) == near(abs(shift))
    assert w2(x, x[::-1]) == 0.0
    # centring splits the square: W2² = |Δ mean|² + W2² of the centred clouds
    square = (x.mean() - y.mean()) ** 2 + w2(x - x.mean(), y - y.mean()) ** 2
    assert w2(x, y) ** 2 == pytest.approx(square, rel=1e-10, abs=1e-10)
    assert (w2(x, y) == 0) == np.array_equal(np.sort(x), np.sort(y))


def test_line_triangle_inequality():
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, y, z = rng.normal(size=5), rng.normal(size=3), rng.normal(size=4)
        assert w2_line(x, z) <= w2_line(x, y) + w2_line(y, z) + 1e-15


def test_line_tends_to_bures():
    """Mid-quantiles of N(0, 1) and N(1, 2²) on n points: W2 = √(1 + 1). Their second moment is the
    midpoint rule for ∫₀¹(F⁻¹)², whose second derivative 2(1 + z²)/p(z)² grows so much towards the last
    cell, p(z) ~ z/n, that the error falls like 1/n, not 1/n²."""
    widths = 2 ** np.arange(5, 14, 2)
    exact = float(wf.distances.w2_gaussian([0.0], [[1.0]], [1.0], [[4.0]]))
    assert exact == pytest.approx(np.sqrt(2.0), rel=1e-14)
    errors = []
    for n in widths:
        z = norm.ppf((np.arange(n) + 0.5) / n)
        errors.append(abs(float(w2_line(z, 1 + 2 * z)) - exact))
    # 1/n up to terms of relative order 1/log n, which change the slope by some hundredths
    assert slope(widths, errors) == pytest.approx(-1.0, abs=0.05)
    assert errors[-1] < 1e-3


def test_line_under_jit_and_other_dtypes():
    x, y = np.linspace(0, 1, 5, dtype=np.float32), np.linspace(0, 2, 7, dtype=np.float32)
    assert float(jax.jit(wf.distances.w2_line)(x, y)) == pytest.approx(
        float(wf.distances.w2_line(x.astype(float), y)), rel=1e-5
    )


# --- Gaussians -----------------------------------------------------------------------------------


def test_gaussians_in_one_dimension():
    """W2² = (m − m')² + (s − s')²."""
    given = float(wf.distances.w2_gaussian([0.3], [[4.0]], [-1.0], [[0.25]]))
    assert given == pytest.approx(np.sqrt(1.3**2 + 1.5**2), rel=1e-14)


def test_gaussians_that_commute():
    """In a common eigenbasis: |m − m'|² + Σ(√λ_i − √λ'_i)²."""
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    a, b = rng.uniform(0.1, 3, 4), rng.uniform(0.1, 3, 4)
    mean1, mean2 = rng.normal(size=(2, 4))
    given = float(wf.distances.w2_gaussian(mean1, basis * a @ basis.T, mean2, basis * b @ basis.T))
    expected = np.sqrt(np.sum((mean1 - mean2) ** 2) + np.sum((np.sqrt(a) - np.sqrt(b)) ** 2))
    assert given == pytest.approx(expected, rel=1e-13)


def test_gaussians_that_do_not_commute():
    """Symmetric, invariant under a common rotation, and tr (C₁^½C₂C₁^½)^½ = Σ√eig(C₁C₂)."""
    rng = np.random.default_rng(1)
    roots, (mean1, mean2) = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3))
    one, two = (r @ r.T for r in roots)
    given = float(wf.distances.w2_gaussian(mean1, one, mean2, two))
    cross = np.sqrt(np.linalg.eigvals(one @ two).real).sum()
    expected = np.sqrt(np.sum((mean1 - mean2) ** 2) + np.trace(one + two) - 2 * cross)
    assert given == pytest.approx(expected, rel=1e-12)
    assert given == pytest.approx(float(wf.distances.w2_gaussian(mean2, two, mean1, one)), rel=1e-12)
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = float(wf.distances.w2_gaussian(q @ mean1, q @ one @ q.T, q @ mean2, q @ two @ q.T))
    assert given == pytest.approx(turned, rel=1e-12)


def test_gaussians_zero_if_equal_and_singular():
    cov = np.outer([1.0, 2.0], [1.0, 2.0])  # of rank one
    # a difference of traces near 5 is 0 up to 1e-15, its root up to some 1e-7
    assert float(wf.distances.w2_gaussian([0.0, 0.0], cov, [0.0, 0.0], cov)) < 5e-7
    # against a point mass: W2² = |m|² + tr C
    point = float(wf.distances.w2_gaussian([1.0, 0.0], np.zeros((2, 2)), [0.0, 0.0], cov))
    assert point == pytest.approx(np.sqrt(1 + 5), rel=1e-14)
    # two lines at a right angle do not see one another: W2² = tr C + tr C'
    other = np.outer([2.0, -1.0], [2.0, -1.0])
    assert float(wf.distances.w2_gaussian([0.0, 0.0], cov, [0.0, 0.0], other)) == pytest.approx(
        np.sqrt(10), abs=1e-6
    )
