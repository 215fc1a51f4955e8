"""Closed duals against quadrature, quadrature against exact integrals, both against sampling.

Tolerances: `EXACT` is ten digits of numbers of order one; the measured errors are below 1e-12, so it
leaves room for rounding on other machines while any wrong factor misses it by far.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.problems.activations import Activation, activation, derivative
from wideflow.problems.dual_quadrature import gauss_mean, quadrature_dual
from wideflow.problems.duals import closed_dual, closed_mean

EXACT = dict(rtol=0, atol=1e-10)

HERMITE = [activation("hermite", degree=k) for k in range(6)]
RAMP = activation("piecewise_linear", knots=((-1, -1), (0.5, 0.2), (2, 3)))
LEAKY, STEEP = activation("leaky_relu", slope=0.1), activation("leaky_relu", slope=-0.7)
RELU, IDENTITY, SQUARE = activation("relu"), activation("identity"), activation("square")
ERF, GELU, SIN, COS = map(activation, ("erf", "gelu", "sin", "cos"))

# One pair per formula, then the same formulas with other arguments and in the other order.
FORMULAS = [
    *[(ERF, ERF), (GELU, GELU), (SIN, SIN), (COS, COS), (SIN, COS), (RELU, RELU), (LEAKY, STEEP)],
    *[(IDENTITY, phi) for phi in (ERF, GELU, SIN, COS, RAMP)],
    *[(SQUARE, HERMITE[4]), (HERMITE[3], HERMITE[5])],
]
VARIANTS = [
    *[(COS, SIN), (LEAKY, LEAKY), (RELU, LEAKY), (LEAKY, RELU), (IDENTITY, RELU)],
    *[(phi, IDENTITY) for phi in (ERF, GELU, SIN, COS, LEAKY, RAMP, IDENTITY)],
    *[(HERMITE[m], HERMITE[n]) for m, n in ((0, 0), (0, 2), (1, 4), (5, 5))],
    *[(SQUARE, SQUARE), (HERMITE[3], IDENTITY)],
]
PAIRS = FORMULAS + VARIANTS
SMOOTHED = [ERF, GELU, SIN, COS, RELU, LEAKY, RAMP, IDENTITY, SQUARE, HERMITE[0], HERMITE[5]]

# Enough nodes for variance 4 (see quadrature_dual), twice over for sin and polynomials.
ORDERS = {"erf": 200, "gelu": 128, "sin": 48, "cos": 48}


def label(x):
    return "-".join([x.name, *(str(v) for _, v in x.options if x.name != "piecewise_linear")])


def nodes(*phis):
    """Nodes per dimension; per piece where there are kinks."""
    return 32 if any(phi.kinks for phi in phis) else max(ORDERS.get(p.name, 16) for p in phis)


def grid(correlations):
    """Rows q1, q2, q12."""
    variances = [(0.1, 0.1), (1.0, 1.0), (0.1, 4.0), (2.0, 0.5), (4.0, 4.0)]
    return np.array([(a, b, r * np.sqrt(a * b)) for a, b in variances for r in correlations]).T


def gradients(fn, args):
    """All partial derivatives of an elementwise function, rows as in `args`."""
    return np.array(jax.jit(jax.vmap(jax.grad(fn, tuple(range(len(args))))))(*args))


# --- closed duals ------------------------------------------------------------------------------


@pytest.mark.parametrize(("phi1", "phi2"), FORMULAS, ids=label)
def test_closed_dual_and_its_gradient_equal_quadrature(phi1, phi2):
    q = grid([0.0, 0.3, 0.99, -0.7, 1.0, -1.0])
    order, dual = nodes(phi1, phi2), closed_dual(phi1, phi2)

    def by_quadrature(*q):
        return quadrature_dual(phi1, phi2, *q, order)

    value, gradient = jax.jit(jax.vmap(jax.value_and_grad(by_quadrature, (0, 1, 2))))(*q)
    np.testing.assert_allclose(dual(*q), value, **EXACT)
    # With kinks the derivative is linear in ϑ, which a rounding of 1e-16 at correlation ±1 moves
    # by √1e-16.
    at_one = abs(q[2]) > 0.999 * np.sqrt(q[0] * q[1])
    tolerance = np.where(at_one & bool(phi1.kinks and phi2.kinks), 1e-7, EXACT["atol"])
    computed = gradients(dual, q)
    assert np.all(abs(computed - np.array(gradient)) < tolerance)
    price = quadrature_dual(derivative(phi1), derivative(phi2), *q, order)
    assert np.all(abs(computed[2] - price) < tolerance)


@pytest.mark.parametrize(("phi1", "phi2"), VARIANTS, ids=label)
def test_closed_dual_equals_quadrature(phi1, phi2):
    q = grid([0.0, 0.3, 0.99, -0.7, 1.0, -1.0])
    value = quadrature_dual(phi1, phi2, *q, nodes(phi1, phi2))
    np.testing.assert_allclose(closed_dual(phi1, phi2)(*q), value, **EXACT, strict=True)


@pytest.fixture(scope="module")
def gaussian_sample():
    q1, q2, q12 = 0.7, 1.6, -0.6
    u, v = np.random.default_rng(0).multivariate_normal([0, 0], [[q1, q12], [q12, q2]], 10**6).T
    return (q1, q2, q12), jnp.asarray(u), jnp.asarray(v)


@pytest.mark.parametrize(("phi1", "phi2"), PAIRS, ids=label)
def test_closed_dual_equals_sample_mean(phi1, phi2, gaussian_sample):
    q, u, v = gaussian_sample
    products = phi1(u) * phi2(v)
    standard_error = products.std() / np.sqrt(products.size)
    # Four standard errors: with a fixed seed this fails for one seed in 300, for all pairs taken
    # together. 1e-12 is for the pair of constants, which has no spread.
    assert abs(products.mean() - closed_dual(phi1, phi2)(*q)) < 4 * standard_error + 1e-12


@pytest.mark.parametrize("phi", [ERF, GELU, SIN, RELU, LEAKY, HERMITE[3]], ids=label)
def test_gradient_along_the_diagonal(phi):
    """d/dq E φ(u)φ(±u) is a derivative of a one-dimensional integral, free of Price's theorem."""
    q, sign = np.array([1e-3, 0.3, 1.0, 4.0])[:, None], np.array([1.0, -1.0])
    dual, kinks = closed_dual(phi, phi), phi.kinks or (0.0,)
    same = Activation("φ(h)²", lambda h: phi(h) ** 2, kinks=kinks)
    opposite = Activation("φ(h)φ(−h)", lambda h: phi(h) * phi(-h), kinks=kinks)

    def exact(q):
        return gauss_mean(same, 0.0, q, 80), gauss_mean(opposite, 0.0, q, 80)

    computed = jax.jit(jax.vmap(jax.jacfwd(lambda q: dual(q, q, sign * q))))(q[:, 0])
    reference = np.stack(jax.jit(jax.vmap(jax.jacfwd(exact)))(q[:, 0]), 1)
    # ϑ is off by √1e-16 where √(q·q) is not q to the last digit.
    np.testing.assert_allclose(computed, reference, rtol=0, atol=1e-8)


def degenerate(dtype):
    """Zero variances, correlation ±1 exactly, beyond by rounding, and large."""
    above = 1 + 4 * jnp.finfo(dtype).eps
    rows = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 1, 1), (1, 1, -1), (1, 1, 0), (0.3, 0.3, 0.3)]
    rows += [(2, 2, 2 * above), (2, 2, -2 * above), (0.1, 3, np.sqrt(0.3) * above)]
    rows += [(1e4, 1e4, 1e4), (1e-12, 1e-12, 1e-12), (1e-12, 1, 0)]
    return jnp.asarray(rows, dtype).T


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize(("phi1", "phi2"), FORMULAS, ids=label)
def test_finite_at_degenerate_points(phi1, phi2, dtype):
    dual, q = closed_dual(phi1, phi2), degenerate(dtype)

    @jax.jit
    def all_of_it(*q):
        modes = [jax.vmap(jac(dual, (0, 1, 2)))(*q) for jac in (jax.grad, jax.jacfwd)]
        return dual(*q), *(jnp.stack(mode) for mode in modes)

    value, reverse, forward = all_of_it(*q)
    for array in (value, reverse, forward):
        assert array.dtype == dtype and jnp.all(jnp.isfinite(array))
    # The same terms in another order of summation; they are of the size of the largest derivative
    # at each point, times √q = 100 for gelu at q = 1e4.
    size = 1 + abs(reverse).max(0)
    assert jnp.all(abs(forward - reverse) < 1e3 * jnp.finfo(dtype).eps * size)


@pytest.mark.parametrize(("phi1", "phi2"), FORMULAS, ids=label)
def test_single_precision_is_as_good_as_it_can_be(phi1, phi2):
    q = np.float32(grid([0.0, 0.3, 0.99, -0.7]))
    dual = closed_dual(phi1, phi2)
    single, double = dual(*q), dual(*np.float64(q))
    # 1e-6: ten roundings of 6e-8 on intermediate results of the size of E φ1² + E φ2².
    size = 1 + closed_dual(phi1, phi1)(q[0], q[0], q[0]) if closed_dual(phi1, phi1) else 4.0
    size += closed_dual(phi2, phi2)(q[1], q[1], q[1]) if closed_dual(phi2, phi2) else 4.0
    assert np.all(abs(single - double) < 1e-6 * size)


def test_relu_at_zero_variance_has_the_derivative_of_the_diagonal():
    dual = closed_dual("relu", "relu")
    assert jax.grad(lambda q: dual(q, q, q))(0.0) == 0.5  # E max(u, 0)² = q/2, exactly
    np.testing.assert_array_equal(jax.grad(dual, (0, 1, 2))(0.0, 1.0, 0.0), [0.0, 0.0, 0.5])


def test_duals_broadcast_and_jit():
    q1, q2 = np.linspace(0.1, 2, 4)[:, None], np.linspace(0.1, 2, 3)
    dual = closed_dual("relu", "relu")
    assert dual is closed_dual(activation("relu"), jax.nn.relu)  # no recompilation
    table = jax.jit(dual)(q1, q2, 0)
    assert table.shape == (4, 3)
    # √(q1q2)/(2π), to rounding.
    np.testing.assert_allclose(table, np.sqrt(q1 * q2) / (2 * np.pi), rtol=1e-14)
    assert quadrature_dual("relu", "relu", q1, q2, 0, 8).shape == (4, 3)


def test_no_closed_form():
    assert closed_dual("tanh", "tanh") is None
    assert closed_dual("erf", "relu") is None
    assert closed_dual("identity", "tanh") is None
    without = [name for name in ("erf", "relu", "sigmoid", "softplus", "tanh") if not closed_mean(name)]
    assert without == ["sigmoid", "softplus", "tanh"]


@pytest.mark.parametrize("name", ["erf", "hermite"])
def test_a_namesake_is_not_the_named_activation(name):
    def fn(h):
        return jax.lax.erf(h / 2)

    fn.__name__ = name
    assert closed_dual(fn, fn) is None and closed_mean(fn) is None
    assert closed_dual(fn, "erf") is None


# --- closed means ------------------------------------------------------------------------------

MU, V = (a.ravel() for a in np.meshgrid([-3.0, -0.4, 0.0, 0.3, 1.0, 2.5], [0.0, 0.01, 1.0, 4.0]))


@pytest.mark.parametrize("phi", SMOOTHED, ids=label)
def test_closed_mean_equals_quadrature(phi):
    mean, order = closed_mean(phi), nodes(phi)
    np.testing.assert_allclose(mean(MU, V), gauss_mean(phi, MU, V, order), **EXACT, strict=True)
    np.testing.assert_allclose(mean(MU, 0.0), phi(jnp.asarray(MU)), **EXACT)
    on_kink = (V == 0) & np.isin(MU, phi.kinks)  # there the two choose different one-sided values
    args = [MU[~on_kink], V[~on_kink]]
    rule = gradients(lambda mu, v: gauss_mean(phi, mu, v, order), args)
    np.testing.assert_allclose(gradients(mean, args), rule, **EXACT)


@pytest.mark.parametrize("phi", SMOOTHED, ids=label)
def test_closed_mean_equals_sample_mean(phi):
    h = jnp.asarray(0.4 + np.sqrt(0.8) * np.random.default_rng(1).standard_normal(10**6))
    standard_error = phi(h).std() / 1e3
    # Four standard errors, as above.
    assert abs(phi(h).mean() - closed_mean(phi)(0.4, 0.8)) < 4 * standard_error + 1e-12


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("phi", [ERF, GELU, LEAKY, RAMP, HERMITE[5]], ids=label)
def test_closed_mean_is_finite_without_variance(phi, dtype):
    mu = jnp.tile(jnp.asarray([-1.0, 0.0, 0.5, 2.0], dtype), 2)  # the kinks among them
    v = jnp.repeat(jnp.asarray([0.0, 1e-12], dtype), 4)
    slopes = gradients(closed_mean(phi), [mu, v])
    assert slopes.dtype == dtype and np.all(np.isfinite(slopes))
    # At v = 0 φ' itself, kinks included; a few roundings of numbers up to 10.
    tolerance = 20 * jnp.finfo(dtype).eps
    np.testing.assert_allclose(slopes[0, :4], derivative(phi)(mu[:4]), rtol=0, atol=tolerance)


# --- quadrature --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phi1", "phi2", "order"),
    [("tanh", "softplus", 96), (RAMP, RAMP, 32), ("relu", "tanh", 48)],
)
def test_gradient_of_quadrature_equals_differences(phi1, phi2, order):
    q, step = grid([0.0, 0.4, -0.7])[:, :9], 1e-4  # variances up to 4 with 0.1

    def dual(q):
        return quadrature_dual(phi1, phi2, *q, order)

    shifts = step * np.eye(3)[:, :, None]
    differences = [(dual(q + s) - dual(q - s)) / (2 * step) for s in shifts]
    computed = gradients(lambda *q: dual(q), q)
    # The central difference: step²/6 times third derivatives, which reach 20 at variance 0.1,
    # plus 1e-15/step of rounding.
    np.testing.assert_allclose(computed, differences, rtol=0, atol=1e-6)


@pytest.mark.parametrize("phi", ["tanh", RAMP])
def test_gradient_of_quadrature_on_the_diagonal(phi):
    phi = activation(phi)
    square = Activation("φ²", lambda h: phi(h) ** 2, kinks=phi.kinks or (0.0,))
    q = np.array([0.2, 1.0])
    computed = gradients(lambda q: quadrature_dual(phi, phi, q, q, q, 128), [q])
    exact = gradients(lambda q: gauss_mean(square, 0.0, q, 64), [q])
    np.testing.assert_allclose(computed, exact, **EXACT)


def test_second_derivatives_with_kinks():
    """∂²/∂q12² E max(u,0)max(v,0) = density of (u, v) at 0 = 1/(2π√det)."""
    second = jax.jit(jax.grad(jax.grad(lambda c: quadrature_dual("relu", "relu", 1.0, 2.0, c, 32))))
    np.testing.assert_allclose(second(0.5), 1 / (2 * np.pi * np.sqrt(2 - 0.25)), **EXACT)


def test_function_with_a_jump():
    """Sheppard: P(u > 0, v > 0) = (π − ϑ)/(2π), whose derivative is 1/(2π√(1 − ρ²))."""
    step = Activation("step", lambda h: jnp.where(h >= 0, 1.0, 0.0), kinks=(0.0,))
    rho = np.array([-0.9, 0.0, 0.5])
    values = quadrature_dual(step, step, 1.0, 1.0, rho, 32)
    np.testing.assert_allclose(values, (np.pi - np.arccos(rho)) / (2 * np.pi), **EXACT)
    slopes = gradients(lambda r: quadrature_dual(step, step, 1.0, 1.0, r, 32), [rho])
    np.testing.assert_allclose(slopes[0], 1 / (2 * np.pi * np.sqrt(1 - rho**2)), **EXACT)
    # At μ = 0 the cut is at z = 0, where a fixed cut of the rule must not sit.
    density = jax.grad(lambda mu: gauss_mean(step, mu, 2.0, 32))(0.0)
    np.testing.assert_allclose(density, 1 / np.sqrt(4 * np.pi), **EXACT)


def test_hermite_rule_converges_for_tanh():
    """Both rules, which share no node, agree; and the orders in the docstring are enough."""
    cut = Activation("tanh", jnp.tanh, kinks=(0.0,))
    rho = np.array([0.0, 0.5, 0.99, 1.0, -0.7])
    for q, order in ((1.0, 88), (4.0, 320)):
        values = quadrature_dual("tanh", "tanh", q, q, q * rho, order)
        reference = quadrature_dual(cut, cut, q, q, q * rho, 64)
        np.testing.assert_allclose(values, reference, **EXACT)


@pytest.mark.parametrize("phi", [RELU, ERF], ids=label)
def test_quadrature_in_single_precision(phi):
    q = np.float32(grid([0.0, 0.99, -0.7])[:, :6])
    order = nodes(phi)
    values = quadrature_dual(phi, phi, *q, order)
    assert values.dtype == np.float32
    # A few hundred roundings of 6e-8 in the sums over nodes, adding up like a random walk.
    double = quadrature_dual(phi, phi, *np.float64(q), order)
    np.testing.assert_allclose(values, double, rtol=0, atol=1e-5)
