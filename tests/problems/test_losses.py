"""Losses: values by hand, the signal u = −∂ℓ/∂f, convexity."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf

F = np.array([0.3, -2.0, 5.0, 0.0])


def test_squared():
    y = np.array([1.0, 1.0, -1.0, 0.0])
    assert np.allclose(wf.losses.Squared()(F, y), (y - F) ** 2 / 2)
    assert np.allclose(wf.losses.Squared().signal(jnp.asarray(F), y), y - F)
    rows = wf.losses.Squared()(jnp.ones((2, 3)), jnp.zeros((2, 3)))
    assert np.allclose(rows, [1.5, 1.5])


def test_huber():
    """Quadratic inside δ, of slope δ outside, smooth between."""
    loss, e = wf.losses.Huber(0.5), np.array([0.2, -0.5, 3.0, -3.0])
    expected = np.where(np.abs(e) <= 0.5, e**2 / 2, 0.5 * (np.abs(e) - 0.25))
    assert np.allclose(loss(jnp.zeros(4), e), expected)
    assert np.allclose(loss.signal(jnp.zeros(4), e), np.clip(e, -0.5, 0.5))


def test_logistic():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    assert np.allclose(wf.losses.Logistic()(F, y), np.log1p(np.exp(-y * F)))
    assert np.allclose(wf.losses.Logistic().signal(jnp.asarray(F), y), y / (1 + np.exp(y * F)))
    assert np.isfinite(wf.losses.Logistic()(jnp.asarray([-1e4]), jnp.ones(1)))[0]  # no overflow


def test_cross_entropy():
    f, y = np.random.default_rng(0).normal(size=(5, 3)), np.array([0, 2, 1, 1, 0])
    p = np.exp(f) / np.exp(f).sum(1, keepdims=True)
    assert np.allclose(wf.losses.SoftmaxCrossEntropy()(jnp.asarray(f), y), -np.log(p[np.arange(5), y]))
    assert np.allclose(
        wf.losses.SoftmaxCrossEntropy().signal(jnp.asarray(f), jnp.asarray(y)), np.eye(3)[y] - p
    )


@pytest.mark.parametrize(
    "loss", [wf.losses.Squared(), wf.losses.Huber(0.3), wf.losses.Logistic()], ids=lambda v: type(v).__name__
)
def test_convex_in_f(loss):
    f = np.linspace(-4, 4, 81)
    values = np.asarray(loss(jnp.asarray(f), jnp.ones(81)))
    assert np.all(np.diff(values, 2) > -1e-14)
    slope = jax.vmap(jax.grad(lambda f: loss(f[None], jnp.ones(1))[0]))(jnp.asarray(f))
    assert np.allclose(loss.signal(jnp.asarray(f), jnp.ones(81)), -slope)
