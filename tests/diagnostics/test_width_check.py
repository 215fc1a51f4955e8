"""Width checks: measured exponents against the predicted ones, verdicts, models of any kind, errors."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.diagnostics.widths.family_trial import FamilyTrial
from wideflow.diagnostics.widths.figure import draw
from wideflow.diagnostics.widths.fit import curves, verdict_of_widths
from wideflow.diagnostics.widths.function_trial import FunctionTrial
from wideflow.diagnostics.widths.report import width_check
from wideflow.diagnostics.widths.setting import setting

TWO, DEEP = (128, 256, 512, 1024), (128, 256, 512)
# The bound on exponents asked for, and the bar that the library adds seeds for. Corrections of relative size
# c/n tilt a slope from n = 128 by up to c/(128 log 4), c being a few.
WITHIN, BAR = 0.05, 0.02


def data(dtype=np.float32):
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(dtype)
    return {"x": x, "y": np.tanh(x[:, 0])}


@pytest.mark.parametrize(
    ("name", "word"),
    [("ntk", "lazy"), ("naive", "unstable"), ("compromise", "trivial"), ("mean_field", "feature-learning")],
)
def test_the_lectures_table(name, word):
    report = width_check(wf.MLP(4, 1, "tanh"), TWO, parametrisation=name, **data())
    assert report.verdict == word == report.expected, str(report)
    assert report.gap() < WITHIN, str(report)
    for c in report.curves.values():
        assert c.predicted is None or c.slope.error < BAR
    assert report.centred and "centred model" in str(report)
    # Sizes alone are blind: the same, whatever the regime.
    assert abs(report.curves["h1(t)"].slope.value) < 0.01
    assert ("f itself does not move" in str(report)) == (name == "compromise")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "word"), [("ntk", "lazy"), ("standard", "lazy"), ("mup", "feature-learning")]
)
def test_three_hidden_layers(name, word):
    report = width_check(wf.MLP(4, 3, "tanh"), DEEP, parametrisation=name, **data())
    assert report.verdict == word == report.expected, str(report)
    assert report.gap() < WITHIN, str(report)
    assert all(c.slope.error < BAR for c in report.curves.values() if c.predicted is not None)
    sizes = [report.curves[f"h{i}(t)"].slope.value for i in (1, 2, 3)]
    assert np.abs(sizes).max() < 0.02


@pytest.mark.slow
def test_a_growing_start_is_part_of_the_residual():
    p = wf.Parametrisation.two_layer(0.25, 0, 0)  # f(0) ~ n^¼, so that Δh ~ n^0 and Δf ~ n^¾
    report = width_check(wf.MLP(4, 1, "relu"), (32, 64, 128), parametrisation=p, seeds=1024)
    assert not report.centred and report.verdict == "unstable"
    # y is 1/30 of f(0) here, so that the residual is f(0); the rest is scatter, five bars of it.
    for c in (report.curves["Δh1"], report.curves["Δf"], report.curves["f(0)"]):
        assert abs(c.slope.value - c.predicted) < 5 * c.slope.error + 0.01


@pytest.mark.slow
def test_the_second_step_decides_where_the_last_layer_starts_small():
    p = wf.Parametrisation.two_layer(1, 0.5, -1)
    once = width_check(wf.MLP(4, 1, "tanh"), TWO[:3], parametrisation=p, seeds=32, **data())
    assert once.verdict == "lazy" and once.expected == "feature-learning" and "steps=2 decides" in str(once)
    twice = width_check(wf.MLP(4, 1, "tanh"), TWO[:3], 2, parametrisation=p, seeds=32, **data())
    assert twice.verdict == "feature-learning", str(twice)


@pytest.mark.slow
def test_adam():
    family = wf.MLP(4, 1, "tanh", bias=0.1)
    report = width_check(family, DEEP, parametrisation="ntk", optimiser="adam", seeds=32, **data())
    assert report.verdict == "lazy" == report.expected and report.gap() < WITHIN, str(report)


def test_the_start_is_that_of_the_family():
    """Weights and f(0) have the second moments of `Family.sample`, within four standard errors."""
    family, n, seeds = wf.MLP(3, 1, "relu", bias=0.5), 8, 1024
    x = np.random.default_rng(1).normal(size=(5, 3))
    trial = FamilyTrial(family, wf.Parametrisation.mup(1), x, x[:, 0], wf.losses.Squared(), 1, "sgd", True)
    mine = trial.squares(jax.random.key(0), seeds, n, 0.1)
    drawn = jax.vmap(lambda k: family.sample(k, n, "mup").trace(x))(
        jax.random.split(jax.random.key(1), seeds)
    )
    for name, values in (("h1(0)", drawn.features[0]), ("f(0)", drawn.f)):
        theirs = np.mean(np.asarray(values) ** 2, axis=tuple(range(1, values.ndim)))
        error = np.hypot(mine[name].std(), theirs.std()) / np.sqrt(seeds)
        assert abs(mine[name].mean() - theirs.mean()) < 4 * error


# --- models of others ----------------------------------------------------------------------------


def make(key, n):
    of_w, of_a = jax.random.split(key)
    params = {"w": jax.random.normal(of_w, (4, n)) / 2, "a": jax.random.normal(of_a, (n,))}
    return lambda p, x: jnp.tanh(x @ p["w"]) @ p["a"] / n, params


def hidden(params, x):
    return [x @ params["w"]]


@pytest.mark.slow
def test_functions_of_ones_own():
    import optax

    # f = 1/n Σ_j is mean field at the rate n, and the compromise at the rate √n.
    options = {"x": data(float)["x"], "y": data(float)["y"], "features": hidden, "seeds": 64}
    widths = (64, 128, 256)
    mean = width_check(make, widths, optimiser=lambda n: optax.sgd(0.1 * n), **options)
    assert mean.verdict == "feature-learning" and mean.expected is None, str(mean)

    def train(f, params, x, y, n):
        assert isinstance(float(params["a"][0]), float)  # cannot be traced
        risk = lambda p: 0.5 * jnp.mean((f(p, x) - y) ** 2)
        return jax.tree.map(lambda p, g: p - 0.1 * n**0.5 * g, params, jax.grad(risk)(params))

    lazy = width_check(make, widths, train=train, **(options | {"seeds": 4}))
    assert lazy.verdict == "trivial" and "f itself does not move" in str(lazy), str(lazy)
    # The two ways of one model: Δh of plain steps is proportional to the rate.
    slope = mean.curves["Δh1"].slope.value - lazy.curves["Δh1"].slope.value
    assert slope == pytest.approx(0.5, abs=0.1)  # four networks of 64 units or more: √(3/256)/log 4 = 0.08


def column(key, n):
    """The model of `make` with f of shape (m, 1)."""
    f, params = make(key, n)
    return lambda p, x: f(p, x)[:, None], params


def once(model, y, loss):
    """Mean squares of two networks of width 8 after one step."""
    return FunctionTrial(model, data(float)["x"], y, loss, 1).squares(jax.random.key(0), 2, 8, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [wf.losses.Squared(), wf.losses.Logistic()])
def test_labels_take_the_shape_of_f(loss):
    y = np.sign(data(float)["y"])
    plain = once(make, y, loss)
    for model, labels in ((column, y), (make, y[:, None])):
        other = once(model, labels, loss)
        for name in ("Δf", "f(t)"):  # one model, one key: the same up to the order of sums
            np.testing.assert_allclose(other[name], plain[name], rtol=1e-12)


def test_labels_that_fit_no_output():
    y = data(float)["y"]

    def two(key, n):
        f, params = make(key, n)
        return lambda p, x: jnp.stack([f(p, x), -f(p, x)], 1), params

    cross, classes = wf.losses.SoftmaxCrossEntropy(), (y > 0).astype(int)
    with pytest.raises(
        ValueError, match=r"y of the shape of f, \(16, 2\), got y of shape \(16,\).*cross_ent"
    ):
        once(two, classes, wf.losses.Squared())
    with pytest.raises(ValueError, match=r"one class number 0…1"):
        once(two, np.arange(16), cross)
    with pytest.raises(ValueError, match=r"row for each of the 16 samples, got shape \(2, 16\)"):
        once(lambda key, n: (lambda p, x: two(key, n)[0](p, x).T, make(key, n)[1]), y, wf.losses.Squared())
    np.testing.assert_array_equal(once(two, classes, cross)["Δf"], once(two, classes[:, None], cross)["Δf"])


def test_without_features_the_kernel_must_decide():
    squares = {n: {k: np.full(4, 1.0) for k in ("f(0)", "f(t)", "Δf", "gap", "K")} for n in (10, 20, 40)}
    for power, word in ((0.0, "feature-learning"), (-1.0, "lazy"), (-0.5, "not decided")):
        for n in squares:
            squares[n]["ΔK"] = np.full(4, float(n) ** (2 * power))
        verdict = verdict_of_widths(curves((10, 20, 40), squares, None, 1), False)
        assert verdict.word == word, verdict
        assert ("give features" in " ".join(verdict.reasons)) == (word == "not decided")
    squares[40]["Δf"][0] = np.inf
    assert verdict_of_widths(curves((10, 20, 40), squares, None, 1), False).word == "unstable"


def test_the_figure_has_panels_for_what_is_known():
    squares = {n: {k: np.full(4, 1.0 / n) for k in ("f(0)", "f(t)", "Δf", "gap", "K")} for n in (10, 20, 40)}
    for n in squares:
        squares[n]["ΔK"] = np.full(4, 1.0 / n**2)
    bare = draw((10, 20, 40), curves((10, 20, 40), squares, None, 1), "lazy")
    assert len(bare.axes) == 2  # no hidden layers, no sizes of them
    ticks = [v for v in bare.axes[0].get_yticks() if 40**-0.5 <= v <= 10**-0.5]
    np.testing.assert_allclose(ticks, [0.2, 0.25, 0.3])  # from 0.158 to 0.316 only 0.2 is of 1, 2, 5
    for n in squares:
        squares[n] |= {f"{k}{i}{t}": np.ones(4) for i in range(1, 9) for k, t in (("Δh", ""), ("h", "(t)"))}
    deep = draw((10, 20, 40), curves((10, 20, 40), squares, None, 1), "lazy")
    looks = {(bars[0].get_color(), bars[0].get_marker()) for bars in deep.axes[0].containers}
    assert len(looks) == 9  # eight layers and f
    deep.canvas.draw()
    for one in deep.axes:
        assert one.get_legend().get_window_extent().y0 >= one.get_window_extent().y1


# --- reports and errors --------------------------------------------------------------------------


def test_report(tmp_path):
    seen = []
    report = width_check(wf.MLP(4, 1, "tanh"), (8, 16, 32), seeds=4, step=0.1, progress=seen.append, **data())
    assert len(seen) == 3 and report.seeds == (4, 4, 4) and report.step == 0.1
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["widths"] == [8, 16, 32] and plain["curves"]["Δh1"]["predicted"] == -0.5
    assert plain["curves"]["Δf"]["values"] == report.curves["Δf"].values.tolist()
    first = "Parametrisation ntk, optimiser sgd, squared loss, data: 16 rows of dimension 4 (given)."
    assert str(report).splitlines()[0] == first
    assert plain["parametrisation"] == "ntk" and plain["dimension"] == [4] and not plain["default"]
    figure = report.plot(tmp_path / "widths.png")
    assert (tmp_path / "widths.png").stat().st_size > 1000 and len(figure.axes) == 3
    again = width_check(wf.MLP(4, 1, "tanh"), (8, 16, 32), seeds=4, step=0.1, **data())
    assert again.to_dict() == report.to_dict()  # the same key, the same numbers


def test_the_first_line_names_what_was_trained():
    scaled, x = wf.Parametrisation.two_layer(0.5, 0, 0.25), np.zeros((16, 3))
    own = str(setting(scaled, "adam", None, wf.losses.Squared(), x, True))
    assert own.startswith("Parametrisation a = (0, 0.5), b = (0, 0), c = (0.25, 0.25), optimiser adam, ")
    assert "16 rows of dimension 3 (default: Gaussian x" in own
    made = str(setting(None, "sgd", None, wf.losses.Logistic(), np.zeros((5, 2, 3)), False))
    assert made.startswith("Parametrisation of make(key, n), optimiser sgd, logistic loss, data: 5 rows of ")
    assert "dimension 2×3 (given)" in made
    assert setting(None, "sgd", make, wf.losses.Squared(), x, False).optimiser == "train(f, params, x, y, n)"
    assert setting(None, make, None, wf.losses.Squared(), x, False).optimiser == "optimiser(n)"


def test_bad_input():
    family = wf.MLP(4, 1, "tanh")
    for widths in ((8, 16), (16, 8, 32), (8, 8, 16)):
        with pytest.raises(ValueError, match="at least three widths that increase"):
            width_check(family, widths)
    with pytest.raises(ValueError, match=r"widths such as \(32, 64, 128\), got 64"):
        width_check(family, 64)
    with pytest.raises(ValueError, match=r"each of widths must be a whole number >= 2, got 16\.0"):
        width_check(family, (8, 16.0, 32))
    with pytest.raises(ValueError, match=r"pass net\.family"):
        width_check(family.sample(jax.random.key(0), 8), TWO)
    with pytest.raises(ValueError, match=r"Give x and y: make\(key, n\) does not say its input size"):
        width_check(make, TWO)
    with pytest.raises(ValueError, match="both x and y"):
        width_check(family, TWO, x=data()["x"])
    with pytest.raises(ValueError, match="equally many rows"):
        width_check(family, TWO, x=data()["x"], y=np.ones(3))
    with pytest.raises(ValueError, match="optimiser must be 'sgd' or 'adam'"):
        width_check(family, TWO, optimiser="adan")
    with pytest.raises(ValueError, match="loss must be one of"):
        width_check(family, TWO, loss="square")
    with pytest.raises(ValueError, match=r"go with make\(key, n\)"):
        width_check(family, TWO, features=hidden)
    with pytest.raises(ValueError, match="or a function make"):
        width_check(3, TWO)
    with pytest.raises(ValueError, match=r"must return \(f, params\)"):
        width_check(lambda key, n: n, TWO, seeds=2, **data())
    with pytest.raises(ValueError, match="has data of its own for one output"):
        width_check(wf.MLP(4, 1, "tanh", outputs=2), TWO)


def test_a_wide_error_bar_decides_nothing():
    few = width_check(wf.MLP(4, 1, "tanh"), (16, 20, 24), seeds=4, **data())
    assert few.verdict == "not decided", str(few)
