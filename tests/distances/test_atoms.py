"""What is read off measures: cells with their bound, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from exact_cases import slope
from wideflow.distances.atoms import atoms
from wideflow.distances.discrepancy import mmd
from wideflow.distances.wasserstein import w2

NEURON = wf.CustomNeuron(lambda x, t: t @ x, 2)
BOX = [-6.0, -6.0], [6.0, 6.0]


def normal(sd, cells):
    P = wf.Problem(x=wf.Gaussian(2), target=lambda x: x[0], neuron=NEURON)
    return wf.on_grid(wf.init(P, theta=wf.laws.Normal(0.0, sd)), *BOX, cells)


def test_a_uniform_cell_to_its_centre():
    """The bound is attained: all the mass of a cell must come to its centre. W2² = Σh²/12."""
    mass = np.zeros((2, 3))
    mass[1, 2] = 1.0
    rho = wf.GridDensity(mass, [0.0, 0.0], [2.0, 1.5], neuron=NEURON)
    found = w2(rho, [[1.5, 1.25]])
    exact = np.sqrt((1.0**2 + 0.5**2) / 12)
    assert found.value == 0.0 and found.error == pytest.approx(exact, rel=1e-12)
    assert found.method == "network simplex, cells as atoms"


@pytest.mark.parametrize("method", ["simplex", "sinkhorn"])
def test_density_and_point_within_the_bound(method):
    """To a point W2² is a second moment, with h²/12 of each axis, which atoms do not have."""
    rho = normal(0.7, (14, 20))
    found = w2(rho, [[1.0, 0.0]], method)
    exact = np.sqrt(float(np.sum((rho.mean() - jnp.array([1.0, 0.0])) ** 2) + jnp.trace(rho.covariance())))
    h = np.array([12 / 14, 12 / 20])
    assert abs(found.value - exact) <= found.error
    # the cells, 1 % of that for what is left out, and the width between Sinkhorn's bounds (here one coupling)
    assert found.error <= 1.011 * np.sqrt(np.sum(h**2) / 12) + 1e-6


def test_gaussians_on_planes_within_the_bound():
    """W2 = √2 |s − s'| for N(0, s²I) and N(0, s'²I), D = 2."""
    cells = [12, 18, 24]
    found = [w2(normal(1.0, n), normal(0.6, n)) for n in cells]
    assert all(abs(d.value - 0.4 * np.sqrt(2)) <= d.error for d in found)
    assert slope(cells, [d.error for d in found]) == pytest.approx(
        -1.0, abs=0.02
    )  # of first order but for 1 %


def test_light_cells_are_left_out_within_their_share():
    rho = normal(0.4, 40)  # cells of 0.3: most of the box is 1e-20 and less
    whole = atoms("rho", rho)
    kept = whole.pruned()
    assert kept.n < 0.3 * whole.n and kept.weights.sum() == pytest.approx(1.0, abs=1e-14)
    lost = kept.spread - whole.spread
    assert 0 < lost <= 0.0101 * whole.spread  # 1 %, and what the rest's moments differ by
    # the measure that is left is not farther from the whole than that: W2 in each coordinate is a lower bound
    for i in range(2):
        line = w2(
            whole.points[:, i : i + 1], kept.points[:, i : i + 1], weights=(whole.weights, kept.weights)
        )
        assert line.value - line.error <= lost
    assert atoms("x", np.zeros((4, 2))).pruned().n == 4  # particles never are


def test_weights_of_single_precision():
    """Their sum is 1 up to 1e-7; they are divided by it."""
    weights = np.full(10, 0.1, np.float32)
    found = atoms("x", np.zeros((10, 1), np.float32), weights)
    assert found.weights.dtype == np.float64 and abs(found.weights.sum() - 1) < 1e-15


GOOD = np.zeros((3, 2))
BAD = {
    "a vector": (np.zeros(3), {}, r"\(n, D\).*got shape \(3,\).*x\[:, None\]"),
    "empty": (np.zeros((0, 2)), {}, r"n >= 1 points, got shape \(0, 2\)"),
    "no columns": (np.zeros((3, 0)), {}, r"got shape \(3, 0\)"),
    "many measures": (np.zeros((4, 3, 2)), {}, r"one of many measures theta\[i\]"),
    "NaN": (np.array([[0.0, np.nan]]), {}, r"a must be finite, but 1 of 2 entries are not.*\(0, 1\)"),
    "words": (np.array([["a", "b"]]), {}, "a must hold real numbers"),
    "another space": (np.zeros((3, 5)), {}, r"a is in R\^5 and b in R\^2"),
    "weights of sum 2": (
        GOOD,
        {"weights": ([1.0, 1.0, 0.0], None)},
        r"weights of a .*the sum is 2,.*sum\(\)",
    ),
    "negative weights": (GOOD, {"weights": ([1.5, -0.5, 0.0], None)}, r"the least -0\.5"),
    "weights of NaN": (GOOD, {"weights": ([np.nan, 1.0, 0.0], None)}, "weights of a must be finite"),
    "too few weights": (GOOD, {"weights": ([0.5, 0.5], None)}, r"must have shape \(3,\), got \(2,\)"),
    "one set of weights": (GOOD, {"weights": np.full(3, 1 / 3)}, "weights must be a pair"),
    "weights twice": (
        wf.Particles(GOOD, neuron=NEURON),
        {"weights": ([1.0, 0.0, 0.0], None)},
        "a brings its own weights",
    ),
}


@pytest.mark.parametrize("distance", [w2, mmd])
@pytest.mark.parametrize("case", BAD)
def test_refused(case, distance):
    given, options, told = BAD[case]
    with pytest.raises(ValueError, match=told):
        distance(given, GOOD, **options)


def test_refused_methods():
    with pytest.raises(
        ValueError, match=r"one of quantiles, simplex, .* got 'sinkorn'\. Did you mean 'sinkhorn'"
    ):
        w2(GOOD, GOOD, "sinkorn")
    with pytest.raises(ValueError, match=r'"simplex"\) has no option \'epsilon\'; it has iterations'):
        w2(GOOD, GOOD, epsilon=0.1)
    with pytest.raises(ValueError, match=r"is for D = 1, got measures in R\^2"):
        w2(GOOD, GOOD, "quantiles")
    with pytest.raises(ValueError, match=r"takes hours.*sliced"):
        w2(np.broadcast_to(0.0, (10**6, 2)), np.broadcast_to(0.0, (10**4, 2)))
    with pytest.raises(ValueError, match=r"a is traced.*wf\.distances\.w2_line"):
        jax.jit(lambda x: w2(x, GOOD))(GOOD)


def test_chosen_by_size(monkeypatch):
    import wideflow.distances.wasserstein as module

    x, y = np.random.default_rng(0).normal(size=(2, 20, 2))
    assert w2(x[:, :1], y[:, :1]).method == "quantiles on the line"
    assert w2(x, y).method == "network simplex"
    monkeypatch.setattr(module, "_SIMPLEX", 399)
    assert w2(x, y).method.startswith("Sinkhorn")
