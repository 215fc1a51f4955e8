"""How many rows and outputs a regime report takes: sketches, their error, tiles, what is told."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.diagnostics.regimes.decision import judge
from wideflow.diagnostics.regimes.plan import Layer, planned, projected
from wideflow.diagnostics.regimes.report import regime
from wideflow.diagnostics.regimes.tiles import Kernels, in_tiles

RNG = np.random.default_rng(0)
X = RNG.normal(size=(14, 5))
OUTPUTS = 40


def wide(p, x):
    return jnp.tanh(x @ p["w"] + p["b"]) @ p["v"]


def weights(scale):
    keys = jax.random.split(jax.random.key(0), 3)
    w, v, u = (jax.random.normal(k, s) for k, s in zip(keys, ((5, 30), (30, OUTPUTS), (5, 30)), strict=True))
    return {"w": w / 5**0.5 + scale * u, "b": jnp.zeros(30) + scale, "v": v / 30**0.5}


def test_projections_are_the_mean_over_outputs_in_the_mean():
    for s in (1, 3, 7):
        v = np.concatenate(projected(7, s, seed=0))
        np.testing.assert_allclose(v @ v.T, np.eye(s) / s, atol=1e-14)  # rounding of a 7 × 7 product
    draws = [np.concatenate(projected(5, 2, seed)) for seed in range(4000)]
    mean = np.mean([v.T @ v for v in draws], 0)
    np.testing.assert_allclose(mean, np.eye(5) / 5, atol=0.02)  # entries of size 0.2 over √4000, 6 of them


def test_a_sketch_is_within_its_error():
    exact = regime(wide, weights(0.0), weights(0.4), X).moved.kernel
    assert exact.projections == OUTPUTS and exact.error == 0
    gaps = []
    for seed in range(12):
        report = regime(wide, weights(0.0), weights(0.4), X, projections=8, seed=seed)
        kernel = report.moved.kernel
        assert kernel.projections == 8 and 0 < kernel.error < 0.5 * exact.movement
        gaps.append((kernel.movement - exact.movement) / kernel.error)
    assert f"by 8 random projections of them (standard error of its movement {kernel.error:.1g}" in str(
        report
    )
    # Of 12 ratios with 7 degrees of freedom the rms is 1.2 ± 0.3; bias of the ratio of norms allows for more.
    assert 0.3 < np.sqrt(np.mean(np.square(gaps))) < 2.5


def test_a_sketch_decides_where_it_is_two_errors_away():
    moved = regime(wide, weights(0.0), weights(0.4), X).moved

    def word(movement, error, gap):
        kernel = dataclasses.replace(moved.kernel, movement=movement, error=error)
        verdict = judge(dataclasses.replace(moved, kernel=kernel, gap=gap))
        assert (f"± {error:.1g}" in verdict.reasons[0]) == (verdict.word == "not decided" and error > 0)
        return verdict.word

    assert word(0.5, 0.0, 0.5) == word(0.5, 0.09, 0.5) == "feature-learning"
    assert word(0.5, 0.11, 0.5) == "not decided"
    assert word(0.05, 0.0, 0.05) == word(0.05, 0.02, 0.05) == "lazy"
    assert word(0.05, 0.03, 0.05) == "not decided"


def test_tiles_put_together_are_the_whole():
    G = RNG.normal(size=(3, 11, 4))
    whole = Kernels({"a": G[0] @ G[0].T}, G @ G.transpose(0, 2, 1))
    part = lambda rows: Kernels({"a": whole.parts["a"][np.ix_(rows, rows)]}, whole.terms[:, rows][:, :, rows])
    for batch in (2, 5, 10, 11):
        found = in_tiles(part, 11, batch)
        np.testing.assert_array_equal(found.parts["a"], whole.parts["a"])
        np.testing.assert_array_equal(found.terms, whole.terms)


def test_rows_fall_with_the_size_of_the_model():
    small, large = [Layer(1, 784, 800)], [Layer(64, 2048, 2048)] * 48
    plan = lambda layers, **asked: planned(layers, 4, 1000, 10, asked.get("rows"), asked.get("projections"))
    assert plan(small).rows == 256 and plan(small).projections == 10 and plan(small).batch == 256
    assert plan(large).rows == 32 and 3 <= plan(large).projections < 10 and plan(large).is_sketch
    asked = plan(large, rows=100, projections=10)
    assert asked.rows == 100 and not asked.is_sketch and asked.gradients > plan(large, rows=100).gradients


def test_what_takes_long_is_told_beforehand(capsys, monkeypatch):
    run = lambda **options: regime(wide, weights(0.0), weights(0.4), X, **options)
    run()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("wideflow.diagnostics.regimes.work._TOLD", 0.0)
    run(progress=False)
    assert capsys.readouterr().err == ""
    run(progress=True)
    told = capsys.readouterr().err
    assert told.startswith("wf.regime: two kernels of 14 rows by all 40 outputs, about") and " MiB" in told
    assert "100%  pass 80 of 80" in told


@pytest.mark.parametrize("bad", [0, -1, 1.5])
def test_bad_numbers(bad):
    for name in ("rows", "projections"):
        with pytest.raises(ValueError, match=name):
            regime(wide, weights(0.0), weights(0.4), X, **{name: bad})


def test_what_hides_its_products_is_taken_by_jacobians(monkeypatch):
    whole = regime(wide, weights(0.0), weights(0.4), X, projections=8).moved.kernel
    monkeypatch.setattr("wideflow.diagnostics.regimes.model._GENERIC", 0)
    again = regime(wide, weights(0.0), weights(0.4), X, projections=8).moved.kernel
    assert again.parts == pytest.approx(whole.parts, rel=1e-10)  # float64
    assert again.error == pytest.approx(whole.error, rel=1e-8)  # of differences of a tenth
