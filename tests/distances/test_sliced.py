"""Sliced W2 against its closed forms, in standard errors over directions."""

import jax
import numpy as np
import pytest

import wideflow as wf
from exact_cases import slope
from wideflow.distances.sliced import sliced_w2
from wideflow.distances.wasserstein import w2

KEY = jax.random.key(0)


def test_translation_needs_no_draws():
    """E⟨u, m⟩² = |m|²/D, whatever the directions."""
    x = np.random.default_rng(0).normal(size=(50, 3))
    found = sliced_w2(x, x + np.array([2.0, -1.0, 2.0]), key=KEY, directions=2)
    assert found.value == pytest.approx(3 / np.sqrt(3), rel=1e-14) and found.error < 1e-12


def test_dilation_within_standard_errors():
    """⟨u, x⟩ → s⟨u, x⟩ is monotone: SW2² = (s − 1)² E⟨u, x⟩², whose mean over u is E|x|²/D. The reported
    error is that of the draws: over 160 keys the mean of the squared ratio is 1 ± √(2/160), four of which are
    allowed."""
    x = np.random.default_rng(1).normal(size=(30, 4)) * np.array([3.0, 1.0, 1.0, 0.2])
    x -= x.mean(0)
    exact = 0.5 * np.sqrt(np.mean(np.sum(x**2, axis=1)) / 4)
    found = [sliced_w2(x, 1.5 * x, key=jax.random.key(i), directions=50) for i in range(160)]
    ratios = np.array([(d.value - exact) / d.error for d in found])
    assert abs(np.mean(ratios**2) - 1) < 4 * np.sqrt(2 / 160)


def test_error_falls_like_one_over_root_directions():
    x = np.random.default_rng(2).normal(size=(30, 3)) * np.array([3.0, 1.0, 0.5])
    counts = np.array([50, 200, 800])
    errors = [sliced_w2(x, 2 * x, key=KEY, directions=int(k)).error for k in counts]
    # a standard deviation from 50 draws is known to 10 %, over a factor of 16
    assert slope(counts, errors) == pytest.approx(-0.5, abs=4 * 0.1 / np.log(16))


def test_gaussians():
    """N(0, I) and N(m, I): SW2² = |m|²/D, from 4000 draws. Their means give |m|² with a standard error of
    2|m|√(2/n) and a bias of 2D/n; the rest, W2² between two draws on a line, is about 2 log log n/n < 5/n."""
    rng = np.random.default_rng(3)
    n, D, m = 4000, 3, np.array([1.0, 2.0, 2.0])
    found = sliced_w2(rng.normal(size=(n, D)), m + rng.normal(size=(n, D)), key=KEY, directions=20)
    assert abs(found.square - 9 / D) < 4 * 2 * 3 * np.sqrt(2 / n) / D + 2 / n + 5 / n


def test_below_w2_and_equal_on_the_line():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(40, 3)), rng.exponential(size=(60, 3))
    sliced, whole = sliced_w2(x, y, key=KEY), w2(x, y)
    assert np.sqrt(3) * (sliced.value - 4 * sliced.error) <= whole.value
    line = sliced_w2(x[:, :1], y[:, :1], key=KEY, directions=3)
    assert line.value == pytest.approx(float(w2(x[:, :1], y[:, :1])), rel=1e-12)


def test_cells_and_their_bound():
    """A density on the unit square to a point: SW2² = E|θ − c|²/2 with the h²/12 of each axis."""
    mass = np.random.default_rng(5).dirichlet(np.ones(16)).reshape(4, 4)
    rho = wf.GridDensity(mass, 0.0, 1.0, neuron=wf.CustomNeuron(lambda x, t: t @ x, 2))
    found = sliced_w2(rho, [[2.0, 0.5]], key=KEY)
    exact = np.sqrt(float(np.sum((rho.mean() - np.array([2.0, 0.5])) ** 2) + np.trace(rho.covariance())) / 2)
    bound = np.sqrt(2 * 0.25**2 / 12 / 2)
    assert abs(found.value - exact) < found.error and found.error > bound


def test_same_key_same_number():
    x, y = np.random.default_rng(6).normal(size=(2, 20, 2))
    again = lambda i: sliced_w2(x, y, key=jax.random.key(i), directions=5)
    assert again(1) == again(1) == w2(x, y, "sliced", key=jax.random.key(1), directions=5)
    assert again(1).value != again(2).value


def test_bad_input():
    x = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"pass key=jax\.random\.key"):
        w2(x, x, "sliced")
    with pytest.raises(ValueError, match="must be a key"):
        sliced_w2(x, x, key=0)
    with pytest.raises(ValueError, match="directions must be a whole number >= 2"):
        sliced_w2(x, x, key=KEY, directions=1)
