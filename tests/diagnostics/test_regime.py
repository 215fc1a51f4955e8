"""The regime report: movements by hand, verdicts of trained networks, models of any kind, errors."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.diagnostics.alignment import cka
from wideflow.diagnostics.regimes.report import regime

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 4))
Y = np.tanh(X[:, 0])
LINE = np.linspace(-1.0, 2.0, 7)[:, None]


def product(params, x):
    """f = a b x: its kernel is (b² + a²) x x', of which b² belongs to a."""
    return params["a"] * params["b"] * x[:, 0]


def pair(a, b):
    return {"a": jnp.asarray(a, float), "b": jnp.asarray(b, float)}


def hidden(params, x):
    return {"bx": params["b"] * x}


# --- by hand -------------------------------------------------------------------------------------


def test_a_linear_model_is_lazy():
    w0, wt = jnp.arange(1.0, 5.0), jnp.arange(1.0, 5.0) + jnp.array([0.3, 0, 0, -0.4])
    report = regime(lambda p, x: x @ p["w"], {"w": w0}, {"w": wt}, X, y=Y)
    assert report.verdict == "lazy"
    assert report.moved.weights["w"] == pytest.approx(0.5 / np.sqrt(30), rel=1e-12)
    assert report.moved.df == pytest.approx(np.sqrt(np.mean((X @ np.array([0.3, 0, 0, -0.4])) ** 2)))
    assert report.moved.gap < 1e-14 and report.moved.kernel.movement < 1e-14  # exact up to rounding
    # K = XXᵀ, so that the alignment with yyᵀ is yᵀXXᵀy/(‖XXᵀ‖|y|²)
    by_hand = np.sum((X.T @ Y) ** 2) / (np.linalg.norm(X @ X.T) * np.sum(Y**2))
    np.testing.assert_allclose(report.moved.kernel.with_target, by_hand, rtol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1.2, 0.7), (1.5, 1.5), (0.9, 1.0)])
def test_a_product_by_hand(a, b):
    moved = regime(product, pair(1.0, 1.0), pair(a, b), LINE, features=hidden, y=LINE[:, 0]).moved
    assert moved.kernel.movement == pytest.approx(abs(a**2 + b**2 - 2) / 2, rel=1e-12)
    assert moved.kernel.parts == pytest.approx({"a": abs(b**2 - 1), "b": abs(a**2 - 1)}, rel=1e-12)
    assert moved.kernel.shares == pytest.approx({"a": 0.5, "b": 0.5})
    linear = a + b - 1
    assert moved.gap == pytest.approx(abs(a * b - linear) / abs(a * b - 1), rel=1e-12, abs=1e-14)
    assert moved.weights == pytest.approx({"a": abs(a - 1), "b": abs(b - 1)}, rel=1e-12)
    size = np.sqrt(np.mean(LINE**2))
    assert moved.df == pytest.approx(abs(a * b - 1) * size, rel=1e-12)
    assert moved.features["bx"].dh == pytest.approx(abs(b - 1) * size, rel=1e-12, abs=1e-16)
    assert moved.features["bx"].relative == pytest.approx(abs(b - 1), rel=1e-12, abs=1e-16)
    assert moved.features["bx"].cka == pytest.approx(1, rel=1e-12)  # one direction, whatever its scale
    np.testing.assert_allclose(moved.kernel.with_target, 1, rtol=1e-12)  # K ∝ xxᵀ and y = x


@pytest.mark.parametrize(
    ("after", "word", "because"),
    [
        ((1.02, 1.02), "lazy", "kernel moved by 0.04 < 0.1"),  # 1.02² − 1
        ((1.6, 1.6), "feature-learning", "kernel moved by 1.6 > 0.3"),  # 1.6² − 1 = 1.56
        ((1.1, 1.1), "not decided", "kernel moved by 0.21"),  # between
        ((1.001, 1.001), "not decided", "still linear"),  # f moved by 0.2 % of itself
        ((1.0, 1.0), "not decided", "rounding error"),
        ((8.0, 8.0), "unstable", "grew to"),  # f = 64 x
        ((np.nan, 1.0), "unstable", "not finite after training: a, f"),
        ((np.inf, 1.0), "unstable", "not finite after training: a, f"),
    ],
)
def test_verdicts_name_the_numbers_that_decide(after, word, because):
    report = regime(product, pair(1.0, 1.0), pair(*after), LINE, y=LINE[:, 0], features=hidden)
    assert report.verdict == word
    assert because in str(report) and f"Verdict: {word}" in str(report)
    assert report.decision.advice in str(report)
    again = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert again["verdict"] == word and set(again["weights"]) == {"a", "b"}


def test_alignment_of_features():
    """CKA is 1 for rotated and scaled features, and that of independent Gaussian ones is small."""
    h = RNG.normal(size=(6, 5))
    Q = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    assert cka(h, 3 * h @ Q + 7) == pytest.approx(1, rel=1e-12)
    far = cka(RNG.normal(size=(400, 3)), RNG.normal(size=(400, 3)))
    assert far < 0.05  # n/m = 3/400 on average, and a few times that


# --- networks of the library ---------------------------------------------------------------------


def trained(parametrisation, n, end, step=0.1):
    P = wf.Problem(x=wf.Dataset(X, Y), neuron=wf.Neuron("tanh"))
    net = wf.MLP(4, 1, "tanh").sample(jax.random.key(1), n, parametrisation)
    run = wf.evolve(wf.GradientDescent(wf.Risk(P), step=step), net, [0.0, end])
    return run.states[0], run.final


def test_networks_in_both_regimes():
    lazy = regime(*trained("ntk", 2048, 2.0), X, y=Y)
    assert lazy.verdict == "lazy", str(lazy)
    features = regime(*trained("mean_field", 256, 20.0), X, y=Y)
    assert features.verdict == "feature-learning", str(features)
    assert features.moved.features["h1"].cka < lazy.moved.features["h1"].cka
    assert list(lazy.moved.weights) == ["layer 1", "layer 2"] == list(lazy.moved.kernel.parts)


def test_features_and_kernel_of_a_state_are_its_own():
    before, after = trained("mean_field", 32, 1.0)
    moved = regime(before, after, X).moved
    h0, ht = (np.asarray(s.features(X)[0]) for s in (before, after))
    assert moved.features["h1"].dh == pytest.approx(np.sqrt(np.mean((ht - h0) ** 2)), rel=1e-12)
    J0, Jt = (
        np.asarray(
            jax.jacobian(lambda w, s=s: s.with_parts((s.parts[0]._replace(w=w), s.parts[1]))(X))(s.parts[0].w)
        ).reshape(12, -1)
        for s in (before, after)
    )
    K0, Kt = J0 @ J0.T, Jt @ Jt.T
    by_hand = np.linalg.norm(Kt - K0) / np.linalg.norm(K0)
    assert moved.kernel.parts["layer 1"] == pytest.approx(by_hand, rel=1e-10)


@pytest.mark.slow
def test_particles_linearised_and_convolutions():
    P = wf.Problem(x=wf.Dataset(X, Y), neuron=wf.Neuron("tanh", bias=True))
    start = wf.init(P).sample(jax.random.key(0), 40, alpha=2.0)
    run = wf.evolve(wf.GradientDescent(wf.Risk(P), step=0.1), start, [0.0, 5.0])
    report = regime(run.states[0], run.final, X, y=Y)
    assert list(report.moved.weights) == ["a", "w", "b"] and list(report.moved.features) == ["h1"]
    line = wf.evolve(wf.Linearised(wf.GradientDescent(wf.Risk(P), step=0.1)), start, [0.0, 5.0])
    lazy = regime(line.states[0], line.final, X, y=Y)
    assert lazy.verdict == "lazy" and lazy.moved.gap < 1e-12 and lazy.moved.kernel.movement < 1e-12
    assert any("features" in note for note in lazy.moved.notes)
    cnn = wf.CNN((2, 2, 1), 1, "relu", window=2, outputs=3, bias=0.1).sample(jax.random.key(0), 5)
    moved = cnn.with_parts(jax.tree.map(lambda p: 1.1 * p, cnn.parts))
    both = regime(cnn, moved, X, y=np.arange(12) % 3).moved
    assert both.weights == pytest.approx({"layer 1": 0.1, "layer 2": 0.1}) and both.features["h1"].dh > 0


# --- models of others ----------------------------------------------------------------------------


def test_an_equinox_module():
    mlp = eqx.nn.MLP(4, 2, 8, 2, key=jax.random.key(0))
    params, static = eqx.partition(mlp, eqx.is_array)
    f = lambda p, x: jax.vmap(eqx.combine(p, static))(x)
    loss = lambda p: jnp.mean((f(p, jnp.asarray(X)) - jnp.asarray(X[:, :2])) ** 2)
    after = params
    for _ in range(60):
        after = jax.tree.map(lambda p, g: p - 0.3 * g, after, jax.grad(loss)(after))
    report = regime(f, params, after, X, y=X[:, :2])
    assert report.verdict == "feature-learning", str(report)
    assert list(report.moved.weights)[:2] == ["layers.0.weight", "layers.0.bias"]
    assert list(report.moved.features) == ["layers.0", "layers.1"]  # found, without being asked for
    assert "give features(params, x)" not in str(report)
    whole = regime(lambda m, x: jax.vmap(m)(x), mlp, eqx.combine(after, static), X)  # held leaves in params
    assert whole.moved.kernel.movement == pytest.approx(report.moved.kernel.movement, rel=1e-12)


def test_many_rows_are_thinned_and_said_so():
    x = RNG.normal(size=(700, 1))
    report = regime(product, pair(1.0, 1.0), pair(1.2, 1.2), x, rows=50, features=hidden)
    assert report.moved.kernel.rows == 50 and "50 of 700 rows" in str(report)
    # Of rank one, the kernel moves by the same factor on any rows; f and h are measured on all.
    assert report.moved.kernel.movement == pytest.approx(0.44, rel=1e-12)
    assert report.moved.df == pytest.approx(0.44 * np.sqrt(np.mean(x**2)), rel=1e-12)


def test_rates_weigh_the_kernel():
    moved = regime(product, pair(1.0, 1.0), pair(1.0, 2.0), LINE, rates={"a": 3.0, "b": 1.0}).moved
    assert moved.kernel.movement == pytest.approx(3 * (2**2 - 1) / (3 + 1), rel=1e-12)


def test_figure(tmp_path):
    report = regime(product, pair(1.0, 1.0), pair(1.2, 1.2), LINE, features=hidden)
    figure = report.plot(tmp_path / "regime.png")
    assert (tmp_path / "regime.png").stat().st_size > 1000
    heights = [bar.get_height() for bar in figure.axes[-1].patches]
    assert heights == pytest.approx([report.moved.kernel.movement, report.moved.gap])
    regime(product, pair(1.0, 1.0), pair(np.nan, 1.0), LINE).plot()  # nothing to show is no error


def test_figure_of_long_names_and_weights_that_start_at_zero():
    names = [f"encoder.layers.{i}.attention.projection.bias" for i in range(6)]
    f = lambda p, x: x[:, 0] * (1 + sum(p.values()))
    before, after = ({name: jnp.asarray(v) for name in names} for v in (0.0, 0.1))
    figure = regime(f, before, after, LINE).plot()
    figure.canvas.draw()
    axes = figure.axes[0]
    assert [t.get_text() for t in axes.texts] == ["∞"] * 6  # |ΔW|/|W₀| of weights that start at 0
    labels = axes.get_xticklabels()
    assert all(label.get_rotation() > 0 for label in labels) and len({t.get_text() for t in labels}) == 6
    for one in figure.axes:  # the legend lies above the panel, and hides no bar
        assert one.get_legend().get_window_extent().y0 >= one.get_window_extent().y1
        assert one.get_legend().get_window_extent().y1 <= figure.bbox.y1


# --- errors --------------------------------------------------------------------------------------


def test_bad_input():
    good = pair(1.0, 1.0)
    noisy = lambda p, x: product(p, x) + np.random.default_rng().normal()
    with pytest.raises(ValueError, match=r"same structure.*'c'"):
        regime(product, good, {**good, "c": jnp.ones(2)}, LINE)
    with pytest.raises(ValueError, match="same structure"):
        regime(product, good, pair(np.ones(2), 1.0), LINE)
    with pytest.raises(ValueError, match="two answers"):
        regime(noisy, good, good, LINE)
    with pytest.raises(ValueError, match="params_before must be finite"):
        regime(product, pair(np.nan, 1.0), good, LINE)
    with pytest.raises(ValueError, match="must be finite"):
        regime(product, good, good, np.array([[np.nan]]))
    law = wf.Gaussian(1)
    with pytest.raises(
        ValueError, match=r"x must be one array.*\(7, 1\), NoneType.*x, y = problem\.x\.sample"
    ):
        regime(product, good, good, law.sample(jax.random.key(0), 7))
    problem = wf.Problem(x=law, target=lambda x: x[0], neuron=wf.Neuron("erf"))
    start = wf.init(problem).sample(jax.random.key(0), 3)
    with pytest.raises(ValueError, match=r"got a Nodes\. Pass its \.x"):
        regime(start, start, problem.sample(jax.random.key(0), 7))
    with pytest.raises(ValueError, match="y must have the shape"):
        regime(product, good, good, LINE, y=np.ones(3))
    with pytest.raises(ValueError, match="row for each of the 7 samples"):
        regime(product, good, pair(1.2, 1.0), LINE, features=lambda p, x: [x.T])
    net, other = trained("ntk", 8, 0.1)
    with pytest.raises(ValueError, match="two states of one kind"):
        regime(net, 3.0, X)
    with pytest.raises(ValueError, match="weights alone"):
        regime(net, eqx.tree_at(lambda s: s.alpha, other, jnp.asarray(2.0)), X)
    with pytest.raises(ValueError, match="bring their own"):
        regime(net, other, X, features=hidden)


def test_arguments_in_another_order():
    """Each error shows the call that is meant."""
    p, q = pair(1.0, 1.0), pair(1.2, 1.0)
    with pytest.raises(ValueError, match="x is missing"):
        regime(product, p, q)
    with pytest.raises(ValueError, match="f must come first"):
        regime(p, q, product, LINE)
    with pytest.raises(ValueError, match=r"f must come first, and x is missing"):
        regime(p, q, product)
    m0, m = (eqx.nn.Linear(4, 1, key=jax.random.key(i)) for i in range(2))
    with pytest.raises(ValueError, match=r"regime\(lambda m, x: jax\.vmap\(m\)\(x\), m0, m, x\)"):
        regime(m0, m, X)
    with pytest.raises(ValueError, match="f must come first"):
        regime(m0, m, lambda m, x: jax.vmap(m)(x), X)
    net, other = trained("ntk", 8, 0.1)
    with pytest.raises(ValueError, match="y is passed by name"):
        regime(net, other, X, Y)
    with pytest.raises(ValueError, match=r"f\(params, x\) failed on x of shape \(12, 4\): .*3"):
        regime(lambda p, x: x @ p, jnp.ones(3), jnp.ones(3), X)
    with pytest.raises(ValueError, match="f must be a JAX function"):
        regime(3.0, p, q, LINE)


def test_advice_is_what_the_model_can_do():
    """A function has no Parametrisation, a network of the library has."""
    for after in ((1.02, 1.02), (1.6, 1.6), (8.0, 8.0)):
        report = regime(product, pair(1.0, 1.0), pair(*after), LINE, y=LINE[:, 0])
        assert "Parametrisation" not in str(report) and "largest_stable_step" not in str(report)
    assert "wf.Parametrisation" in regime(*trained("mean_field", 32, 20.0), X).decision.advice


def test_one_threshold_of_the_gap():
    report = regime(product, pair(1.0, 1.0), pair(1.1, 1.1), LINE, features=hidden)
    assert report.verdict == "not decided" and "of what f moved (threshold 0.1)" in str(report)
    assert "features (rms over rows and units)" in str(report)
