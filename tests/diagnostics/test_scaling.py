"""Slopes and their error bars."""

import numpy as np
import pytest

import wideflow as wf
from wideflow.diagnostics.scaling import rms_and_error


def test_slope_of_an_exact_power_law():
    x = np.array([1.0, 2, 4, 8])
    slope = wf.fit_slope(x, 3 * x**-1.5, 0.1 * np.ones(4))
    assert slope.value == pytest.approx(-1.5, abs=1e-12)  # exact up to rounding
    assert np.allclose(slope.at(x), 3 * x**-1.5, rtol=1e-12)


def test_slope_error_is_honest():
    """Over 400 noisy data sets the normalised error of the slope has standard deviation 1."""
    rng, x = np.random.default_rng(0), 2.0 ** np.arange(6)
    scores = []
    for _ in range(400):
        y = x**-0.5 * (1 + 0.05 * rng.normal(size=6))
        slope = wf.fit_slope(x, y, 0.05 * x**-0.5)
        scores.append((slope.value + 0.5) / slope.error)
    # the estimate takes the larger of two errors, so the spread may be below 1; 4 s.e. of it is 0.14
    assert 0.7 < np.std(scores) < 1.14
    assert abs(np.mean(scores)) < 4 / np.sqrt(400) + 0.1  # 0.1: log of noise of 5 % is biased by 0.1 %


def test_curvature_widens_the_error():
    x = np.array([1.0, 2, 4, 8, 16])
    straight = wf.fit_slope(x, x**-0.5, 1e-3 * x**-0.5)
    bent = wf.fit_slope(x, x**-0.5 + 0.3, 1e-3 * x**-0.5)
    assert bent.error > 10 * straight.error


def test_rms_and_error():
    rng = np.random.default_rng(1)
    rms, error = rms_and_error(rng.normal(size=(20_000,)) ** 2)
    # E z² = 1 and sd(z²) = √2, so the error of the root is √2/(2√n)
    assert error == pytest.approx(np.sqrt(2) / (2 * np.sqrt(20_000)), rel=0.05)
    assert abs(rms - 1) < 4 * error


@pytest.mark.parametrize("bad", [([1, 2], [1, -1], [1, 1]), ([1], [1], [1]), ([1, 2], [1, np.nan], [1, 1])])
def test_bad_input(bad):
    with pytest.raises(ValueError, match=r"fit_slope needs|must be finite"):
        wf.fit_slope(*bad)
