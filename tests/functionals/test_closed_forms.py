"""Closed forms against Gauss quadrature in two dimensions and against samples in six."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import wideflow as wf
from wideflow.states.linearisation import linearised

RNG = np.random.default_rng(11)
FULL = np.array([[0.9, 0.3], [0.3, 0.4]])


def covariance(d, seed=0):
    root = np.random.default_rng(seed).normal(size=(d, d)) / np.sqrt(d)
    return root @ root.T + 0.1 * np.eye(d)


def particles(problem, n=6, alpha=1.3, scale=1.0):
    weights = RNG.dirichlet(np.ones(n))
    theta = scale * np.random.default_rng(2).normal(size=(n, problem.D)) / np.sqrt(problem.d)
    return wf.Particles(theta, weights, alpha, problem.neuron)


def two(a, b, labels, weights=None):
    return wf.Mixture([wf.Gaussian(len(a), a), wf.Gaussian(len(b), b)], labels, weights)


SMOOTH = {
    "erf, diagonal covariance": dict(
        x=wf.Gaussian(2, [0.4, 1.1]), target=wf.single_index("erf", [1.0, 1.0]), neuron=wf.Neuron("erf")
    ),
    "erf, full covariance, teacher": dict(
        x=wf.Gaussian(2, FULL),
        target=wf.teacher([[1.0, 0.3], [-0.5, 0.9]], a=[1.5, -0.7], link="erf"),
        neuron=wf.Neuron("erf", output="frozen"),
    ),
    "gelu": dict(
        x=wf.Gaussian(2, FULL),
        target=wf.teacher([[0.8, -0.2]], link="gelu"),
        neuron=wf.Neuron("gelu", output="unit"),
    ),
    "gelu, mixture of unlike covariances": dict(
        x=two(FULL, np.array([1.0, 0.2]), [0.7, -2.0], [0.3, 0.7]), neuron=wf.Neuron("gelu")
    ),
    "identity link, erf neuron": dict(
        x=wf.Gaussian(2, FULL), target=wf.single_index("identity"), neuron=wf.Neuron("erf")
    ),
    "square link, hermite neuron": dict(
        x=wf.Gaussian(2, FULL),
        target=wf.single_index("square", [1.0, -1.0]),
        neuron=wf.Neuron(wf.activation("hermite", degree=4)),
    ),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_closed_form_is_the_integral(name):
    problem = wf.Problem(**SMOOTH[name])
    exact, gauss = wf.Risk(problem, wf.ClosedForm()), wf.Risk(problem, wf.Quadrature(64))
    p = particles(problem, scale=0.7)
    # 64 nodes a dimension: ten digits and more for erf at variances below 1, and a digit is lost to the
    # derivative; the polynomials and trigonometric functions are exact
    assert float(exact.value(p)) == pytest.approx(float(gauss.value(p)), abs=1e-9)
    assert np.allclose(exact.velocity(p), gauss.velocity(p), rtol=0, atol=1e-8)


def split_nodes(problem, link_axis=0, order=200):
    """Gauss–Legendre on both sides of the link's kink at x_1 = 0, Gauss–Hermite across."""
    z, w = np.polynomial.legendre.leggauss(order)
    half, weight = 5 * (z + 1), 5 * w * np.exp(-((5 * (z + 1)) ** 2) / 2) / np.sqrt(2 * np.pi)
    first, first_weights = np.concatenate([-half, half]), np.concatenate([weight, weight])
    second = problem.x.rule(64)
    second, second_weights = np.unique(second[0][:, 1]), second[2].reshape(64, 64).sum(0)
    x = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = np.outer(first_weights, second_weights).ravel()
    return wf.types.Nodes(x, problem.target(jnp.asarray(x)), weights)


@pytest.mark.parametrize("link", ["relu", "tanh"])
def test_link_without_a_common_closed_form(link):
    """V is then taken by a rule that cuts at the kinks; everything else stays exact."""
    problem = wf.Problem(x=wf.Gaussian(2), target=wf.single_index(link), neuron=wf.Neuron("erf"))
    exact = wf.Risk(problem, wf.ClosedForm())
    by_hand = exact.on(split_nodes(problem))
    p = particles(problem, scale=0.7)
    assert "to order 128" in exact.way(p)
    # 10 standard deviations are cut off; tanh at variance 1 needs 88 nodes of the 128 for ten digits
    assert float(exact.value(p)) == pytest.approx(float(by_hand.value(p)), abs=1e-9)
    assert np.allclose(exact.velocity(p), by_hand.velocity(p), rtol=0, atol=1e-8)


@pytest.mark.parametrize("labels", ["single-index", "two Gaussians"])
def test_activation_without_a_dual_by_its_series(labels):
    law = wf.Gaussian(2) if labels == "single-index" else wf.two_gaussians(2, 0.3)
    target = {"target": wf.single_index("tanh")} if labels == "single-index" else {}
    problem = wf.Problem(x=law, neuron=wf.Neuron("tanh"), **target)
    with pytest.raises(ValueError, match="ClosedForm\\(order\\)"):
        wf.Risk(problem, wf.ClosedForm())
    series, gauss = wf.Risk(problem, wf.ClosedForm(64)), wf.Risk(problem, wf.Quadrature(128))
    p = particles(problem, scale=0.5)
    # variances below 1: ten digits of the dual with 64 terms, two fewer for its derivative
    assert float(series.value(p)) == pytest.approx(float(gauss.value(p)), abs=1e-8)
    assert np.allclose(series.velocity(p), gauss.velocity(p), rtol=0, atol=1e-6)
    rough = wf.Risk(problem, wf.ClosedForm(12))
    assert "tanh–tanh to order 12" in rough.way(p)
    assert abs(float(rough.value(p) - gauss.value(p))) <= rough.error(p)


HIGH = {
    "relu teacher, full covariance": dict(
        x=wf.Gaussian(6, covariance(6)),
        target=wf.teacher(RNG.normal(size=(3, 6)), a=[1.0, -0.5, 0.3]),
        neuron=wf.Neuron("relu"),
        noise=0.4,
    ),
    "relu, two Gaussians": dict(x=wf.two_gaussians(6, 0.5), neuron=wf.Neuron("relu")),
    "leaky relu, unlike covariances": dict(
        x=two(covariance(6, 1), covariance(6, 2), [1.0, -1.0], [0.2, 0.8]),
        neuron=wf.Neuron(wf.activation("leaky_relu", slope=0.2)),
        noise=0.2,
    ),
    "relu link, erf neuron": dict(
        x=wf.Gaussian(6, covariance(6)), target=wf.single_index("relu"), neuron=wf.Neuron("erf")
    ),
}


@pytest.mark.parametrize("name", HIGH)
def test_closed_form_within_four_standard_errors_of_a_sample(name):
    problem = wf.Problem(**HIGH[name])
    exact, p = wf.Risk(problem, wf.ClosedForm()), particles(problem, scale=1.5)

    @jax.jit
    def batch(key):
        risk = exact.on(problem.sample(key, 2000))
        return risk.value(p), problem.neuron.pack(risk.drift(p))

    drawn = jax.lax.map(batch, jax.random.split(jax.random.key(4), 60))
    for given, samples in zip((exact.value(p), exact.velocity(p)), drawn, strict=True):
        mean, error = samples.mean(0), samples.std(0, ddof=1) / np.sqrt(60)
        # 4 standard errors, known to 1/√120 each: the 60 numbers of a case exceed 4.4 with chance 1e-3
        assert np.all(np.abs(np.asarray(given - mean)) < 4.4 * np.asarray(error))
        assert np.max(error / (1 + np.abs(mean))) < 0.02  # and that is a sharp statement


@pytest.mark.parametrize(
    ("way", "outputs"), [(wf.ClosedForm(), 1), (wf.Quadrature(12), 1), (wf.Quadrature(12), 3)]
)
def test_label_noise_adds_its_half_square(way, outputs):
    """To the risk, per output, exactly; to the velocity nothing."""
    target = wf.single_index("erf") if outputs == 1 else lambda x: jnp.stack([x[0], x[1], x[0] ** 2])
    common = dict(x=wf.Gaussian(2), target=target, neuron=wf.Neuron("erf", outputs=outputs))
    quiet, noisy = (wf.Risk(wf.Problem(**common, noise=noise), way) for noise in (0.0, 0.7))
    p = particles(quiet.problem)
    added = float(noisy.value(p) - quiet.value(p))
    assert added == pytest.approx(0.5 * 0.7**2 * outputs, abs=1e-15)  # one rounding of a number near 1
    assert np.array_equal(noisy.velocity(p), quiet.velocity(p))
    sample = wf.Risk(noisy.problem, wf.Sample(40_000))
    assert abs(float(sample.value(p) - noisy.value(p))) < 4 * sample.error(p)


def test_blocks_of_pairs_change_nothing(monkeypatch):
    from wideflow.functionals import pairs

    problem = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    p = particles(problem, n=11)
    whole = wf.Risk(problem, wf.ClosedForm())
    expected = whole.value(p), whole.velocity(p), whole.psi(p.theta, p)
    monkeypatch.setattr(pairs, "_PAIRS", 11 * 4)  # four neurons at a time, the last block ragged
    blocked = pairs.Pairs(problem, order=127)
    drift = jax.jit(lambda p: problem.neuron.pack(blocked.drift(p)))
    for given, wanted in zip(
        (blocked.value(p), drift(p), blocked.potential(p.parts, p)), expected, strict=True
    ):
        assert np.allclose(given, wanted, rtol=1e-13, atol=1e-15)  # another order of summation


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (dict(loss="huber"), "not squared"),
        (dict(x=wf.Sphere(2)), "not Gaussian"),
        (dict(neuron=wf.CustomNeuron(lambda x, t: x @ t, 2)), "not of the form"),
        (dict(neuron=wf.Neuron("erf", bias=True)), "bias"),
        (dict(neuron=wf.Neuron("tanh")), "'tanh' has no dual"),
        (dict(target=lambda x: x[0]), "not a sum of ridge functions"),
        (dict(target=wf.teacher([[1.0, 0.0]], b=[1.0])), "biases"),
    ],
)
def test_no_closed_form_says_why(change, reason):
    common = dict(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    with pytest.raises(ValueError, match=f"(?s)no closed form here.*{reason}.*Try expectation="):
        wf.Risk(wf.Problem(**(common | change)), wf.ClosedForm())


@pytest.mark.parametrize("phi", ["erf", "gelu", "sin", "square"])
def test_a_linearised_network_has_a_closed_form_too(phi):
    """Against Gauss quadrature of order 48, whose error in three dimensions is below 1e-9 for the erf of the
    target (it differs by 5e-11 here), and by nothing but rounding in the gradient of most activations."""
    problem = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron(phi))
    net = linearised(wf.init(problem).sample(jr.key(0), 5, alpha=2.0))
    lin = net.moved(jax.tree.map(lambda p: jr.normal(jr.key(1), p.shape), net.parts), 0.3)
    exact, nodes = wf.Risk(problem), wf.Risk(problem, wf.Quadrature(48))
    assert exact.way(lin).startswith("closed form") and nodes.way(lin).startswith("Gauss")
    assert abs(float(exact.value(lin) - nodes.value(lin))) < 1e-9
    assert exact.error(lin) < (1e-13 if phi != "square" else 1e-9)  # rounding; erf–square is by a series
    for one, other in zip(*(jax.tree.leaves(R.drift(lin, 0.5)) for R in (exact, nodes)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_a_linearised_network_with_kinks_has_none():
    """The second derivative of the dual of relu jumps where two neurons are the same."""
    problem = wf.Problem(x=wf.Gaussian(3), target=wf.single_index("erf"), neuron=wf.Neuron("relu"))
    net = wf.init(problem).sample(jr.key(0), 5)
    assert wf.Risk(problem).way(net).startswith("closed form")
    assert wf.Risk(problem).way(linearised(net)).startswith("Gauss quadrature")
