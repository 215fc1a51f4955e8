"""MMD against closed forms, its standard error against the spread over draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import wideflow as wf
from wideflow.distances.discrepancy import mmd, mmd_squared
from wideflow.distances.wasserstein import w2


def between_gaussians(one, two, h, dim):
    """E exp(−|x − y|²/2h²) for x ~ N(m, s²I), y ~ N(m', s'²I): x − y is Gaussian too."""
    (m, s), (m2, s2) = one, two
    total = h**2 + s**2 + s2**2
    return (h**2 / total) ** (dim / 2) * np.exp(-np.sum((np.asarray(m) - m2) ** 2) / (2 * total))


def exact_square(one, two, h, dim):
    k = lambda a, b: between_gaussians(a, b, h, dim)
    return k(one, one) + k(two, two) - 2 * k(one, two)


KERNELS = {
    "gaussian": lambda r: np.exp(-(r**2) / 2),
    "laplace": lambda r: np.exp(-r),
    "energy": lambda r: -r,
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("unbiased", [False, True])
def test_against_all_pairs(kernel, unbiased):
    rng = np.random.default_rng(0)
    x, y, p = rng.normal(size=(20, 3)), 1 + rng.normal(size=(13, 3)), rng.dirichlet(np.ones(20))
    q = np.full(13, 1 / 13)
    k = lambda a, b: KERNELS[kernel](cdist(a, b) / 0.7)

    def own(points, mass):
        pairs = np.outer(mass, mass) * (1 - unbiased * np.eye(len(mass)))
        return np.sum(pairs * k(points, points)) / pairs.sum()

    expected = own(x, p) + own(y, q) - 2 * p @ k(x, y) @ q
    found = mmd(x, y, 0.7, kernel=kernel, unbiased=unbiased, weights=(p, None))
    assert found.square == pytest.approx(expected, abs=1e-14)  # sums of 33 terms below 10


@pytest.mark.parametrize("apart", [0.0, 1.0])
def test_unbiased_estimate_and_its_standard_error(apart):
    """Over 300 pairs of clouds: the mean within 4 standard errors of the closed form, and the reported
    standard error, in mean square, that of the spread to 4 √(2/300) = 33 % and the 10 % that plug-in at n =
    40 may be off."""
    rng = np.random.default_rng(1)
    n, m, h, D = 40, 60, 1.0, 2
    found = [
        mmd(rng.normal(size=(n, D)), apart + 0.8 * rng.normal(size=(m, D)), h, unbiased=True)
        if apart
        else mmd(rng.normal(size=(n, D)), rng.normal(size=(m, D)), h, unbiased=True)
        for _ in range(300)
    ]
    squares = np.array([d.square for d in found])
    two = (np.full(D, apart), 0.8 if apart else 1.0)
    exact = exact_square((np.zeros(D), 1.0), two, h, D)
    assert abs(squares.mean() - exact) < 4 * squares.std() / np.sqrt(300)
    told = np.mean([d.standard_error**2 for d in found])
    if apart:
        assert told / squares.var() == pytest.approx(1.0, abs=0.43)
    else:  # the larger of two estimates of the same: more than 1, not the 2 of the first order uncorrected
        assert 0.67 < told / squares.var() < 1.75
        assert (squares < 0).any() and all(d.value == 0 for d in found if d.square < 0)


def test_energy_on_the_line_is_cramer():
    """−|x − y|: MMD² = 2∫(F − G)²dx."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(30, 1)), rng.normal(size=(17, 1)) + 0.5
    ends = np.sort(np.concatenate([x, y]).ravel())
    cdf = lambda v: np.searchsorted(np.sort(v.ravel()), ends[:-1], side="right") / len(v)
    expected = 2 * np.sum(np.diff(ends) * (cdf(x) - cdf(y)) ** 2)
    assert mmd(x, y, 1.0, kernel="energy").square == pytest.approx(expected, rel=1e-12)
    assert mmd(x, y, 4.0, kernel="energy").square == pytest.approx(expected / 4, rel=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_cells_within_their_bound(kernel):
    """A density on cells is that of finer cells too."""
    mass = np.random.default_rng(3).dirichlet(np.ones(9)).reshape(3, 3)
    neuron = wf.CustomNeuron(lambda x, t: t @ x, 2)
    coarse = wf.GridDensity(mass, 0.0, 3.0, neuron=neuron)
    fine = wf.GridDensity(np.kron(mass, np.ones((12, 12))) / 144, 0.0, 3.0, neuron=neuron)
    same = mmd(coarse, fine, 1.5, kernel=kernel)  # one and the same measure: all of it is error
    assert 0 < same.value <= same.error
    assert "cells as atoms" in same.method


def test_gaussian_density_on_a_grid_against_closed_form():
    """Both laws as densities: the error told is a bound, and falls like h²."""
    neuron = wf.CustomNeuron(lambda x, t: t @ x, 1)
    P = wf.Problem(x=wf.Gaussian(1), target=lambda x: x[0], neuron=neuron)
    on = lambda mean, sd, n: wf.on_grid(wf.init(P, theta=wf.laws.Normal(mean, sd)), -9.0, 9.0, n)
    exact = np.sqrt(exact_square(([0.0], 1.0), ([0.5], 0.7), 0.8, 1))
    for n in (40, 160):
        found = mmd(on(0.0, 1.0, n), on(0.5, 0.7, n), 0.8)
        assert abs(found.value - exact) <= found.error <= 1.01 * np.sqrt(3) * (18 / n) ** 2 / 12 / 0.8**2


def test_default_bandwidth():
    """h² = ½E|z − z'|² over the points of both; said in `method`."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 25, 2))
    pooled = np.concatenate([x, y])
    h = np.sqrt(np.mean(cdist(pooled, pooled) ** 2) / 2)
    assert mmd(x, y).square == pytest.approx(mmd(x, y, h).square, rel=1e-10)
    assert f"bandwidth {h:.3g}" in mmd(x, y).method
    assert float(mmd([[1.0]], [[1.0]])) == 0.0  # a single place has no scale of its own


def test_mmd_is_at_most_w2_over_bandwidth():
    """|φ(x) − φ(y)| ≤ |x − y|/h for the Gaussian kernel."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(30, 2)), 0.3 + rng.normal(size=(30, 2))
    for h in (0.3, 1.0, 5.0):
        assert float(mmd(x, y, h)) <= float(w2(x, y)) / h
    assert float(mmd(x, y, 100.0)) * 100 == pytest.approx(
        np.linalg.norm(x.mean(0) - y.mean(0)), rel=1e-3
    )  # 1/h²


def test_bad_input():
    x = np.zeros((3, 2))
    with pytest.raises(
        ValueError, match=r"gaussian, laplace, energy, got 'gausian'\. Did you mean 'gaussian'"
    ):
        mmd(x, x, kernel="gausian")
    with pytest.raises(ValueError, match="bandwidth must be a number > 0"):
        mmd(x, x, 0.0)
    with pytest.raises(ValueError, match="needs 2 points of each law, got 3 and 1"):
        mmd(x, x[:1], unbiased=True)


def test_the_same_whatever_the_default_precision():
    x, y = np.random.default_rng(7).normal(size=(2, 10, 2))
    with jax.enable_x64(False):
        there = mmd(x, y)
    assert there == mmd(x, y)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("unbiased", [False, True])
def test_the_pure_function_goes_through_jax(kernel, unbiased):
    """jit and vmap against `mmd`, which knows the same sums; gradients in points, weights and bandwidth
    against central differences, of error h² = 1e-10 and 1e-16/h in rounding. Two points coincide."""
    rng = np.random.default_rng(5)
    x, y, p = rng.normal(size=(3, 7, 2)), 1 + rng.normal(size=(5, 2)), rng.dirichlet(np.ones(7))
    x[:, 0] = x[:, 1]
    square = lambda x, h, p: mmd_squared(x, y, h, p, kernel=kernel, unbiased=unbiased)
    together = jax.jit(jax.vmap(square, (0, None, None)))(x, 0.7, p)
    alone = [mmd(one, y, 0.7, kernel=kernel, unbiased=unbiased, weights=(p, None)).square for one in x]
    np.testing.assert_allclose(together, alone, atol=1e-14)  # sums of 12 terms below 10
    args = x[0], 0.7, p
    for i in range(3):
        slope = np.asarray(jax.grad(square, i)(*(jnp.asarray(v) for v in args)))
        to = rng.normal(size=np.shape(args[i]))
        if i == 0:
            to[0] = to[1]  # points that coincide stay together: a root has a kink there
        ends = [square(*args[:i], args[i] + e * to, *args[i + 1 :]) for e in (1e-5, -1e-5)]
        assert np.sum(slope * to) == pytest.approx(float(ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_mistakes_of_the_pure_function():
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"\(n, D\) and \(m, D\).*vmap"):
        mmd_squared(x, np.zeros((3, 1)), 1.0)
    with pytest.raises(ValueError, match="one per point"):
        mmd_squared(x, x, 1.0, np.ones(2))
    with pytest.raises(ValueError, match="Did you mean 'laplace'"):
        mmd_squared(x, x, 1.0, kernel="laplac")


def test_single_precision_has_its_rounding_in_the_error():
    """Points near 10³ and uneven weights, as they were before they were rounded."""
    rng = np.random.default_rng(6)
    x, y, p = 1e3 + rng.normal(size=(20, 2)), 1e3 + 0.1 * rng.normal(size=(9, 2)), rng.dirichlet(np.ones(20))
    for kernel in KERNELS:
        exact = mmd(x, y, 2.0, kernel=kernel, weights=(p, None))
        found = mmd(*(v.astype(np.float32) for v in (x, y)), 2.0, kernel=kernel,
                    weights=(p.astype(np.float32), None))  # fmt: skip
        assert 1e-9 < abs(found.value - exact.value) <= found.error < 1e-2 and exact.error < 1e-9
