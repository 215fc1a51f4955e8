"""What every distance must do: one test for all methods."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wideflow as wf
from wideflow.distances.discrepancy import mmd
from wideflow.distances.distance import Distance
from wideflow.distances.wasserstein import w2

KEY = jax.random.key(0)
W2 = {
    "quantiles": {},
    "simplex": {},
    "sinkhorn": {"epsilon": 0.05},
    "sliced": {"key": KEY, "directions": 20},
    "gaussian": {},
}
DISTANCES = {
    **{m: (lambda a, b, m=m, **k: w2(a, b, m, **W2[m], **k)) for m in W2},
    **{
        f"mmd {k}": (lambda a, b, k=k, **o: mmd(a, b, 1.3, kernel=k, **o))
        for k in ("gaussian", "laplace", "energy")
    },
}


def measures(name):
    rng = np.random.default_rng(1)
    D = 1 if name == "quantiles" else 3
    x, y = rng.normal(size=(12, D)), 0.7 + 1.5 * rng.normal(size=(12, D))
    return x, y, (rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12)))


@pytest.mark.parametrize("name", DISTANCES)
def test_contract(name):
    distance = DISTANCES[name]
    x, y, weights = measures(name)
    found = distance(x, y, weights=weights)
    assert isinstance(found, Distance) and float(found) == found.value > 0
    assert 0 <= found.error < 0.2 * found.value and found.method
    # two answers to the same question may differ by their errors, and rounding
    agree = lambda other: abs(float(other) - found.value) <= found.error + other.error + 1e-12

    assert agree(distance(y, x, weights=weights[::-1]))
    shift = np.arange(1.0, 1 + x.shape[1])
    assert agree(distance(x + shift, y + shift, weights=weights))
    order = np.random.default_rng(2).permutation(12)
    assert agree(distance(x[order], y, weights=(weights[0][order], weights[1])))
    # an atom cut in two, and one of no mass, are no other measure
    p = np.concatenate([weights[0], [0.3 * weights[0][0], 0.0]])
    p[0] *= 0.7
    more = np.concatenate([x, x[:1], 100 + x[:1]])
    assert agree(distance(more, y, weights=(p, weights[1])))
    neuron = wf.CustomNeuron(lambda x, t: t @ x, x.shape[1])
    particles = [wf.Particles(v, w, neuron=neuron) for v, w in zip((x, y), weights, strict=True)]
    assert agree(distance(*particles))
    same = distance(x, x[order], weights=(weights[0], weights[0][order]))
    assert same.value <= same.error + 1e-12


@pytest.mark.parametrize("name", W2)
def test_translation_and_scale_of_w2(name):
    """A translate is |shift| away (sliced: |shift|/√D), and lengths scale."""
    distance = DISTANCES[name]
    x, y, _ = measures(name)
    shift = np.array([3.0, 0.0, 4.0])[: x.shape[1]]
    expected = np.linalg.norm(shift) / (np.sqrt(x.shape[1]) if name == "sliced" else 1)
    moved = distance(x, x + shift)
    assert abs(moved.value - expected) <= moved.error + 1e-12
    if name != "sinkhorn":
        assert moved.value == pytest.approx(expected, rel=1e-12)
    found, wide = distance(x, y), distance(5 * x, 5 * y)
    assert abs(wide.value - 5 * found.value) <= wide.error + 5 * found.error + 1e-12


def points(n):
    rows = st.tuples(st.floats(-5, 5), st.floats(-5, 5)).map(lambda v: [round(c, 3) for c in v])
    return st.lists(rows, min_size=n, max_size=n).map(np.array)


@pytest.mark.parametrize("name", ["simplex", "mmd energy", "gaussian", "sliced"])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(points(4), points(4), points(4))
def test_triangle_inequality(name, x, y, z):
    """Sliced with the same directions in all three: a root of a sum of squares of distances is one too."""
    distance = DISTANCES[name]
    xz, xy, yz = distance(x, z), distance(x, y), distance(y, z)
    rounding = 1e-7 if name == "gaussian" else xz.error + xy.error + yz.error if name != "sliced" else 0.0
    assert xz.value <= xy.value + yz.value + rounding + 1e-12
