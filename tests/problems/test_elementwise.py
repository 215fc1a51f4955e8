"""The vectorised arctangent against NumPy's in extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.problems.elementwise import arctan2


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
