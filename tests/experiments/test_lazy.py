"""Small parts of the two experiments on the lazy regime, against slopes and hand-made kernels."""

import numpy as np
import pytest
from scipy.special import erf

from wideflow.experiments import lazy_threshold, lazy_to_mean_field
from wideflow.experiments.lazy_threshold import UNFITTED, Size, movements, task


def _kernel(theta, x, z):
    """K = Φ1 + Φ0∘G1 of neurons a erf(⟨w, x⟩) of equal weights, by hand."""
    a, w = theta[:, 0], theta[:, 1:]
    slope = lambda h: 2 / np.sqrt(np.pi) * np.exp(-(h**2))
    h, g = x @ w.T, z @ w.T
    return (erf(h) @ erf(g).T + (x @ z.T) * ((slope(h) * a**2) @ slope(g).T)) / len(a)


@pytest.mark.slow
def test_slopes_of_the_linearisation_gap():
    alphas = (100.0, 1000.0)
    gaps = [lazy_to_mean_field.linearisation_gaps(n, m, alphas, 2) for n, m in ((16, True), (16, False))]
    (first, second), (third, fourth) = (np.log(found[:, 0]) for found in gaps)
    decades = np.log(alphas[1] / alphas[0])
    # the same starts at both scales: only the next order is left, 1/α² = 1e-4 relative
    assert abs((second - first) / decades + 2) < 0.01
    # here the next order is c₂√n/(c₁α), some hundredths at α = 100, seen over ln(10) = 2.3
    assert abs((fourth - third) / decades + 1) < 0.05


@pytest.mark.slow
def test_limits_of_a_centred_start():
    x, y = lazy_to_mean_field.data()
    risk = lazy_to_mean_field.risk_on(x, y)
    law = lazy_to_mean_field.start_of(risk)
    start = lazy_to_mean_field.limit_start(law, 100.0)
    assert np.abs(start(x)).max() < 1e-12  # α times the rounding of a sum of 2¹³ terms
    f = lazy_to_mean_field.flowed(risk, start, digits=1e-8)
    values, vectors = np.linalg.eigh(_kernel(np.asarray(start.theta), x, x) / len(y))
    ntk = y - vectors @ (np.exp(-values * lazy_to_mean_field.TIME) * (vectors.T @ y))
    # 1/α² = 1e-4 times a number below 1
    assert 0 < lazy_to_mean_field.distance(f, ntk) < 1e-4
    one = lazy_to_mean_field.network_distances(risk, law, 100.0, 16, (ntk, y), seeds=2)
    # 16 neurons are within a fraction of 1/√16 of the limit, and y is not fitted at this time
    assert one[0, 0] < 0.1 < one[1, 0]


@pytest.mark.slow
def test_movements_of_a_lazy_network():
    size = Size(M=64, m=16, d=8)
    given = task(size, 0)
    theta = np.asarray(given.start.theta)
    y = np.asarray(given.risk.problem.x.y)
    np.testing.assert_allclose(given.kernel, _kernel(theta, given.x, given.x), rtol=1e-10)
    values, vectors = np.linalg.eigh(given.kernel / size.m)
    decay = np.exp(-values * given.time)
    left = vectors @ (decay * (vectors.T @ y))
    # brentq's default tolerance is 2e-12 of t, which is of order 10
    assert abs(np.linalg.norm(left) / np.linalg.norm(y) - UNFITTED) < 1e-9
    c = vectors @ ((1 - decay) / values * (vectors.T @ y)) / size.m
    np.testing.assert_allclose(given.linear, _kernel(theta, given.fresh, given.x) @ c, rtol=1e-8, atol=1e-10)
    lazy, lazier = movements(given, 100.0), movements(given, 200.0)
    # features move like 1/α; the function leaves its linearisation like 1/α², as neurons are mirrored;
    # the kernel moves like 1/α at finite width
    for sense, power in (("features", 1), ("function", 2)):
        # the next order is 1/α² relative, times the (m/d)^½ … of the movement: a per cent
        assert abs(np.log2(lazy[sense] / lazier[sense]) - power) < 0.02
    assert lazier["kernel"] < lazy["kernel"] < 0.1


@pytest.mark.slow
def test_located_thresholds_are_where_the_level_is_reached(monkeypatch):
    monkeypatch.setattr(lazy_threshold, "LAZIEST", 16.0)
    size = Size(M=64, m=16, d=8)
    for sense, at in lazy_threshold.located(size, 0).items():
        # a straight line between two scales that differ by 2 misses a curve whose slope changes by less
        # than 1 there by at most 2^(1/8) = 1.09
        assert 1 / 1.09 < movements(task(size, 0), at * np.sqrt(size.M))[sense] / lazy_threshold.LEVEL < 1.09
