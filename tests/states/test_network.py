"""Networks of any depth: as particles for two layers, as NumPy for convolutions; symmetry; records."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.states.layers import Conv
from wideflow.states.network import Weights

KEY = jax.random.key(3)
TS = np.array([0.0, 0.1, 0.5])


def problem(d=4, m=12, outputs=1, loss="squared", neuron="tanh", bias=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, d))
    y = np.sin(X @ rng.normal(size=(d, outputs)))
    y = y[:, 0] if outputs == 1 else y
    if loss == "cross_entropy":
        y = rng.integers(0, outputs, m)
    return wf.Problem(x=wf.Dataset(X, y), neuron=wf.Neuron(neuron, outputs=outputs, bias=bias), loss=loss)


def as_network(particles, family, parametrisation):
    """The two-layer network that particles are."""
    a, w, b = particles.parts
    hidden = Weights(w, b)
    last = Weights(a[:, None] if a.ndim == 1 else a.T, None if b is None else jnp.zeros(1))
    return wf.types.Network((hidden, last), family, particles.n, parametrisation)


@pytest.mark.parametrize("exponent", [1.0, 0.5, 0.75])
@pytest.mark.parametrize("outputs", [1, 3])
def test_two_layers_are_particles(exponent, outputs):
    """f and every step of descent, SGD and noise-free Langevin agree with those of wf.Particles of the
    scale α = n^{1−exponent}, to the rounding of sums of 50 terms over 50 steps."""
    P, n = problem(outputs=outputs), 50
    R, rho = wf.Risk(P), wf.init(P).sample(KEY, n, alpha=n ** (1 - exponent))
    scaled = wf.Parametrisation.scaled(exponent)
    net = as_network(rho, wf.MLP(4, 1, "tanh", outputs=outputs), scaled)
    x = jax.random.normal(KEY, (7, 4))
    np.testing.assert_allclose(net(x), rho(x), rtol=1e-12)
    methods = [
        wf.GradientDescent(R, step=0.01),
        wf.SGD(R, step=0.01, batch=3),
        wf.Langevin(R, step=0.01, beta=np.inf, decay=0.3),
    ]
    for method in methods:
        one, other = (wf.evolve(method, s, TS, key=KEY) for s in (rho, net))
        np.testing.assert_allclose(other["risk"], one["risk"], rtol=1e-11)
        np.testing.assert_allclose(other.final(x), one.final(x), rtol=1e-10)


def test_the_bias_of_a_hidden_layer_is_that_of_a_neuron():
    P = problem(bias=True)
    rho = wf.init(P, b=0.5).sample(KEY, 20)
    net = as_network(rho, wf.MLP(4, 1, "tanh", bias=0.5), wf.Parametrisation.mean_field())
    _, b = wf.Risk(P).velocity(net)[0]
    # the output bias, which particles do not have, is 0 here and does not enter the others' velocity
    np.testing.assert_allclose(b, wf.Risk(P).velocity(rho)[:, -1], rtol=1e-12)


def naive_conv(x, w, stride, padding):
    """The sum over a window, by hand."""
    m, H, W, _ = x.shape
    k = w.shape[0]
    if padding == "SAME":
        out = -(-H // stride), -(-W // stride)
        total = [max((o - 1) * stride + k - side, 0) for o, side in zip(out, (H, W), strict=True)]
        pads = [(t // 2, t - t // 2) for t in total]
        x = np.pad(x, [(0, 0), *pads, (0, 0)])
    else:
        out = (H - k) // stride + 1, (W - k) // stride + 1
    h = np.zeros((m, *out, w.shape[-1]))
    for i in range(out[0]):
        for j in range(out[1]):
            patch = x[:, i * stride : i * stride + k, j * stride : j * stride + k]
            h[:, i, j] = np.einsum("mpqc,pqco->mo", patch, w)
    return h


@pytest.mark.parametrize(("stride", "padding"), [(1, "SAME"), (2, "SAME"), (1, "VALID")])
def test_convolution(stride, padding):
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(3, 6, 5, 2)), rng.normal(size=(3, 3, 2, 4))
    layer = Conv(3, None, stride, padding)
    h = layer.apply(jnp.asarray(w), jnp.asarray(x))
    np.testing.assert_allclose(h, naive_conv(x, w, stride, padding), atol=1e-13)
    by_patches = layer.patches(jnp.asarray(x)) @ w.reshape(-1, 4)
    np.testing.assert_allclose(by_patches.reshape(h.shape), h, atol=1e-13)


def test_a_cnn_by_hand():
    """conv, φ, average pool, conv, φ, global average, dense: NTK multipliers 1/√(window² · fan-in)."""
    family = wf.CNN((4, 4, 2), 2, "tanh", pool=(2, 1), head="average", outputs=3)
    net, x = family.sample(KEY, 5), np.random.default_rng(2).normal(size=(3, 32))
    w1, w2, w3 = (np.asarray(part.w) for part in net.parts)
    images = np.tanh(naive_conv(x.reshape(3, 4, 4, 2), w1, 1, "SAME"))
    pooled = images.reshape(3, 2, 2, 2, 2, 5).mean((2, 4))
    last = np.tanh(naive_conv(pooled, w2, 1, "SAME") / np.sqrt(9 * 5)).mean((1, 2))
    np.testing.assert_allclose(net(x), last @ w3 / np.sqrt(5), rtol=1e-12)
    np.testing.assert_allclose(net(x.reshape(3, 4, 4, 2)), net(x))
    # w ~ N(0, 1/(window² channels)) in the first layer: its spread over 90 draws, in standard errors
    assert abs(w1.std() * np.sqrt(18) - 1) < 4 / np.sqrt(2 * w1.size)


SHIFTED = [("ntk", "sgd"), ("mup", "sgd"), ("standard", "sgd"), ("mup", "adam")]


@pytest.mark.parametrize(("name", "optimiser"), SHIFTED)
def test_symmetry_of_the_parametrisation(name, optimiser):
    """(a_l + s_l, b_l − s_l, c_l − 2s_l) leaves the trained function as it is, and (…, c_l − s_l) for Adam:
    100 random shifts for each, a number for every layer of a network of depth 3, with decay and noise."""
    P, family, n = problem(outputs=1), wf.MLP(4, 3, "tanh", bias=0.3), 8
    R, rng, ts = wf.Risk(P) + 0.1 * wf.SecondMoment(), np.random.default_rng(0), np.array([0.0, 0.2])
    base, start = getattr(wf.Parametrisation, name)(3, optimiser=optimiser), {"optimiser": optimiser}
    x = jax.random.normal(KEY, (6, 4))
    if optimiser == "adam":  # an eps would not scale with the gradient
        methods = [wf.Adam(wf.Risk(P), step=0.01, eps=1e-30, decay=0.3)]
    else:
        methods = [wf.SGD(R, step=0.01, batch=4), wf.Langevin(R, step=0.01, beta=20.0)]
    for method in methods:
        truth = wf.evolve(method, family.sample(KEY, n, base, **start), ts, key=KEY).final
        moved = np.abs(truth(x) - family.sample(KEY, n, base, **start)(x)).max()
        assert moved > 1e-3  # there is something to compare
        for _ in range(100 if optimiser == "adam" else 34):
            shifted = base.shift(rng.uniform(-1, 1, 4), optimiser=optimiser)
            assert shifted.equivalent(base, optimiser=optimiser)
            final = wf.evolve(method, family.sample(KEY, n, shifted, **start), ts, key=KEY).final
            # rounding of 20 steps: Adam divides by small gradients, which amplifies it
            np.testing.assert_allclose(
                final(x), truth(x), rtol=0, atol=1e-9 if optimiser == "adam" else 1e-12
            )


def test_centred_model():
    """F = α(f − f₀) starts at 0, and its velocity at the start is that of f with residual y, over α."""
    P, family = problem(), wf.MLP(4, 2, "erf")
    net, x = family.sample(KEY, 10, alpha=7.0, centred=True), P.x.x
    np.testing.assert_allclose(net(x), np.zeros(12), atol=1e-14)  # two sums that cancel, times 7
    plain = family.sample(KEY, 10)
    want = jax.grad(lambda parts: 7.0 * jnp.mean(-P.x.y * plain.with_parts(parts)(x)))(plain.parts)
    got = wf.Risk(P).velocity(net)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(g, -w / 7.0**2, rtol=1e-10)


def test_the_linearisation_is_the_tangent():
    """Its gap is of second order in the distance from θ₀, and it stays a line."""
    net, x = wf.MLP(3, 2, "tanh").sample(KEY, 12), jax.random.normal(KEY, (5, 3))
    step = jax.tree.map(jnp.ones_like, net.parts)
    line = lambda s: wf.kernels.Linearisation(net, net.moved(step, s).parts)(x)
    gap = [np.abs(line(s) - net.moved(step, s)(x)).max() for s in (1e-2, 5e-3)]
    assert 1.9 < np.log2(gap[0] / gap[1]) < 2.1  # second order; the third order term is 1 % of it
    np.testing.assert_allclose(line(0.3) - line(0.2), line(0.2) - line(0.1), rtol=1e-8)


def test_rows_in_chunks_give_the_same(monkeypatch):
    P, net = problem(), wf.MLP(4, 2, "relu").sample(KEY, 16)
    R = wf.Risk(P)
    whole, f = R.velocity(net), net(P.x.x)
    import wideflow.states.network as module

    monkeypatch.setattr(module.Network, "rows", lambda self, m: 5)
    jax.clear_caches()
    for a, b in zip(jax.tree.leaves(R.velocity(net)), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(net(P.x.x), f, rtol=1e-12)


def test_a_network_run_is_kept_and_resumed(tmp_path):
    P, family = problem(outputs=3, loss="cross_entropy"), wf.CNN((2, 2, 1), 1, "gelu", outputs=3, bias=0.1)
    method = wf.Adam(wf.Risk(P), step=0.01, batch=4)
    net = family.sample(KEY, 6, "standard", centred=True, alpha=2.0)
    run = wf.evolve(method, net, TS, key=KEY)
    run.save(tmp_path / "a")
    back = wf.load(tmp_path / "a")
    assert back.final.family == family and back.final.parametrisation == net.parametrisation
    np.testing.assert_array_equal(back.final(P.x.x), run.final(P.x.x))
    wf.evolve(method, net, TS[:2], key=KEY)
    kept = wf.evolve(method, net, TS, key=KEY, checkpoint=tmp_path / "b")
    again = wf.evolve(method, net, TS, key=KEY, checkpoint=tmp_path / "b")
    np.testing.assert_array_equal(kept["risk"], again["risk"])
    lazy = wf.evolve(wf.Linearised(method), net, TS, key=KEY)
    lazy.save(tmp_path / "c")
    np.testing.assert_array_equal(wf.load(tmp_path / "c").final(P.x.x), lazy.final(P.x.x))


def test_rates_for_another_optimiser_are_told():
    P, family = problem(), wf.MLP(4, 2, "tanh")
    with pytest.warns(UserWarning, match='optimiser="adam"'):
        wf.evolve(wf.Adam(wf.Risk(P), step=0.01), family.sample(KEY, 4, "mup"), [0.0, 0.02])
    with pytest.warns(UserWarning, match='optimiser="sgd"'):
        start = family.sample(KEY, 4, "mup", optimiser="adam", dtype=jnp.float32)
        wf.evolve(wf.SGD(wf.Risk(P), step=0.01), start, [0.0, 0.02])
    wf.evolve(wf.Adam(wf.Risk(P), step=0.01), family.sample(KEY, 4, "mup", optimiser="adam"), [0.0, 0.02])


def test_the_parametrisation_of_a_network_answers_too():
    for dtype in (jnp.float32, jnp.float64):
        rule = wf.MLP(4, 2, "tanh").sample(KEY, 4, "mup", dtype=dtype).parametrisation
        assert rule.regime().verdict == "feature-learning" and rule.exponents().r == 0.0
        assert rule.equivalent(wf.Parametrisation.mup(2))


def test_the_energy_of_decay_has_its_velocity():
    net = wf.MLP(4, 2, "tanh", bias=0.3).sample(KEY, 5, "standard")
    force = jax.grad(lambda parts: wf.SecondMoment().value(net.with_parts(parts)))(net.parts)
    want = jax.tree.map(lambda g, rate: -g * rate, force, net.rates())
    for a, b in zip(jax.tree.leaves(wf.SecondMoment().velocity(net)), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


BAD = [
    (lambda: wf.MLP(3, bias=True), "standard deviation"),
    (lambda: wf.CNN(8), "height, width, channels"),
    (lambda: wf.tangent_kernel(wf.MLP(3), np.ones((2, 3))), "sample"),
    (lambda: wf.diagnostics.coupled(problem(), wf.MLP(4).sample(KEY, 4), TS), "coupled needs a risk"),
    (lambda: wf.MLP(3).sample(KEY, 4)(np.zeros(3)), "x\\[None\\]"),
    (lambda: wf.MLP(0), "MLP\\(d\\)"),
    (lambda: wf.MLP(3, 0), "MLP\\(depth\\)"),
    (lambda: wf.MLP(3, 1, "rleu"), "Did you mean 'relu'"),
    (lambda: wf.CNN((4, 4), 1), "image"),
    (lambda: wf.CNN((4, 5, 1), 1, pool=2), "sides 2 divides"),
    (lambda: wf.CNN((4, 4, 1), 2, pool=(2,)), "one for each convolution"),
    (lambda: wf.CNN((4, 4, 1), 1, head="mean"), '"flatten" or "average"'),
    (lambda: wf.CNN((2, 2, 1), 1, padding="VALID"), "does not fit"),
    (lambda: wf.MLP(3, 2).sample(KEY, 4, "mupp"), "mup"),
    (lambda: wf.MLP(3, 2).sample(KEY, 4, wf.Parametrisation.ntk(1)), "depth|hidden"),
    (lambda: wf.MLP(3).sample(KEY, 4)(np.zeros((2, 5))), "rows of shape"),
    (lambda: wf.MLP(3).sample(KEY, 4, alpha=-1.0), "alpha"),
    (lambda: wf.Risk(problem()).value(wf.MLP(4, outputs=2).sample(KEY, 4)), "1 output"),
    (lambda: wf.PathNorm().value(wf.MLP(4).sample(KEY, 4)), "SecondMoment"),
    (lambda: wf.Linearised(3), "Linearised takes"),
]


@pytest.mark.parametrize("case", range(len(BAD)))
def test_bad_input(case):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make()
