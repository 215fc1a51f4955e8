"""Kernels of infinite width against finite networks, SciPy's quadrature, and exact values.

`ROUNDING` is thirteen digits of numbers of order one; measured differences are below 1e-14."""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy.special import erf

import wideflow as wf
from wideflow.kernels.empirical.ntk import empirical_ntk
from wideflow.kernels.infinite.kernels import InfiniteKernel, infinite_kernels
from wideflow.problems.activations import Activation, activation
from wideflow.states.layers import Conv, Dense, Elementwise, Flatten, GlobalAverage

ROUNDING = dict(rtol=1e-13, atol=1e-13)
X = np.random.default_rng(0).normal(size=(6, 5))
IMAGES = np.random.default_rng(1).normal(size=(4, 4, 4, 2))
RELU = activation("relu")


# --- finite networks ----------------------------------------------------------------------------

NETWORKS = {
    "relu": (wf.MLP(5, 1, "relu", gain=1.4), "ntk"),
    "relu, biases, front": (wf.MLP(5, 2, "relu", gain=1.4, bias=0.3, input_scale="front"), "ntk"),
    "erf, standard, biases": (wf.MLP(5, 2, "erf", gain=1.5, bias=0.5), "standard"),
    "gelu": (wf.MLP(5, 3, "gelu", gain=1.5, input_scale="front"), "ntk"),
    "tanh": (wf.MLP(5, 2, "tanh", gain=1.2, bias=0.2), "ntk"),
    "mean field": (wf.MLP(5, 1, "tanh", bias=0.7), "mean_field"),
    "mup": (wf.MLP(5, 2, "relu"), "mup"),
    "CNN flatten": (wf.CNN((4, 4, 2), 2, "relu", gain=1.4, bias=0.3), "ntk"),
    "CNN average": (wf.CNN((4, 4, 2), 2, "erf", gain=1.4, head="average", input_scale="front"), "ntk"),
    "CNN pools": (wf.CNN((4, 4, 2), 2, "relu", pool=(2, 1), gain=1.4), "standard"),
    "CNN strides": (wf.CNN((4, 4, 2), 2, "tanh", window=2, stride=2, padding="VALID"), "ntk"),
}


def starts(family, parametrisation, n, seeds, x):
    """f(0) f(0)ᵀ and, of every fourth seed, the tangent kernel, means over 12 outputs, at width n."""
    many = replace(family, layers=(*family.layers[:-1], Dense(12)))
    products, kernels = [], []
    for seed in range(seeds):
        network = many.sample(jax.random.key(seed), n, parametrisation)
        f = np.asarray(network(x))
        products.append(f @ f.T / 12)
        if seed % 4 == 0:  # its fluctuations are of order n^−½ already
            kernels.append(tangent_kernel(network, x, form="trace"))
    return np.array(products), np.array(kernels)


def tangent_kernel(network, x, form="full"):
    f, params, rates = network.tangent()
    return np.asarray(empirical_ntk(f, params, x, rates=rates, form=form, method="contraction"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_finite_networks_converge_to_it(name):
    family, parametrisation = NETWORKS[name]
    x, n, seeds = (X[:3], 256, 32) if len(family.inputs) == 1 else (IMAGES[:2], 96, 32)
    limit = infinite_kernels(family, x, parametrisation=parametrisation)
    size = np.max(np.abs(limit))
    for drawn, exact in zip(starts(family, parametrisation, n, seeds, x), limit, strict=True):
        error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
        # the bias of either kernel is of order 1/n, as are the parts that vanish, |x|² ≤ 10 of them
        assert np.all(np.abs(drawn.mean(axis=0) - exact) <= 4 * error + 5 * size / n)
        assert np.all(error <= 0.1 * size)  # or the test could not fail


@pytest.mark.slow
def test_the_kernel_of_one_start_is_reached_like_the_root_of_n():
    family, widths, x = wf.MLP(5, 1, "relu", gain=1.4, bias=0.3), (32, 181, 1024), X[:3]
    exact, apart = infinite_kernels(family, x).ntk, []
    for n in widths:
        kernels = [tangent_kernel(family.sample(jax.random.key(seed), n), x) for seed in range(40)]
        apart.append(np.sqrt(np.mean((np.array(kernels) - exact) ** 2)))
    slope = np.polyfit(np.log(widths), np.log(apart), 1)[0]
    assert (
        abs(slope + 0.5) < 0.1
    )  # forty draws: each root mean square is known to some 12 %, the slope to 0.04


# --- two layers, by other means ------------------------------------------------------------------


def expectation(fn, q1, q2, q12, split=False):
    """E fn(u, v) by SciPy, in polar coordinates cut where u or v changes sign, or on the plane."""
    chol = np.linalg.cholesky([[q1, q12], [q12, q2]])
    angles = [np.arctan2(*(sign * np.array([-row[0], row[1]]))) for row in chol for sign in (1, -1)]
    cuts = np.sort(np.mod(angles, 2 * np.pi)) if split else np.array([])
    edges = np.concatenate([[0.0], cuts, [2 * np.pi]])
    t, w = np.polynomial.legendre.leggauss(80)
    r, s = np.polynomial.legendre.leggauss(120)
    radius, s = 6 * (r + 1), 6 * s
    total = 0.0
    for low, high in pairwise(edges):
        angle = low + (high - low) / 2 * (t + 1)
        u, v = chol @ np.stack([np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle))]).reshape(
            2, -1
        )
        values = fn(u, v).reshape(len(radius), len(angle))
        total += (s * radius * np.exp(-(radius**2) / 2)) @ values @ w * (high - low) / 2
    return total / (2 * np.pi)


PAIRS = {
    "relu": (lambda h: np.maximum(h, 0), lambda h: (h > 0) * 1.0, True),
    "erf": (erf, lambda h: 2 / np.sqrt(np.pi) * np.exp(-(h**2)), False),
    "tanh": (np.tanh, lambda h: 1 / np.cosh(h) ** 2, False),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_layers_by_scipy(name):
    """K = Φ1 + Φ0 ∘ G1 with Φ0 = ⟨x, x'⟩, Φ1 = E φφ', G1 = E φ'φ', w ~ N(0, I/d)."""
    phi, slope, split = PAIRS[name]
    x = X[:3]
    gram = x @ x.T / 5
    found = infinite_kernels(wf.MLP(5, 1, name), x)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        q = gram[i, i], gram[j, j], gram[i, j]
        first = expectation(lambda u, v: phi(u) * phi(v), *q, split)
        second = expectation(lambda u, v: slope(u) * slope(v), *q, split)
        assert abs(found.nngp[i, j] - first) < 1e-10  # both rules have 11 digits and more
        assert abs(found.ntk[i, j] - (first + 5 * gram[i, j] * second)) < 1e-10


def test_two_layers_on_the_diagonal_by_scipy():
    q = X[0] @ X[0] / 5
    mean = lambda fn: integrate.quad(
        lambda z: fn(np.sqrt(q) * z) * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi),
        -12,
        12,
        epsabs=1e-13,
        limit=200,
    )[0]
    exact = mean(lambda h: np.tanh(h) ** 2) + 5 * q * mean(lambda h: np.cosh(h) ** -4)
    assert abs(infinite_kernels(wf.MLP(5, 1, "tanh"), X[:1]).ntk[0, 0] - exact) < 1e-10


@pytest.mark.parametrize("name", ["erf", "relu", "gelu"])
def test_closed_form_and_numerical_dual_agree(name):
    """A function of another name has no closed form here: a Hermite series, or quadrature cut at its kink."""
    own = activation(name)
    other = Activation("own " + name, own.fn, kinks=own.kinks)
    closed, numerical = (infinite_kernels(wf.MLP(5, 2, phi, gain=1.3, bias=0.4), X) for phi in (own, other))
    assert np.allclose(closed, numerical, rtol=0, atol=1e-9)  # ten digits of each of two layers


def test_steep_activation_is_cut_where_its_series_is_too_long():
    """erf(4h): at variance 1.5 its Hermite series falls like 0.98^k, too slowly for 1024 terms."""
    steep = Activation("steep", lambda h: jax.lax.erf(4 * h))
    gram = X @ X.T / 5
    wide = (1 + 32 * np.diag(gram)) ** 0.5
    exact = 2 / np.pi * np.arcsin(32 * gram / np.outer(wide, wide))
    assert np.allclose(infinite_kernels(wf.MLP(5, 1, steep), X).nngp, exact, rtol=0, atol=1e-9)


# --- parametrisations ---------------------------------------------------------------------------


def test_parts_of_layers():
    """Θ is the sum of the layers' parts, and a parametrisation leaves out those that vanish."""
    family = wf.MLP(5, 2, "relu", gain=1.3)
    ntk, standard, mup = (infinite_kernels(family, X, parametrisation=p) for p in ("ntk", "standard", "mup"))
    # The first layer alone: c_1 as in "ntk", the others so large that their parts vanish.
    only = wf.Parametrisation((0.0, 0.5, 0.5), (0.0, 0.0, 0.0), (0.0, 1.0, 1.0))
    first = infinite_kernels(family, X, parametrisation=only)
    assert np.allclose(ntk.ntk, standard.ntk + first.ntk, **ROUNDING)
    assert np.allclose(ntk.ntk, mup.ntk, **ROUNDING)
    assert np.all(mup.nngp == 0) and np.allclose(ntk.nngp, standard.nngp, **ROUNDING)


def test_shifted_parametrisation_has_the_same_kernels():
    family = wf.MLP(5, 2, "tanh", bias=0.1)
    shifted = wf.Parametrisation.ntk(2).shift((0.0, 0.3, -0.2))
    assert np.array_equal(infinite_kernels(family, X), infinite_kernels(family, X, parametrisation=shifted))


def test_homogeneous_network_needs_no_sizes_of_one():
    """h_1 of size n^½, which the second layer takes back: for relu the same network."""
    moved = wf.Parametrisation((-0.5, 1.0, 0.5), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    kernels = infinite_kernels(wf.MLP(5, 2, "relu"), X, parametrisation=moved)
    assert np.allclose(kernels, infinite_kernels(wf.MLP(5, 2, "relu"), X), **ROUNDING)
    with pytest.raises(ValueError, match="h_1 diverges"):
        infinite_kernels(wf.MLP(5, 2, "tanh"), X, parametrisation=moved)


def test_whether_the_kernel_stays():
    family = wf.MLP(5, 1, "relu")
    assert InfiniteKernel(family).frozen and not InfiniteKernel(family, "mean_field").frozen


# --- exact properties ---------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 3])
def test_relu_on_the_diagonal_is_exact(depth):
    """With g² = 2, Σ(x, x) = 2|x|²/d and Θ(x, x) = (L + 1) Σ(x, x): also for equal rows of two arrays."""
    x = np.concatenate([X, X[:2]])
    family = wf.MLP(5, depth, "relu", gain=2**0.5, input_scale="front")
    square = 2 * np.sum(x**2, axis=1) / 5
    for kernels in (infinite_kernels(family, x), infinite_kernels(family, x, x[::-1].copy()[::-1])):
        # a few roundings; an angle that is off by rounding would be 1e-8
        assert np.allclose(np.diag(kernels.nngp), square, rtol=1e-14, atol=0)
        assert np.allclose(np.diag(kernels.ntk), (depth + 1) * square, rtol=1e-14, atol=0)
        assert np.allclose(kernels.ntk[0, 6], (depth + 1) * square[0], rtol=1e-14, atol=0)


def test_equal_patches_are_seen():
    """An image of one colour: all inner patches are equal, and with VALID padding Θ is that of a pixel."""
    images = np.ones((2, 5, 5, 2)) * np.array([0.3, 0.7]) * np.array([1.0, 0.4])[:, None, None, None]
    scales = dict(gain=2**0.5, input_scale="front", bias=0.3)
    cnn = wf.CNN((5, 5, 2), 2, "relu", window=2, padding="VALID", head="average", **scales)
    pixels = infinite_kernels(wf.MLP(2, 2, "relu", **scales), images[:, 0, 0])
    assert np.allclose(infinite_kernels(cnn, images), pixels, rtol=1e-13, atol=0)


@pytest.mark.parametrize("phi", ["relu", "gelu", "tanh", activation("leaky_relu", slope=0.2)])
def test_symmetric_positive_and_right_at_zero(phi):
    x = np.concatenate([X, np.zeros((2, 5)), X[:1]])
    for kernel in infinite_kernels(wf.MLP(5, 2, phi, gain=1.3), x):
        assert np.array_equal(kernel, kernel.T)
        assert np.linalg.eigvalsh(kernel)[0] > -1e-13 * np.trace(kernel)
        assert np.allclose(kernel[6:8], 0, atol=1e-15)  # φ(0) = 0 and no biases


def test_bias_that_starts_at_zero_sees_the_left_slope_at_zero():
    """x = 0 with trained biases that start at 0: h = 0, where relu' is 0 and leaky_relu' its slope."""
    family = lambda slope: wf.MLP(5, 1, activation("leaky_relu", slope=slope), bias=0.0)
    x = np.concatenate([np.zeros((1, 5)), X[:1]])
    for slope in (0.0, 0.3):
        theta = infinite_kernels(family(slope), x).ntk
        finite = tangent_kernel(family(slope).sample(jax.random.key(0), 4000), x)
        assert abs(theta[0, 0] - (1 + slope**2)) < 1e-14
        assert np.allclose(finite[0], theta[0], atol=5 / np.sqrt(4000))  # five standard errors of a mean


@pytest.mark.parametrize("family", [wf.MLP(32, 2, "relu", bias=0.1), wf.CNN((4, 4, 2), 1, "relu", pool=2)])
def test_tiles_do_not_change_the_numbers(family):
    whole = infinite_kernels(family, IMAGES, IMAGES[::-1] + 1)
    for rows in (1, 3):
        parts = infinite_kernels(family, IMAGES, IMAGES[::-1] + 1, rows=rows)
        assert np.allclose(whole, parts, **ROUNDING)
        mirrored = infinite_kernels(family, IMAGES, rows=rows)
        assert np.allclose(mirrored, infinite_kernels(family, IMAGES, IMAGES), **ROUNDING)


def test_float64_whatever_is_given_and_set():
    x = X.astype(np.float32)
    family = wf.MLP(5, 2, "relu", gain=1.4)
    exact = infinite_kernels(family, x.astype(np.float64))
    with jax.enable_x64(False):
        found = infinite_kernels(family, jnp.asarray(x))
    assert found.ntk.dtype == found.nngp.dtype == np.float64
    assert np.array_equal(found, exact)


# --- as a function --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [wf.MLP(32, 2, "tanh"), wf.CNN((4, 4, 2), 2, "relu", head="average")])
def test_inside_jit(family):
    x = IMAGES.reshape(4, 32)
    kernel = InfiniteKernel(family)
    exact = infinite_kernels(family, x)
    assert np.allclose(jax.jit(kernel)(x, x), exact.ntk, rtol=0, atol=1e-10)  # its series is 128 terms
    assert np.allclose(jax.jit(kernel.nngp)(x, x), exact.nngp, rtol=0, atol=1e-10)
    single = jax.jit(kernel)(x.astype(np.float32), x.astype(np.float32))
    assert single.dtype == jnp.float32
    # a correlation in float32 is known to 1e-7, relu's angle near 0 to its root
    assert np.allclose(single, exact.ntk, rtol=1e-3, atol=1e-3)


def test_hash_and_equality():
    one, same = InfiniteKernel(wf.MLP(5, 2, "relu")), InfiniteKernel(wf.MLP(5, 2, "relu"), "ntk")
    assert one == same and hash(one) == hash(same) and one != one.nngp and one.nngp.ntk == one


@pytest.mark.parametrize("phi", ["relu", "tanh"])
def test_derivatives(phi):
    kernel, step = InfiniteKernel(wf.MLP(5, 2, phi)), 1e-5
    slope = jax.jit(jax.grad(lambda x: jnp.sum(kernel(x, jnp.asarray(X)))))
    x = X[:1] + 0.1
    found = slope(x)[0]
    for k in range(5):
        above, below = (np.sum(kernel(x + sign * step * np.eye(5)[k], X)) for sign in (1, -1))
        assert abs(found[k] - (above - below) / (2 * step)) < 1e-6  # step² and rounding/step
    # on the diagonal, where relu's Θ has a cone, and at 0
    assert np.isfinite(slope(X[:1])).all() and np.isfinite(slope(np.zeros((1, 5)))).all()


def test_derivative_of_the_covariance_on_the_diagonal():
    """∂Σ(x, x')/∂x at x = x' for relu: Σ = √(qq')(…) is differentiable there, and the derivative is half of
    that of Σ(x, x) = |x|²/(2d), by symmetry."""
    kernel = InfiniteKernel(wf.MLP(5, 1, "relu"), which="nngp")
    slope = jax.jit(jax.grad(lambda x: kernel(x, jnp.asarray(X[:1]))[0, 0]))(X[:1])
    assert np.allclose(slope, X[:1] / 10, **ROUNDING)


# --- bad input -----------------------------------------------------------------------------------


def test_bad_samples():
    family = wf.MLP(5, 1, "relu")
    with pytest.raises(
        ValueError, match=r"x1 must have one or more rows of shape \(5,\), got shape \(6, 4\)"
    ):
        infinite_kernels(family, X[:, :4])
    with pytest.raises(ValueError, match="x2 must have one or more rows"):
        infinite_kernels(family, X, X[:0])
    with pytest.raises(ValueError, match="x1 must be finite"):
        infinite_kernels(family, X * np.nan)
    with pytest.raises(ValueError, match="family must be"):
        infinite_kernels("relu", X)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="which must be"):
        InfiniteKernel(family, which="both")


def test_diverging_kernels():
    family = wf.MLP(5, 1, "relu")
    with pytest.raises(ValueError, match=r"no limit under the parametrisation 'naive'.*layer 1 of 2 grows"):
        infinite_kernels(family, X, parametrisation="naive")
    large_start = wf.Parametrisation((0.0, 0.5), (0.0, -0.25), (0.5, 0.0))
    with pytest.raises(ValueError, match=r"f\(0\) has no limit"):
        infinite_kernels(family, X, parametrisation=large_start)
    assert np.isfinite(InfiniteKernel(family, large_start)(X)).all()  # the tangent kernel has one


def test_activations_without_a_dual():
    large = Activation("exp of squares", lambda h: jnp.exp(h**2))
    with pytest.raises(ValueError, match="exp of squares has no dual"):
        infinite_kernels(wf.MLP(5, 1, large), X)
    hidden = Activation("ramp", lambda h: jnp.maximum(h - 0.3, 0))
    with pytest.raises(ValueError, match=r"dual of ramp .* state them"):
        infinite_kernels(wf.MLP(5, 1, hidden), X)
    stated = Activation("ramp", hidden.fn, kinks=(0.3,))
    assert np.isfinite(infinite_kernels(wf.MLP(5, 1, stated), X).ntk).all()


def test_networks_without_a_gaussian_limit():
    narrow = wf.Family((5,), (Dense(3), Elementwise(RELU), Dense(1)))
    with pytest.raises(ValueError, match="keeps its width"):
        infinite_kernels(narrow, X)
    twice = wf.Family((5,), (Dense(), Elementwise(RELU), Elementwise(RELU), Dense(1)))
    with pytest.raises(ValueError, match="acts on what another activation made"):
        infinite_kernels(twice, X)


def test_other_orders_of_layers():
    """Layers before the first weights act on x; a dense layer may follow a flattened image."""
    phi = Elementwise(RELU)
    plain = wf.Family((4, 4, 2), (Flatten(), Dense(), phi, Dense(1)))
    assert np.allclose(
        infinite_kernels(plain, IMAGES), infinite_kernels(wf.MLP(32, 1, "relu"), IMAGES), **ROUNDING
    )
    whole = wf.Family((4, 4, 2), (Conv(4, padding="VALID"), phi, GlobalAverage(), Dense(), phi, Dense(1)))
    deep = infinite_kernels(wf.MLP(32, 2, "relu"), IMAGES)
    assert np.allclose(infinite_kernels(whole, IMAGES), deep, **ROUNDING)


def test_a_function_that_is_only_called_relu_is_not_homogeneous():
    phi = wf.types.Activation("relu", jnp.tanh)
    rule = wf.Parametrisation((0.0, 0.75, 0.5), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="vanishes as n grows"):
        wf.infinite_kernels(wf.MLP(3, 2, phi), np.ones((2, 3)), parametrisation=rule)
