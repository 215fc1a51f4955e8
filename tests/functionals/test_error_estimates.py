"""Risk.error is honest, and Risk picks the way that its documentation promises."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.functionals import expectations
from wideflow.functionals.pairs import Pairs


def problem_of(link="erf", d=2, **changes):
    common = dict(x=wf.Gaussian(d), target=wf.single_index(link), neuron=wf.Neuron(link))
    return wf.Problem(**(common | changes))


# (activation, d, standard deviation of w·√d): the last one is what makes a rule need more nodes
TABLE = [("erf", 1, 3.0), ("erf", 2, 1.0), ("gelu", 1, 1.0), ("relu", 2, 1.0)]


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_quadrature_error_is_honest(case):
    link, d, scale = case
    problem = problem_of(link, d)
    exact = wf.Risk(problem, wf.ClosedForm())
    starts = [wf.init(problem, w=scale).sample(jax.random.key(seed), 6) for seed in range(4)]
    for order in (1, 8):
        risk = wf.Risk(problem, wf.Quadrature(order))
        for p in starts:
            true, estimate = abs(float(risk.value(p) - exact.value(p))), risk.error(p)
            # 10: an estimate from one pair of rules can be lucky; the worst of this table is 2.3
            assert true <= 10 * estimate + exact.error(p)
            assert estimate > 0


def test_quadrature_error_falls_to_rounding():
    """For erf, order 96 leaves the estimate at the rounding of the risk, not at 0."""
    problem = problem_of("erf", 1)
    p = wf.init(problem, w=0.5).sample(jax.random.key(0), 6)
    risk = wf.Risk(problem, wf.Quadrature(160))
    assert 0 < risk.error(p) < 1e-13
    assert abs(float(risk.value(p) - wf.Risk(problem, wf.ClosedForm()).value(p))) < 1e-13


def test_error_of_a_link_without_a_closed_form():
    """A tanh link of slope 3 against an erf neuron: not exact to rounding, and it says so."""
    target = wf.teacher(3 * np.eye(2, 4), link="tanh")
    problem = wf.Problem(x=wf.Gaussian(4), target=target, neuron=wf.Neuron("erf"))
    p = wf.init(problem, w=3.0).sample(jax.random.key(0), 4)
    way = expectations.ByPairs(Pairs(problem, 40))
    true = abs(float(way.risk(p) - Pairs(problem, 160).value(p)))
    assert 1e-5 < true < way.error(p) < 0.1


def test_rounding_of_the_closed_form():
    """The same particles in single and double precision; α = √n makes large terms cancel."""
    problem = problem_of("erf", 10)
    risk = wf.Risk(problem, wf.ClosedForm())
    for seed in range(6):
        alpha = 10.0 if seed % 2 else 1.0
        p = wf.init(problem).sample(jax.random.key(seed), 100, alpha=alpha, dtype=jnp.float32)
        double = wf.Particles(np.asarray(p.theta, float), alpha=alpha, neuron=problem.neuron)
        assert abs(float(risk.value(p)) - float(risk.value(double))) <= risk.error(p) < 1e-4


def test_fresh_data_estimate_the_population_risk():
    """Of a state that was trained on nothing: fresh risk minus the exact one is a standard error, and the
    sample's own is within the stated error."""
    problem = problem_of("erf", 5, noise=0.3)
    p = wf.init(problem).sample(jax.random.key(0), 4)
    exact = float(wf.Risk(problem, wf.ClosedForm()).value(p))
    risks = [wf.Risk(problem, wf.Sample(400, seed=seed)) for seed in range(40)]
    seen = [{name: float(v) for name, v in r.observed(p).items()} for r in risks]
    normalised = np.array([(s["fresh_risk"] - exact) / s["fresh_risk_error"] for s in seen])
    # 40 normal numbers: their standard deviation is known to 1/√78, their mean to 1/√40
    assert abs(normalised.std(ddof=1) - 1) < 4 / np.sqrt(78)
    assert abs(normalised.mean()) < 4 / np.sqrt(40)
    # √(gap² + s.e.²) is one s.e. or more, and the gap two s.e. of 400 points, √2 of them in the mean square
    standard = np.array([s["fresh_risk_error"] for s in seen])
    errors = np.array([r.error(p) for r in risks])
    assert np.all(errors >= standard) and np.sqrt(np.mean((errors / standard) ** 2)) < 2.5
    assert all(abs(s["risk"] - exact) <= 4 * e for s, e in zip(seen, errors, strict=True))


def test_a_small_sample_has_an_honest_error_of_its_fresh_risk():
    """Losses of four points are skewed, and their standard error is a guess: fresh data are 1024 or more."""
    problem = problem_of("erf", 5)
    p = wf.init(problem, a=3.0).sample(jax.random.key(0), 4)
    exact = float(wf.Risk(problem, wf.ClosedForm()).value(p))
    seen = [wf.Risk(problem, wf.Sample(4, seed=seed)).observed(p) for seed in range(40)]
    normalised = np.array([(float(s["fresh_risk"]) - exact) / float(s["fresh_risk_error"]) for s in seen])
    # as above; with four points (Student's t of 3 degrees of freedom) the deviation would be 1.7 or more
    assert abs(normalised.std(ddof=1) - 1) < 4 / np.sqrt(78)


def test_a_fitted_sample_does_not_hide_the_population_risk():
    """200 neurons fit 40 noisy points far below the noise floor ½·0.5², the population risk stays above it;
    exact by the closed form. The error of the fitted sample has to span that gap."""
    problem = problem_of("erf", 5, noise=0.5)
    R = wf.Risk(problem, wf.Sample(40))
    run = wf.evolve(
        wf.GradientFlow(R, rtol=1e-4), wf.init(problem).sample(jax.random.key(1), 200), [0.0, 200.0]
    )
    exact = np.array([float(wf.Risk(problem, wf.ClosedForm()).value(s)) for s in run.states])
    assert run["risk"][1] < 0.5 * 0.125 < 0.125 < exact[1]
    assert abs(run["risk"][1] - exact[1]) <= 3 * R.error(run.final)
    assert R.error(run.final) == run.info["expectation_error"] and "fresh" in run.info["expectation"]
    assert np.all(np.abs(run["fresh_risk"] - exact) <= 4 * run["fresh_risk_error"])  # standard errors


def test_what_fresh_data_say_is_compiled_and_vmapped():
    problem = problem_of("erf", 5)
    R = wf.Risk(problem, wf.Sample(30)) + 0.1 * wf.SecondMoment()
    states = [wf.init(problem).sample(jax.random.key(i), 6) for i in range(3)]
    stacked = jax.tree.map(lambda *v: jnp.stack(v), *states)
    together = jax.jit(jax.vmap(R.observed))(stacked)
    for i, state in enumerate(states):
        for name, value in R.observed(state).items():
            assert float(together[name][i]) == pytest.approx(float(value), rel=1e-12)  # roundings


def test_a_sample_of_one_is_as_far_off_as_fresh_data_say():
    problem = problem_of()
    p = wf.init(problem).sample(jax.random.key(0), 4)
    R, exact = wf.Risk(problem, wf.Sample(1)), float(wf.Risk(problem, wf.ClosedForm()).value(p))
    gap = abs(float(R.value(p)) - exact)
    assert gap > 0.1 * exact  # one point is no estimate
    # the gap to the fresh risk, whose standard error (√2/32 of the risk for a normal residual) counts as well
    assert abs(R.error(p) - gap) < 4 * float(R.observed(p)["fresh_risk_error"])


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("m", [3, 5000])
def test_data_have_the_error_of_rounding(scale, near, m):
    """Targets of size 10³ in single precision, the network near them or far; against all in double."""
    rng = np.random.default_rng(m)
    x, theta = rng.normal(size=(m, 4)), rng.normal(size=(50, 5)) * [scale, 1, 1, 1, 1]
    y = scale * rng.normal(size=m)

    def made(dtype):
        problem = wf.Problem(x=wf.Dataset(x, labels), neuron=wf.Neuron("tanh"))
        return wf.Risk(problem), wf.Particles(theta.astype(dtype), neuron=problem.neuron)

    labels = y
    if near:
        labels = np.asarray(made(float)[1](x)) + 1e-3 * y
    R, p = made(float)
    exact = float(R.value(p))
    assert R.error(p) <= 1e-12 * (exact + scale * np.sqrt(exact))  # some 10² roundings of double
    with jax.enable_x64(False):
        R, p = made(np.float32)
        assert p.dtype == jnp.float32
        assert abs(float(R.value(p)) - exact) <= R.error(p) <= 1e-4 * (exact + scale * np.sqrt(exact))


# --- which way -----------------------------------------------------------------------------------

gaussian_sampler = lambda key, m: jax.random.normal(key, (m, 2))
WAYS = [
    (problem_of(d=50), "closed form (dual activations)"),
    (problem_of(d=50, neuron=wf.Neuron("tanh")), "fixed sample (16384 points"),
    (problem_of(neuron=wf.Neuron("tanh")), "Gauss quadrature of order 96 (9216 points)"),
    (problem_of(d=1, neuron=wf.Neuron("tanh")), "Gauss quadrature of order 256 (256 points)"),
    (problem_of(d=3, neuron=wf.Neuron("tanh")), "Gauss quadrature of order 24 (13824 points)"),
    (problem_of(x=wf.Sphere(2)), "Gauss quadrature of order 512 (512 points)"),
    (problem_of(x=wf.Sphere(3)), "Gauss quadrature of order 160 (12800 points)"),
    (problem_of(x=wf.Sphere(4)), "fixed sample (16384 points"),
    (problem_of(x=wf.laws.Sampler(gaussian_sampler, 2)), "fixed sample (16384 points"),
    (problem_of(loss="huber", noise=0.1), "fixed sample (16384 points"),
    (problem_of(loss="huber"), "Gauss quadrature of order 96 (9216 points)"),
    (
        wf.Problem(x=wf.two_gaussians(2, 0.2), neuron=wf.Neuron("relu"), noise=0.1),
        "closed form (dual activations)",
    ),
    (
        wf.Problem(x=wf.Dataset(np.eye(2), [1.0, 2.0]), neuron=wf.Neuron("erf")),
        "data set (2 points)",
    ),
    (
        problem_of("relu", neuron=wf.Neuron("erf")),
        "closed form (dual activations; relu–erf to order 128)",
    ),
]


@pytest.mark.parametrize(("problem", "way"), WAYS, ids=[way for _, way in WAYS])
def test_the_most_exact_affordable_way(problem, way):
    p = wf.init(problem).sample(jax.random.key(0), 3)
    risk = wf.Risk(problem)
    assert risk.way(p).startswith(way)


def test_a_run_is_told_which_way_and_how_exact():
    problem = problem_of(d=1, neuron=wf.Neuron("tanh"))
    p, risk = wf.init(problem).sample(jax.random.key(0), 3), wf.Risk(problem, wf.Quadrature(8))
    for functional in (risk, 2 * risk + wf.SecondMoment()):
        info = functional.info(p)
        assert info == {"expectation": risk.way(p), "expectation_error": risk.error(p)}


@pytest.mark.parametrize(("d", "behind"), [(2, "Gauss quadrature"), (9, "fixed sample")])
def test_too_wide_for_pairs(d, behind, monkeypatch):
    """One neuron above the limit: nodes if there are some, else a message that says what to do."""
    assert expectations.MOST_PAIRED == 8192
    monkeypatch.setattr(expectations, "MOST_PAIRED", 3)
    problem = problem_of("erf", d)
    narrow, wide = (wf.init(problem).sample(jax.random.key(0), n) for n in (3, 4))
    assert wf.Risk(problem).way(narrow).startswith("closed form")
    assert wf.Risk(problem).way(wide).startswith(behind)
    with pytest.raises(ValueError, match=r"at most 3 neurons.*got 4 neurons.*wf\.Sample"):
        wf.Risk(problem, wf.ClosedForm()).way(wide)


def test_too_wide_for_pairs_gives_the_same_risk(monkeypatch):
    problem = problem_of()
    p, risk = wf.init(problem).sample(jax.random.key(0), 5), wf.Risk(problem)
    exact = float(risk.value(p))
    monkeypatch.setattr(expectations, "MOST_PAIRED", 4)
    assert risk.way(p).startswith("Gauss")
    # w ~ N(0, I/2): ten digits of erf at order 96 and variances near 1; the estimate says how many
    assert abs(float(risk.value(p)) - exact) <= max(risk.error(p), 1e-14) < 1e-6


def test_other_neurons_than_the_problems_own():
    """The closed form is for the problem's activation: another network goes by the nodes, never by a
    wrong formula."""
    problem = problem_of("erf")
    neuron = wf.Neuron("relu")
    p = wf.Particles(np.random.default_rng(0).normal(size=(4, 3)), neuron=neuron)
    risk, nodes = wf.Risk(problem), problem.quadrature()
    expected = 0.5 * jnp.sum(nodes.weights * (nodes.y - p(nodes.x)) ** 2)
    assert risk.way(p).startswith("Gauss")
    assert float(risk.value(p)) == pytest.approx(float(expected), rel=1e-13)
    slope = jax.grad(lambda theta: jnp.sum(risk.potential(theta, p)))(p.theta)
    assert np.allclose(risk.velocity(p), -slope, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="problem's own"):
        wf.Risk(problem, wf.ClosedForm()).value(p)


@pytest.mark.parametrize("norm", [3.0, 30.0, 1000.0])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_quadrature_error_is_honest_on_steep_links(d, norm):
    """tanh(norm · x1) is a step to any Gauss rule: the rules are wrong in the second digit, and the
    estimate must say so. The truth is a trapezium sum in x1, fine enough to see the step, with
    Gauss–Hermite nodes for the smooth rest."""
    target = wf.teacher(norm * np.eye(1, d), a=[1.0], link="tanh")
    problem = wf.Problem(x=wf.Gaussian(d), target=target, neuron=wf.Neuron("tanh"))
    x = np.linspace(-10, 10, 40001)  # tanh(1000 x) rises over six of these points
    mass = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    z, q = np.polynomial.hermite_e.hermegauss(100)
    y, risk = np.tanh(norm * x), wf.Risk(problem, wf.Quadrature())
    for seed in range(3):
        p = wf.init(problem).sample(jax.random.key(seed), 1)
        a, s = np.asarray(p.theta)[0, :2]
        r = np.linalg.norm(np.asarray(p.theta)[0, 2:])
        hidden = a * np.tanh(s * x[:, None] + r * z)
        mean, square = (hidden @ q / q.sum(), hidden**2 @ q / q.sum())
        true = 0.5 * mass @ (y * y - 2 * y * mean + square)
        assert abs(float(risk.value(p)) - true) <= risk.error(p)


@pytest.mark.parametrize("norm", [10.0, 1e3, 1e4])
def test_rounding_of_long_weights(norm):
    """Neurons near a long teacher: variances of 10⁸ cancel to a risk of 10⁻⁴ in single precision."""
    w = np.random.default_rng(4).normal(size=10)
    w *= norm / np.linalg.norm(w)
    problem = problem_of("erf", 10, target=wf.teacher(w[None], a=[1.0], link="erf"))
    near = w + 1e-3 * norm * np.random.default_rng(5).normal(size=(8, 10))
    theta = np.column_stack([np.ones(8), near]).astype(np.float32)
    short, full = (wf.Particles(t, neuron=problem.neuron) for t in (theta, theta.astype(float)))
    risk = wf.Risk(problem, wf.ClosedForm())
    assert abs(float(risk.value(short)) - float(risk.value(full))) <= risk.error(short)


def test_a_fixed_sample_is_not_what_a_user_draws():
    """No row of the sample, nor of the fresh data beside it, is one of a test set of the same seed."""
    problem = wf.Problem(x=wf.Gaussian(3), target=lambda x: jnp.sin(x[0]), neuron=wf.Neuron("tanh"))
    for seed in (0, 7):
        way = wf.Risk(problem, wf.Sample(64, seed=seed)).ways[0]
        drawn = problem.sample(jax.random.key(seed), 64)
        for rows in (way.nodes, way.fresh):
            assert not np.isin(np.asarray(rows.x), np.asarray(drawn.x)).any()
        assert not np.isin(np.asarray(way.nodes.x), np.asarray(way.fresh.x)).any()
