"""Laws to start from: moments within standard errors, nested widths, dtypes; particles as a measure."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf

N = 20_000


def problem(d=4, neuron=None, **options):
    neuron = wf.Neuron("erf", **options) if neuron is None else neuron
    target = (lambda x: jnp.stack([x[0]] * neuron.outputs)) if neuron.outputs > 1 else wf.single_index("erf")
    return wf.Problem(x=wf.Gaussian(d), target=target, neuron=neuron)


def check_moments(x, mean, variance, fourth=3.0):
    """Every column, within 4 standard errors (known to 1 % at 20,000 draws); fourth = E(x−μ)⁴/σ⁴."""
    assert np.all(np.abs(x.mean(0) - mean) < 4.1 * math.sqrt(variance / len(x)) + 1e-12)  # rounding
    error = variance * math.sqrt((fourth - 1) / len(x))
    assert np.all(np.abs(((x - mean) ** 2).mean(0) - variance) < 4.1 * error + 1e-12)


def test_standard_deviations():
    """a ~ N(0, a²), w ~ N(0, (w²/d) I), b ~ N(0, b²)."""
    law = wf.init(problem(bias=True), a=2.0, w=3.0, b=0.5)
    theta = np.asarray(law.sample(jax.random.key(0), N).theta)
    assert law.D == 6 and theta.shape == (N, 6)
    check_moments(theta[:, :1], 0, 4.0)
    check_moments(theta[:, 1:5], 0, 9.0 / 4)
    check_moments(theta[:, 5:], 0, 0.25)
    correlation = np.corrcoef(theta.T) - np.eye(6)
    assert np.max(np.abs(correlation)) < 4.1 / math.sqrt(N)  # independent coordinates


def test_defaults():
    """a = 1, w = 1, b = 0."""
    theta = np.asarray(wf.init(problem(bias=True)).sample(jax.random.key(0), N).theta)
    check_moments(theta[:, :1], 0, 1.0)
    check_moments(theta[:, 1:5], 0, 0.25)
    assert np.all(theta[:, 5] == 0)


# law, mean, variance, fourth moment over variance²
MARGINALS = [
    (wf.laws.Normal(1.5, 0.5), 1.5, 0.25, 3.0),
    (wf.laws.Uniform(-1.0, 3.0), 1.0, 16 / 12, 1.8),
    (wf.laws.Rademacher(2.0), 0.0, 4.0, 1.0),
    (wf.laws.Constant(0.7), 0.7, 0.0, 1.0),
    (lambda key, shape: jax.random.exponential(key, shape), 1.0, 1.0, 9.0),
]


@pytest.mark.parametrize(("law", "mean", "variance", "fourth"), MARGINALS)
def test_marginals(law, mean, variance, fourth):
    """Taken for each coordinate as they are: no 1/√d for w."""
    theta = np.asarray(wf.init(problem(output="unit"), w=law).sample(jax.random.key(2), N).theta)
    assert theta.shape == (N, 4)
    check_moments(theta, mean, variance, fourth)
    if isinstance(law, wf.laws.Rademacher):
        assert set(np.unique(theta)) == {-2.0, 2.0}
    if isinstance(law, wf.laws.Uniform):
        assert theta.min() >= -1 and theta.max() <= 3


def test_custom_neuron():
    neuron = wf.CustomNeuron(lambda x, t: jnp.sum(x) * t[0] + t[1], 2)
    law = wf.init(problem(neuron=neuron), theta=3.0)
    assert law.D == 2
    check_moments(np.asarray(law.sample(jax.random.key(0), N).theta), 0, 9.0)


def test_several_outputs():
    law = wf.init(problem(outputs=3), a=wf.laws.Rademacher())
    assert law.D == 7
    theta = np.asarray(law.sample(jax.random.key(0), 50).theta)
    assert set(np.unique(theta[:, :3])) == {-1.0, 1.0} and abs(theta[:, 3:]).max() != 1


def test_widths_are_nested():
    """Particle j depends on (key, j) only."""
    drawn = lambda key, shape: jax.random.normal(key, shape)
    law = wf.init(problem(bias=True), a=wf.laws.Rademacher(), w=wf.laws.Uniform(), b=drawn)
    narrow, wide = (law.sample(jax.random.key(1), n) for n in (3, 40))
    assert np.array_equal(narrow.theta, wide.theta[:3])
    assert not np.array_equal(narrow.theta[0], narrow.theta[1])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_dtype(dtype):
    p = wf.init(problem(), a=wf.laws.Rademacher(), w=wf.laws.Uniform()).sample(
        jax.random.key(0), 3, alpha=2, dtype=dtype
    )
    assert p.theta.dtype == p.weights.dtype == p.alpha.dtype == p.dtype == dtype
    assert p(np.ones((2, 4))).dtype == dtype


def test_parts_join_to_theta():
    theta = np.arange(28.0).reshape(4, 7)
    p = wf.Particles(theta, neuron=wf.Neuron("erf", outputs=2, bias=True))
    assert np.array_equal(p.theta, theta)
    assert np.array_equal(p.parts.a, theta[:, :2].T) and np.array_equal(p.parts.w, theta[:, 2:6].T)
    assert np.array_equal(p.parts.b, theta[:, 6])
    assert (p.n, p.D) == (4, 7) and np.allclose(p.weights, 0.25)
    velocity = p.neuron.unpack(jnp.ones((4, 7)))
    assert np.array_equal(p.moved(velocity, 0.5).theta, theta + 0.5)


def test_whole_numbers_become_floats():
    p = wf.Particles([[1, 2], [3, 4]], weights=[0, 1], alpha=2, neuron=wf.Neuron("relu"))
    assert p.dtype == jnp.float64
    assert np.array_equal(p(np.array([[1.0], [-1.0]])), [2 * 3 * 4, 0])


def test_mirrored_neurons_start_at_zero():
    problem = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf", bias=True))
    rho0 = wf.init(problem, b=0.3)
    rho = rho0.sample(jax.random.key(0), 10, alpha=3.0, mirrored=True)
    half = rho0.sample(jax.random.key(0), 5)
    np.testing.assert_array_equal(rho.theta[:5], half.theta)
    np.testing.assert_array_equal(rho.theta[5:, 1:], half.theta[:, 1:])
    # pairs cancel one by one, up to the order in which ten terms are summed
    assert np.abs(rho(jax.random.normal(jax.random.key(1), (7, 3)))).max() < 1e-15
    with pytest.raises(ValueError, match="even n"):
        rho0.sample(jax.random.key(0), 5, mirrored=True)
