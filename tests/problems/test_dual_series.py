"""Duals by their Hermite series, against quadrature with the same derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.problems.activations import activation
from wideflow.problems.dual_quadrature import quadrature_dual
from wideflow.problems.dual_series import series_dual

RHO = jnp.array([-1.0, -0.9, -0.3, 0.0, 0.5, 0.99, 1.0])
# terms for ten digits at variances 1 and 0.8: the tail of Σ c_k², largest at correlation ±1
TERMS = {"tanh": 64, "gelu": 32, "softplus": 20, "sigmoid": 48, "sin": 16, "erf": 64}


@pytest.mark.slow
@pytest.mark.parametrize("name", TERMS)
def test_series_equals_quadrature(name):
    phi, other = activation(name), activation("tanh")
    for pair, terms in (((phi, phi), TERMS[name]), ((phi, other), 64)):
        q = (jnp.full(7, 1.0), jnp.full(7, 0.8), RHO * np.sqrt(0.8))
        # tanh needs 88 Gauss–Hermite nodes for ten digits, the others fewer
        value, slopes = values_and_slopes(lambda *q, p=pair, t=terms: series_dual(*p, *q, t), q)
        exact, exact_slopes = values_and_slopes(lambda *q, p=pair: quadrature_dual(*p, *q, 128), q)
        assert np.allclose(value, exact, rtol=0, atol=1e-10)
        # a term of the derivative is k² times as large
        assert np.allclose(slopes, exact_slopes, rtol=0, atol=1e-7)


def values_and_slopes(fn, q):
    return fn(*q), jax.grad(lambda *q: jnp.sum(fn(*q)), argnums=(0, 1, 2))(*q)


def test_the_error_falls_exponentially_with_the_root_of_the_order():
    """c_k of tanh fall like exp(−κ√k), as its nearest pole is at iπ/2: log error is a line in √order."""
    phi, orders = activation("tanh"), np.array([8, 16, 32, 48, 64])
    exact = quadrature_dual(phi, phi, 1.0, 1.0, 1.0, 200)
    errors = [abs(float(series_dual(phi, phi, 1.0, 1.0, 1.0, int(k)) - exact)) for k in orders]
    slopes = np.diff(np.log(errors)) / np.diff(np.sqrt(orders))
    assert np.all(slopes < 0) and slopes.std() < 0.15 * abs(slopes.mean())


def test_no_variance_and_tables():
    phi = activation("gelu")
    table = series_dual(phi, phi, jnp.ones((3, 1)), jnp.array([1.0, 0.0]), jnp.zeros((3, 2)), 24)
    assert table.shape == (3, 2)
    assert np.allclose(table[:, 1], 0.0, atol=1e-15)  # gelu(0) = 0
    slope = jax.grad(lambda q12: series_dual(phi, phi, 1.0, 0.0, q12, 24))(0.0)
    assert float(slope) == pytest.approx(0.5 * 0.5, abs=1e-12)  # E gelu'(u) = ½, gelu'(0) = ½
