"""Duals of piecewise linear activations by one integral, against closed forms, quadrature and chance."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.kernels.infinite import resolution
from wideflow.kernels.infinite.broken_lines import broken_line
from wideflow.kernels.infinite.duals import Cut, Leaky
from wideflow.kernels.infinite.resolution import resolved
from wideflow.problems.activations import Activation, derivative
from wideflow.problems.dual_quadrature import quadrature_dual, quadrature_pair

HARD_TANH = Activation(
    "hard_tanh", lambda h: jnp.where(h > 1, 1.0, jnp.where(h > -1, h, -1.0)), kinks=(-1.0, 1.0)
)
TENT = Activation("tent", lambda h: jnp.where(h > 0.5, 2 - 3 * h, h), kinks=(0.5,))
ELU = Activation("elu", lambda h: jnp.where(h > 0, 2 * h, jnp.expm1(jnp.minimum(h, 0.0))), kinks=(0.0,))
STEP = Activation("step", lambda h: jnp.where(h > 0, 1.0, 0.0), kinks=(0.0,))


def cases(n: int = 2000) -> tuple[np.ndarray, ...]:
    """Variances over five orders, some nearly equal; correlations of either sign up to 1 − 1e-15."""
    rng = np.random.default_rng(0)
    q1, q2 = np.exp(rng.uniform(-6, 5, (2, n)))
    q2 = np.where(rng.uniform(size=n) < 0.3, q1 * (1 + 10.0 ** rng.uniform(-14, -1, n)), q2)
    near = (1 - 10.0 ** rng.uniform(-15, -1, n)) * rng.choice([-1, 1], n)
    return q1, q2, np.where(rng.uniform(size=n) < 0.5, near, rng.uniform(-1, 1, n)) * np.sqrt(q1 * q2)


def pairs(dual, q1, q2, q12) -> list[np.ndarray]:
    same = jnp.zeros(q1.shape, bool)
    both = dual.pair(dual.table(jnp.asarray(q1)), dual.table(jnp.asarray(q2)), jnp.asarray(q12), same)
    return [np.asarray(v) for v in both]


@pytest.mark.parametrize("slope", [0.0, 0.2], ids=["relu", "leaky relu"])
def test_relu_is_its_closed_form(slope):
    """Twelve digits are promised whatever the variances and the correlation."""
    q1, q2, q12 = cases()
    line = broken_line(wf.activation("leaky_relu", slope=slope))
    (value, both), (known, known_both) = (pairs(dual, q1, q2, q12) for dual in (line, Leaky(slope)))
    assert np.max(np.abs(value - known) / np.sqrt(q1 * q2)) < 1e-12
    assert np.max(np.abs(both - known_both)) < 1e-12


@pytest.mark.parametrize("phi", [HARD_TANH, TENT], ids=lambda phi: phi.name)
def test_two_ways_agree(phi):
    """The integral and cut quadrature, of 96 nodes per piece; near correlation 1 E φ'φ' moves with the square
    root of what is left of it, by 1e-10 for a rounding of 1 − 1e-12: those pairs are left out."""
    q1, q2, q12 = (v[:100] for v in cases())
    far = 1 - np.abs(q12) / np.sqrt(q1 * q2) > 1e-7
    size = [np.sqrt(q1 * q2) + 1, np.ones_like(q1)]
    ways = [pairs(dual, q1, q2, q12) for dual in (broken_line(phi), Cut(phi, 96))]
    for own, other, scale in zip(*ways, size, strict=True):
        assert np.max(np.abs(own - other)[far] / scale[far]) < 1e-11


def test_chance_agrees():
    """10⁵ draws, four standard errors for each of six numbers."""
    q1, q2, q12 = 1.5, 0.7, -0.6
    draws = np.random.default_rng(1).multivariate_normal([0, 0], [[q1, q12], [q12, q2]], size=10**5)
    for dual in (broken_line(HARD_TANH), broken_line(TENT), Cut(ELU, 24)):
        phi = dual.phi
        for mean, f in zip(pairs(dual, *np.array([[q1], [q2], [q12]])), (phi, derivative(phi)), strict=True):
            products = np.prod(np.asarray(f(jnp.asarray(draws))), axis=1)
            assert abs(products.mean() - mean[0]) < 4 * products.std() / 10**2.5


def test_the_same_sample_and_no_variance():
    """E φ² and E φ'² at correlation 1, and φ(0)² with the left derivatives where h = 0."""
    line, q = broken_line(TENT), jnp.array([0.0, 0.3, 2.0])
    table = line.table(q)
    value, slope = line.pair(table, table, q, jnp.ones(3, bool))
    z = np.sqrt(np.asarray(q)) * np.random.default_rng(2).normal(size=(10**5, 1))
    for own, f in ((value, TENT), (slope, derivative(TENT))):
        squares = np.asarray(f(jnp.asarray(z))) ** 2
        assert np.all(np.abs(squares.mean(0) - own) <= 4 * squares.std(0) / 10**2.5)
    assert (value[0], slope[0]) == (0.0, 1.0)


def test_what_is_a_broken_line(monkeypatch):
    assert broken_line(ELU) is None
    assert broken_line(STEP) is None
    assert broken_line(wf.activation("tanh")) is None
    q = np.array([0.5, 1.0])
    assert resolved(Cut(HARD_TANH), q) == broken_line(HARD_TANH)
    assert isinstance(resolved(Cut(ELU), q), Cut)
    # a line that is not φ is found out by E φ²
    steeper = replace(broken_line(HARD_TANH), bends=(1.0, -0.9))
    monkeypatch.setattr(resolution, "broken_line", lambda phi: steeper)
    assert isinstance(resolved(Cut(HARD_TANH), q), Cut)


def test_both_duals_in_one_walk():
    """As `quadrature_dual` gives them one by one, and their derivatives."""
    q = [jnp.asarray(v) for v in ([1.0, 0.5], [0.7, 0.5], [0.3, 0.5])]
    tangents = [jnp.ones(2)] * 3
    value, moved = jax.jvp(lambda *q: quadrature_pair(ELU, *q, 24), q, tangents)
    for f, own, own_moved in zip((ELU, derivative(ELU)), value, moved, strict=True):
        one, one_moved = jax.jvp(lambda *q, f=f: quadrature_dual(f, f, *q, 24), q, tangents)
        np.testing.assert_allclose(own, one, rtol=1e-14)
        np.testing.assert_allclose(own_moved, one_moved, rtol=1e-13)
