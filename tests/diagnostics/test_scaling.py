"""Slopes and their error bars."""

import numpy as np
import pytest

import wideflow as wf
from wideflow.diagnostics.scaling import rms_and_error


def test_slope_of_an_exact_power_law():
    x = np.array([1.0, 2, 4, 8])
    slope = wf.diagnostics.fit_slope(x, 3 * x**-1.5, 0.1 * np.ones(4))
    assert slope.value == pytest.approx(-1.5, abs=1e-12)  # exact up to rounding
    assert np.allclose(slope.at(x), 3 * x**-1.5, rtol=1e-12)


def test_slope_error_is_honest():
    """Over 400 noisy data sets the normalised error of the slope has standard deviation 1."""
    rng, x = np.random.default_rng(0), 2.0 ** np.arange(6)
    scores = []
    for _ in range(400):
        y = x**-0.5 * (1 + 0.05 * rng.normal(size=6))
        slope = wf.diagnostics.fit_slope(x, y, 0.05 * x**-0.5)
        scores.append((slope.value + 0.5) / slope.error)
    # the estimate takes the larger of two errors, so the spread may be below 1; 4 s.e. of it is 0.14
    assert 0.7 < np.std(scores) < 1.14
    assert abs(np.mean(scores)) < 4 / np.sqrt(400) + 0.1  # 0.1: log of noise of 5 % is biased by 0.1 %


def test_curvature_widens_the_error():
    x = np.array([1.0, 2, 4, 8, 16])
    straight = wf.diagnostics.fit_slope(x, x**-0.5, 1e-3 * x**-0.5)
    bent = wf.diagnostics.fit_slope(x, x**-0.5 + 0.3, 1e-3 * x**-0.5)
    assert bent.error > 10 * straight.error


def test_rms_and_error():
    rng = np.random.default_rng(1)
    rms, error = rms_and_error(rng.normal(size=(20_000,)) ** 2)
    # E z² = 1 and sd(z²) = √2, so the error of the root is √2/(2√n)
    assert error == pytest.approx(np.sqrt(2) / (2 * np.sqrt(20_000)), rel=0.05)
    assert abs(rms - 1) < 4 * error


BAD = {
    "negative": (([1, 2], [1, -1], [1, 1]), "fit_slope needs x, y and errors > 0"),
    "one point": (([1], [1], [1]), "one length >= 2"),
    "NaN": (([1, 2], [1, np.nan], [1, 1]), r"fit_slope\(y\) must be finite.*index \(1,\)"),
    "one x": (([2, 2, 2], [1, 2, 2], [1, 1, 1]), "two different x, got 3 times 2"),
    "one weight": (([1, 2], [1, 2], [1e-300, 1.0]), "errors that are not too different"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    given, says = BAD[name]
    with pytest.raises(ValueError, match=says):
        wf.diagnostics.fit_slope(*given)


def test_tiny_errors_do_not_overflow():
    x = np.array([1.0, 2, 4])
    slope = wf.diagnostics.fit_slope(x, x**-2, 1e-200 * np.ones(3))
    assert slope.value == pytest.approx(-2, abs=1e-12) and np.isfinite(slope.error)


def test_density_counts_what_has_weight():
    """A weighted measure, with particles of weight 0 far away, has the density of what is left of it; probes
    are counted when they are asked for, and then alone."""
    neuron = wf.CustomNeuron(lambda x, t: t @ x, 1)
    rng = np.random.default_rng(0)
    theta, weights, at = rng.normal(size=(200, 1)), rng.dirichlet(np.ones(200)), np.linspace(-3, 3, 7)
    alone = wf.diagnostics.density(wf.Particles(theta, weights, neuron=neuron), 0, at)
    far = np.concatenate([theta, np.full((300, 1), 50.0)])
    state = wf.Particles(far, np.concatenate([weights, np.zeros(300)]), neuron=neuron)
    np.testing.assert_allclose(
        wf.diagnostics.density(state, 0, at), alone, rtol=1e-12
    )  # sums in another order
    probes = wf.diagnostics.density(state, 0, np.array([50.0]), 1.0, probes=True)
    assert probes[0] == pytest.approx(1 / np.sqrt(2 * np.pi), rel=1e-12)
    with pytest.raises(ValueError, match=r"has none.*probes=4096"):
        wf.diagnostics.density(wf.Particles(theta, neuron=neuron), 0, at, probes=True)
