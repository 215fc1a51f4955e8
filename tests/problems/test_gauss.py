"""Gauss rules against moments known in closed form."""

import math

import numpy as np
import pytest
from scipy.special import gammaln

from wideflow.problems.gauss import gauss_radius, gauss_sphere

DIMS = [2, 3, 5, 49, 320, 10_000, math.inf]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("order", [1, 2, 7, 24])
def test_radius_moments(dim, order):
    """E (|z|²/dim)^k = Π_{i<k} (1 + 2i/dim), exact for k < 2·order."""
    q, w = gauss_radius(order, dim)
    for k in range(min(2 * order, 10)):
        exact = math.prod(1 + 2 * i / dim for i in range(k))
        # rounding of nodes of size dim/2 with spread √dim costs √dim digits in the k-th power
        assert w @ q ** (2 * k) == pytest.approx(exact, rel=1e-12 * (1 + k))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("order", [1, 2, 7, 24])
def test_sphere_moments(dim, order):
    """E (√dim u)^{2k} = Π_{i<k} (2i + 1)/(1 + 2i/dim), exact for 2k < 2·order; odd ones vanish."""
    u, w = gauss_sphere(order, dim)
    for k in range(min(order, 8)):
        exact = math.prod((2 * i + 1) / (1 + 2 * i / dim) for i in range(k))
        assert w @ u ** (2 * k) == pytest.approx(exact, rel=1e-12)
        assert abs(w @ u ** (2 * k + 1)) < 1e-12 * exact


def test_uneven_moment_of_the_radius():
    """E|z| = √2 Γ((d+1)/2)/Γ(d/2) is no polynomial in |z|²: spectral where |z| stays away from 0, and
    algebraic, like order^(−d/2−1/2), where the root's singularity at 0 is in reach."""
    for dim in (3, 49):
        exact = math.sqrt(2) * math.exp(gammaln((dim + 1) / 2) - gammaln(dim / 2))
        q, w = gauss_radius(24, dim)
        assert math.sqrt(dim) * (w @ q) == pytest.approx(exact, rel=3e-4 if dim == 3 else 1e-12)


def test_a_sign_in_one_dimension():
    u, w = gauss_sphere(5, 1)
    assert np.array_equal(u, [-1, 1]) and np.array_equal(w, [0.5, 0.5])
