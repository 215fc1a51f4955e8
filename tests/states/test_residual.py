"""Residual blocks: by hand, at n = ∞ against finite networks, layer by layer, trained, and from a file."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import wideflow as wf
from wideflow.layers import Conv, Dense, Elementwise, Flatten, GlobalAverage, Residual
from wideflow.problems.activations import activation

PHI, RELU = Elementwise(activation("erf")), Elementwise(activation("relu"))
X = np.random.default_rng(0).normal(size=(5, 4))
IMAGES = np.random.default_rng(1).normal(size=(3, 3, 3, 2))
FAMILIES = {
    "two blocks": wf.Family((4,), (Dense(), *(Residual((PHI, Dense()), 2**-0.5),) * 2, PHI, Dense(1))),
    "nested, biases": wf.Family(
        (4,),
        (Dense(), Residual((PHI, Dense(), Residual((RELU, Dense()), 0.5)), 0.7), RELU, Dense(2)),
        gain=1.3,
        bias=0.4,
    ),
    "beside an activation": wf.Family(
        (4,), (Dense(), RELU, Residual((Dense(), RELU, Dense()), 0.8), Dense(1))
    ),
    "images": wf.Family(
        (3, 3, 2), (Conv(2), Residual((RELU, Conv(3)), 0.5), RELU, GlobalAverage(), Dense(1))
    ),
    "flat images": wf.Family((3, 3, 2), (Conv(2), Residual((PHI, Conv(3))), PHI, Flatten(), Dense(1))),
}


def inputs(family):
    return X if len(family.inputs) == 1 else IMAGES


def test_by_hand():
    """h + c φ(h)W/√n with NTK multipliers."""
    n = 6
    net = FAMILIES["two blocks"].sample(jr.key(0), n)
    w1, w2, w3, w4 = (part.w for part in net.parts)
    h = X @ w1
    for w in (w2, w3):
        h = h + 2**-0.5 * jax.scipy.special.erf(h) @ w / np.sqrt(n)
    by_hand = (jax.scipy.special.erf(h) @ w4)[:, 0] / np.sqrt(n)
    np.testing.assert_allclose(net(X), by_hand, rtol=1e-12)  # rounding of sums of 6


def test_a_block_of_multiplier_zero_is_not_there():
    plain = wf.Family((4,), (Dense(), PHI, Dense(1)))
    idle = wf.Family((4,), (Dense(), Residual((PHI, Dense()), 0.0), PHI, Dense(1)))
    for one, other in zip(wf.infinite_kernels(plain, X), wf.infinite_kernels(idle, X), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("name", FAMILIES)
def test_finite_networks_converge_to_the_infinite_one(name):
    """f(0)f(0)ᵀ and tangent kernels at width n, their means over seeds within four standard errors and a bias
    of order 1/n."""
    family, seeds = FAMILIES[name], 24
    n, x = (192, X[:3]) if len(family.inputs) == 1 else (64, IMAGES[:2])
    many = wf.Family(family.inputs, (*family.layers[:-1], Dense(12)), family.gain, family.bias)
    limit = wf.infinite_kernels(family, x)
    products, kernels = [], []
    for seed in range(seeds):
        net = many.sample(jr.key(seed), n)
        f = np.asarray(net(x))
        products.append(f @ f.T / 12)
        kernels.append(np.asarray(wf.tangent_kernel(net, x, form="trace")))
    size = np.max(np.abs(limit))
    for drawn, exact in zip((np.array(products), np.array(kernels)), limit, strict=True):
        error = drawn.std(axis=0, ddof=1) / np.sqrt(seeds)
        assert np.all(np.abs(drawn.mean(axis=0) - exact) <= 4 * error + 5 * size / n)
        assert np.all(error <= 0.1 * size)  # or the test could not fail


def test_infinite_depth():
    """Blocks h + φ(h)W/√L of the identity: Σ = Σ₁(1 + 1/L)^L → e Σ₁, the error of order 1/L."""
    linear, L = Elementwise(activation("identity")), 64
    family = wf.Family((4,), (Dense(), *(Residual((linear, Dense()), L**-0.5),) * L, Dense(1)))
    exact = X @ X.T / 4 * (1 + 1 / L) ** L
    np.testing.assert_allclose(wf.infinite_kernels(family, X).nngp, exact, rtol=1e-12)
    assert abs((1 + 1 / L) ** L / np.e - 1) < 1 / L


@pytest.mark.parametrize(
    ("name", "parametrisation"), [("two blocks", "mup"), ("nested, biases", "ntk"), ("images", "mup")]
)
def test_layer_by_layer_equals_explicit_jacobians(name, parametrisation):
    """To 1e-12 of the largest entry: sums of some hundred products, each rounded at 1e-16."""
    family = FAMILIES[name]
    net, x = family.sample(jr.key(0), 5, parametrisation), jnp.asarray(inputs(family))
    f, (parts, exponents), (rates, _) = net.tangent()
    jacobian = jax.jit(jax.jacrev(lambda parts: f((parts, exponents), x)))(parts)
    rows = [leaf.reshape(len(x), net.outputs, -1) for leaf in jax.tree.leaves(jacobian)]
    pairs = zip(jax.tree.leaves(rates), rows, strict=True)
    explicit = sum(rate * np.einsum("iop,jqp->ijoq", row, row) for rate, row in pairs)
    kernel = wf.tangent_kernel(net, x)
    kernel = kernel[..., None, None] if net.outputs == 1 else kernel
    np.testing.assert_allclose(kernel, explicit, rtol=0, atol=1e-12 * abs(explicit).max())
    parts = wf.kernels.tangent_kernels(net, x)
    assert len(parts) == len(net.parts) == family.depth + 1


def problem():
    return wf.Problem(x=wf.Dataset(X, np.sin(X[:, 0])))


def test_one_step_of_training():
    """Descent moves each weight by −step · rate · ∇R; SGD on all rows is the same up to the batch."""
    net = FAMILIES["two blocks"].sample(jr.key(0), 8, "mup")
    P, step = problem(), 0.01
    risk = lambda parts: 0.5 * jnp.mean((net.with_parts(parts)(X) - P.x.y) ** 2)
    gradient, rates = jax.grad(risk)(net.parts), net.rates()
    by_hand = jax.tree.map(lambda p, g, r: p - step * r * g, net.parts, gradient, rates)
    run = wf.evolve(wf.GradientDescent(wf.Risk(P), step=step), net, [0.0, step])
    for one, other in zip(*map(jax.tree.leaves, (run.final.parts, by_hand)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)  # rounding


def test_every_way_to_train_and_back_from_a_file(tmp_path):
    net = FAMILIES["nested, biases"].sample(jr.key(0), 8)
    y = np.stack([np.sin(X[:, 0]), np.cos(X[:, 1])], axis=1)
    R = wf.Risk(wf.Problem(x=wf.Dataset(X, y)))
    for method in (wf.SGD(R, step=0.02, batch=2), wf.GradientFlow(R, rtol=1e-4)):
        run = wf.evolve(method, net, [0.0, 1.0], key=jr.key(1))
        assert run.status == "ok" and run["risk"][-1] < run["risk"][0]
    run.save(tmp_path / "run")
    again = wf.load(tmp_path / "run").final
    assert again.family == net.family
    np.testing.assert_array_equal(again(X), run.final(X))


def test_exponents_are_those_of_a_plain_network():
    """One step at several widths: the block neither vanishes nor grows (error bars 0.02)."""
    report = wf.width_check(FAMILIES["two blocks"], (16, 32, 64), parametrisation="mup", seeds=256)
    assert report.verdict == "feature-learning"
    for name in ("Δh1", "Δh2", "Δh3", "Δf"):
        curve = report.curves[name]
        assert abs(curve.slope.value - curve.predicted) < 0.05 + 4 * curve.slope.error  # 1/n at n = 16


def test_refused():
    with pytest.raises(ValueError, match="keep the shape"):
        wf.Family((4,), (Residual((Dense(),)), Dense(1)))  # at n = 4 alone it would
    with pytest.raises(ValueError, match="must be one or more layers"):
        Residual((Dense(), "relu"))
    with pytest.raises(ValueError, match="multiplier"):
        Residual((Dense(),), np.nan)
    for branch in ((Dense(), RELU), (Residual((RELU, Dense())),)):
        family = wf.Family((4,), (Dense(), Residual(branch), Dense(1)))
        with pytest.raises(ValueError, match="must end with weights"):
            wf.infinite_kernels(family, X)
    # a rule that makes the branch vanish is no parametrisation of the limit
    falls = wf.Parametrisation((0, 1, 1, 0.5), (0, 0, 0, 0), (0, 0, 0, 0))
    homogeneous = wf.Family((4,), (Dense(), *(Residual((RELU, Dense())),) * 2, Dense(1)))
    with pytest.raises(ValueError, match="vanishes as n grows"):
        wf.infinite_kernels(homogeneous, X, parametrisation=falls)
