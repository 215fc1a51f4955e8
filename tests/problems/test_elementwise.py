"""The vectorised arctangent and arccosine against NumPy's in extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.problems.elementwise import arccos, arctan2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arctan2(dtype):
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.uniform(-12, 12, size=(2, 200_000))
    y, x = (rng.normal(size=scale.shape) * scale).astype(dtype)
    exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    # four roundings of numbers up to π
    assert np.max(np.abs(np.asarray(arctan2(y, x)) - exact)) < 4 * np.pi * np.finfo(dtype).eps


def test_arctan2_on_the_axes():
    y, x = jnp.array([0.0, 1, 0, -1, 0, 2]), jnp.array([1.0, 0, -1, 0, 0, 2])
    assert np.allclose(arctan2(y, x), [0, np.pi / 2, np.pi, -np.pi / 2, 0, np.pi / 4], rtol=1e-15, atol=0)


def test_arctan2_gradient():
    rng = np.random.default_rng(1)
    y, x = rng.normal(size=(2, 100))
    ours = jax.vmap(jax.grad(arctan2, argnums=(0, 1)))(y, x)
    theirs = jax.vmap(jax.grad(jnp.arctan2, argnums=(0, 1)))(y, x)
    assert np.allclose(ours, theirs, rtol=1e-13, atol=0)  # the same formula, other roundings
    assert np.all(np.isfinite(jax.grad(arctan2, argnums=(0, 1))(0.0, 0.0)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arccos(dtype):
    rng = np.random.default_rng(2)
    inner, outer = rng.uniform(-1, 1, 100_000), 1 - 10.0 ** rng.uniform(-7, -0.5, 100_000)
    c = np.concatenate([inner, outer, -outer]).astype(dtype)
    exact = np.arccos(c.astype(np.longdouble))
    # four roundings, relative to the angle where it is small: 1 − c is exact near c = 1
    error = np.abs(np.asarray(arccos(jnp.asarray(c))) - exact) / exact
    assert np.max(error) < 4 * np.finfo(dtype).eps


def test_arccos_at_the_ends_and_its_gradient():
    ends = jnp.array([1.0, -1.0, 0.0, 0.5])
    assert np.allclose(arccos(ends), [0, np.pi, np.pi / 2, np.pi / 3], rtol=1e-15, atol=0)
    slope = jax.vmap(jax.grad(arccos))(ends)
    assert np.allclose(slope, [0, 0, -1, -1 / np.sqrt(0.75)], rtol=1e-15, atol=0)
