"""W2 on the line between clouds and densities that are constant on cells, which is exact."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wideflow as wf
from exact_cases import slope
from wideflow.distances.wasserstein import w2

NEURON = wf.CustomNeuron(lambda x, t: t @ x, 1)


def grid(mass, low, high):
    mass = np.asarray(mass, float)
    return wf.GridDensity(mass / mass.sum(), low, high, neuron=NEURON)


def normal(mean, sd, low, high, cells):
    """N(mean, sd²) with the exact mass in every cell."""
    P = wf.Problem(x=wf.Gaussian(1), target=lambda x: x[0], neuron=NEURON)
    return wf.on_grid(wf.init(P, theta=wf.laws.Normal(mean, sd)), low, high, cells)


def test_uniform_densities_by_hand():
    """U[0, 1] to U[0, 2] is θ → 2θ: W2² = ∫₀¹q²dq; to the points (i + ½)/n each goes within its n-th."""
    one, two = grid(np.ones(7), 0.0, 1.0), grid(np.ones(5), 0.0, 2.0)
    found = w2(one, two)
    assert found.value == pytest.approx(np.sqrt(1 / 3), rel=1e-14) and found.method == "quantiles on the line"
    for n in (1, 3, 8):
        points = (np.arange(n)[:, None] + 0.5) / n
        # a few roundings of numbers below 1
        assert float(w2(points, one)) == pytest.approx(1 / (n * np.sqrt(12)), rel=1e-13)


masses = st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6).filter(lambda v: sum(v) > 0.1)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(masses, st.floats(-3, 3), st.floats(0.2, 3), st.floats(-2, 2))
def test_densities_against_moments(mass, shift, scale, place):
    """The optimal maps are known: to a point, a translation, a dilation; each costs a second moment, which
    holds the h²/12 within cells. Cells of no mass among them."""
    rho = grid(mass, -1.0, 2.0)
    mean, variance = float(rho.mean()[0]), float(rho.covariance()[0, 0])
    near = lambda d, expected: abs(float(d) - expected) <= d.error + 1e-13  # and the rounding of `expected`
    assert near(w2(rho, [[place]]), np.sqrt(variance + (mean - place) ** 2))
    assert near(w2(rho, grid(mass, -1.0 + shift, 2.0 + shift)), abs(shift))
    square = (scale - 1) ** 2 * (variance + mean**2)
    # a root of a square that may be 0 up to 1e-16 has 1e-8 of it
    assert float(w2(rho, grid(mass, -scale, 2 * scale))) == pytest.approx(np.sqrt(square), abs=1e-7)
    finer = w2(rho, grid(np.repeat(mass, 3), -1.0, 2.0))
    assert finer.value <= finer.error < 1e-6


def test_particles_and_density_against_levels():
    """Another way: the quantile functions by np.interp on k levels; steps of the cloud fall between two of
    them, which costs (diameter)²/k for each of 9."""
    rng = np.random.default_rng(0)
    mass, points, weights = rng.dirichlet(np.ones(12)), rng.normal(size=9), rng.dirichlet(np.ones(9))
    k = 400_000
    q = (np.arange(k) + 0.5) / k
    order = np.argsort(points)
    steps = points[order][np.searchsorted(np.cumsum(weights[order]), q).clip(max=8)]
    linear = np.interp(q, np.concatenate([[0], np.cumsum(mass)]), np.linspace(-2, 3, 13))
    found = w2(wf.Particles(points[:, None], weights, neuron=NEURON), grid(mass, -2.0, 3.0))
    assert found.value**2 == pytest.approx(np.mean((steps - linear) ** 2), abs=9 * 25 / k)
    assert found.value**2 == pytest.approx(found.square, rel=1e-14)


def test_clouds_as_by_w2_line():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(5, 1)), rng.normal(size=(30, 1))
    p, q = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(30))
    by_steps = float(jax.jit(wf.distances.w2_line)(x[:, 0], y[:, 0], p, q))
    assert float(w2(x, y, weights=(p, q))) == pytest.approx(by_steps, rel=1e-12)


def test_gaussians_on_grids_of_second_order():
    """N(0, 1) and N(1, 2²) with exact cell masses: within a cell constant densities misplace mass by O(h²),
    so that W2 tends to Bures' √2 like h²."""
    cells = np.array([24, 48, 96, 192])
    errors = [
        # boxes of 9 sd: what is outside weighs less than 1e-18; and cells that are not images of each other
        abs(float(w2(normal(0.0, 1.0, -9.0, 9.0, n), normal(1.0, 2.0, -17.0, 19.0, n + n // 3))) - np.sqrt(2))
        for n in cells
    ]
    assert slope(cells, errors) == pytest.approx(-2.0, abs=0.1)  # the next order is h⁴
    assert errors[-1] < 1e-3


@pytest.mark.parametrize("n", [4, 16, 64])
def test_draws_are_away_by_sampling(n):
    """E W2²(μ_n, U[0, 1]) = 1/(6(n + 1)) + Σ_i ∫_{(i−1)/n}^{i/n} (i/(n + 1) − q)²dq: order statistics have
    mean i/(n + 1) and variance i(n + 1 − i)/((n + 1)²(n + 2))."""
    i = np.arange(1, n + 1)
    exact = 1 / (6 * (n + 1)) + np.sum((i / (n + 1) - (i - 0.5) / n) ** 2) / n + 1 / (12 * n**2)
    rng = np.random.default_rng(n)
    uniform = grid(np.ones(3), 0.0, 1.0)
    squares = [w2(rng.uniform(size=(n, 1)), uniform).square for _ in range(300)]
    assert abs(np.mean(squares) - exact) < 4 * np.std(squares) / np.sqrt(300)  # standard errors


def test_single_precision_is_read_as_it_is():
    mass = np.ones(3, np.float32) / np.float32(3)
    rho = wf.GridDensity(mass, 0.0, 1.0, neuron=NEURON)
    assert rho.dtype == np.float32
    assert float(w2(rho, np.array([[0.5]], np.float32))) == pytest.approx(1 / np.sqrt(12), rel=1e-14)


def by_fractions(x, y, p, q):
    """W2² of clouds on the line in exact arithmetic: mass after mass in order."""
    read = lambda points, mass: sorted(zip(map(Fraction, points), map(Fraction, mass), strict=True))
    one, two = ([(v, w / sum(m for _, m in c)) for v, w in c] for c in (read(x, p), read(y, q)))
    total, i, j, left, right = Fraction(0), 0, 0, one[0][1], two[0][1]
    while True:
        mass = min(left, right)
        total += mass * (one[i][0] - two[j][0]) ** 2
        left, right = left - mass, right - mass
        i, j = i + (left == 0), j + (right == 0)
        if i == len(one) or j == len(two):
            return math.sqrt(total)
        left, right = left or one[i][1], right or two[j][1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_is_in_the_error(dtype):
    """Weighted clouds of very different scales, near 10³ and 0, against exact arithmetic on the numbers as
    they were before they were rounded to `dtype`."""
    rng = np.random.default_rng(3)
    ratios = []
    for _ in range(60):
        n, m = rng.integers(2, 12, 2)
        (s, r), place = 10.0 ** rng.integers(-3, 4, 2), rng.choice([0.0, 1e3, -1e3], 2)
        x, y = place[0] + s * rng.normal(size=n), place[1] + r * rng.normal(size=m)
        p, q = rng.dirichlet(np.full(n, 0.3)) + 1e-12, rng.dirichlet(np.ones(m))
        exact = by_fractions(x, y, p, q)
        x, y, p, q = (v.astype(dtype) for v in (x, y, p, q))
        found = w2(x[:, None], y[:, None], weights=(p / p.sum(), q))
        ratios.append(abs(found.value - exact) / found.error)
        # a mass of eps, 2 · 10³ away or the larger scale
        assert found.error <= 10 * np.sqrt(np.finfo(dtype).eps) * max(2e3, s, r)
    assert max(ratios) <= 1.0
