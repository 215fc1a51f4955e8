"""What a study looks at, against explicit sums, Monte-Carlo and the limit that it stands for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import wideflow as wf
from study.specs import study
from wideflow.observables import OBSERVABLES
from wideflow.observers import (
    NoMovement,
    Predictions,
    Value,
    free_energy_estimate,
    kernel_movement,
    observer,
    weight_movement,
)
from wideflow.states.linearisation import Linearisation
from wideflow.study.observers import QUANTILES, Cloud, Feature, has_probes
from wideflow.study.perform import _looked_at, observers, perform

DRAW = np.random.default_rng(0)


def particles(theta, mass=None, neuron=None):
    return wf.Particles(theta, mass, 1.0, neuron or wf.Neuron("erf"))


def kernel(theta, mass, x):
    """K = Φ1 + Φ0 ∘ G1: means over the neurons of φφ' and a²φ'φ' of h = ⟨w, x⟩, φ = erf."""
    a, h = theta[:, 0], x @ theta[:, 1:].T
    phi, slope = special.erf(h), 2 / np.sqrt(np.pi) * np.exp(-(h**2))
    return (phi * mass) @ phi.T + (x @ x.T) * ((slope * mass * a**2) @ slope.T)


@pytest.mark.parametrize("equal", [True, False])
def test_movement_of_the_kernel(equal):
    x = DRAW.normal(size=(6, 3))
    start, end = DRAW.normal(size=(2, 5, 4))
    mass = np.full(5, 0.2) if equal else np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    moved = kernel_movement(particles(start, mass), jnp.asarray(x))
    before, after = kernel(start, mass, x), kernel(end, mass, x)
    expected = np.linalg.norm(after - before) / np.linalg.norm(before)
    # the same sum of fifteen products of doubles in another order
    assert float(moved(1.0, particles(end, mass))) == pytest.approx(expected, rel=1e-12)
    assert float(moved(0.0, particles(start, mass))) == 0.0


def test_a_frozen_kernel_does_not_move_and_a_reduced_one_is_not_that_of_the_neurons():
    state = particles(DRAW.normal(size=(5, 4)))
    x = jnp.asarray(DRAW.normal(size=(6, 3)))
    frozen = kernel_movement(Linearisation(state), x)
    assert isinstance(frozen, NoMovement) and frozen(1.0, state) == 0.0
    small = study("problem.reduced=true")
    assert kernel_movement(small.cases[0].state(small.start, small.spec.start), x) is None


def test_movement_of_the_weights_is_weighed_as_the_measure_is():
    start, end = DRAW.normal(size=(2, 5, 4))
    mass = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    moved = weight_movement(particles(start, mass))
    expected = np.sqrt((mass @ ((end - start) ** 2).sum(1)) / (mass @ (start**2).sum(1)))
    assert float(moved(1.0, particles(end, mass))) == pytest.approx(expected, rel=1e-14)  # sums of 20 terms


def test_movement_of_the_weights_of_a_network():
    family = wf.MLP(3, 2, "tanh", bias=0.1)
    start, end = (family.sample(jax.random.key(i), 4, "ntk") for i in (0, 1))
    flat = lambda state: np.concatenate([np.ravel(v) for v in jax.tree.leaves(state.position())])
    expected = np.linalg.norm(flat(end) - flat(start)) / np.linalg.norm(flat(start))
    assert float(weight_movement(start)(1.0, end)) == pytest.approx(expected, rel=1e-14)  # some 40 terms


def test_values_and_predictions_are_those_of_the_state():
    state, x = particles(DRAW.normal(size=(5, 4))), jnp.asarray(DRAW.normal(size=(6, 3)))
    a, w = np.asarray(state.theta)[:, 0], np.asarray(state.theta)[:, 1:]
    f = Predictions(x)(0.0, state)
    np.testing.assert_allclose(f, special.erf(x @ w.T) @ a / 5, rtol=1e-12)  # five terms, erf of two makers
    half = Value(wf.SecondMoment())(0.0, state)
    assert float(half) == pytest.approx(0.5 * (np.asarray(state.theta) ** 2).sum() / 5, rel=1e-14)


SEEN = {
    "neurons": (
        [],
        {"kernel_movement", "weight_movement", "f", "cloud", "feature", "second_moment", "path_norm"},
    ),
    "reduced": (
        ["problem.reduced=true"],
        {"weight_movement", "f", "cloud", "feature", "second_moment", "path_norm"},
    ),
    "a network": (["start={kind='mlp'}"], {"kernel_movement", "weight_movement", "f", "second_moment"}),
}


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", SEEN)
def test_every_state_is_looked_at_as_far_as_it_can_be(name, frozen):
    """All that the spec asks for where it exists, each with a finite answer."""
    changes, names = SEEN[name]
    made = study(*changes, "observe={kernel=4,test=5,norms=['second_moment','path_norm']}")
    state = made.cases[0].state(made.start, made.spec.start)
    at = Linearisation(state) if frozen else state
    found = observers(made, at)
    expected = (names - {"path_norm"}) | {"kernel_movement"} if frozen else names
    assert set(found) == expected
    assert all(np.isfinite(fn(0.0, at)).all() for fn in found.values())


def test_pictures_show_the_named_coordinates():
    """θ = (a, w1, …, w4) with the signal along the first axis: s = w1, r = |(w2, w3, w4)|."""
    made = study()
    state = made.cases[0].state(made.start, made.spec.start)
    theta = np.asarray(state.theta)
    cloud = Cloud(made.coordinates, ("s", "r"), "a", 4)(0.0, state)
    expected = np.column_stack([theta[:, 1], np.linalg.norm(theta[:, 2:], axis=1), theta[:, 0]])[:4]
    np.testing.assert_allclose(cloud, expected, rtol=1e-14)
    own = Cloud(made.coordinates, ("w2", "w4"), None, 9)(0.0, state)
    np.testing.assert_array_equal(own, np.column_stack([theta[:, 2], theta[:, 4], np.zeros(6)]))


def test_a_feature_is_its_quantiles():
    """Of equal neurons those of NumPy; under weights, a point counts as much as it weighs."""
    made = study()
    feature = Feature(made.coordinates, "w1")
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    state = made.cases[0].state(made.start, made.spec.start)
    np.testing.assert_allclose(feature(0.0, state), np.quantile(state.theta[:, 1], levels), rtol=1e-14)
    theta = np.zeros((2001, 5))
    theta[:, 1] = np.linspace(-6, 6, 2001)[::-1]
    mass = stats.norm.pdf(theta[:, 1])
    seen = feature(0.0, particles(theta, mass / mass.sum()))
    np.testing.assert_allclose(seen, stats.norm.ppf(levels), atol=0.006)  # how far two points are apart
    # the probes of a limit stand for it, whatever the nodes beside them weigh
    nodes = particles(theta[:4], [0.5, 0.5, 0, 0])
    of_probes = Feature(made.coordinates, "w1", has_probes(nodes))
    np.testing.assert_allclose(of_probes(0.0, nodes), np.quantile(theta[2:4, 1], levels), rtol=1e-14)


def test_probes_alone_are_drawn_of_a_limit():
    made = study()
    theta = DRAW.normal(size=(7, 5))
    limit = particles(theta, [0.5, 0.25, 0.25, 0, 0, 0, 0])
    assert has_probes(limit)
    cloud = Cloud(made.coordinates, ("w1", "a"), "a", 3, probes=True)(0.0, limit)
    np.testing.assert_array_equal(cloud[:, :2], theta[3:6, [1, 0]])


BLOCKS = {
    "one block": wf.Problem(x=wf.Gaussian(6), target=wf.single_index("erf"), neuron=wf.Neuron("erf")),
    "two blocks": wf.Problem(x=wf.two_gaussians(7, 0.5, 3), neuron=wf.Neuron("erf")),
    "a sphere": wf.Problem(x=wf.Sphere(5), target=wf.single_index("erf"), neuron=wf.Neuron("erf")),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_rows_of_x_have_the_law_of_the_reduced_problem(name):
    """Every coordinate by the test of Kolmogorov and Smirnov, and products of two by their means."""
    problem = BLOCKS[name]
    m = 4000
    rows = np.asarray(problem.symmetry().rows(problem.sample(jax.random.key(1), m).x))
    small = np.asarray(problem.reduced().sample(jax.random.key(2), m).x)
    assert rows.shape == small.shape
    for one, other in zip(rows.T, small.T, strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-4  # fixed draws: false alarms of one in 10⁴
    products = lambda x: (x[:, :, None] * x[:, None, :]).reshape(m, -1)
    one, other = products(rows), products(small)
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / m)
    # four standard errors in a dozen numbers
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error + 1e-12).all()


def test_rows_of_x_keep_the_target():
    problem = BLOCKS["one block"]
    x = problem.sample(jax.random.key(0), 9).x
    rows = problem.symmetry().rows(x)
    np.testing.assert_allclose(problem.reduced().target(rows), problem.target(x), rtol=1e-14)


def test_a_limit_predicts_what_its_lifted_neurons_predict():
    """f of reduced particles on reduced rows is a mean over directions: their number gives the error."""
    problem, copies = BLOCKS["two blocks"], 2000
    small = wf.init(problem).reduced().sample(jax.random.key(3), 4)
    x = problem.sample(jax.random.key(4), 20).x
    f = np.asarray(Predictions(problem.symmetry().rows(x))(0.0, small))
    lifted = wf.lift(problem, small, jax.random.key(5), copies=copies)
    a, w = np.asarray(lifted.theta)[:, 0], np.asarray(lifted.theta)[:, 1:]
    each = (special.erf(np.asarray(x) @ w.T) * a).reshape(20, 4, copies)
    error = np.sqrt((each.var(axis=2) / copies).sum(axis=1)) / 4
    z = (f - each.mean(axis=2).mean(axis=1)) / error
    # 20 numbers of order 1, which share their directions, so that all may lean to one side
    assert np.abs(z).max() < 4
    assert 0.2 < np.sqrt(np.mean(z**2)) < 2


@pytest.mark.slow
def test_the_kernel_of_a_limit_moves_as_that_of_a_wide_network(tmp_path):
    """Gauss nodes of the start, carried in reduced coordinates and lifted to neurons in 4096 directions,
    against networks of 400 neurons. Both by the same steps, so that width alone is between them."""
    made = study(
        "risk.expectation={}", "times={at=[0.0,2.0]}", "dynamics.gd.width=400", "dynamics.gd.seeds=6"
    )
    small = made.whole.reduced()
    nodes = made.start.reduced().nodes({"a": 4, "s": 10, "r": 4})
    limit = wf.evolve(
        wf.GradientDescent(wf.Risk(small, wf.Quadrature(20)), 0.1), nodes, made.ts, progress=False
    )
    seen = _looked_at(made, limit)
    assert {"kernel_movement", "weight_movement", "f"} <= set(seen.keys())
    assert seen.info["regime"]["kernel"] == pytest.approx(
        seen["kernel_movement"][-1], rel=0.2
    )  # other points
    runs = [perform(made, case, tmp_path / case.slug, progress=False) for case in made.cases]
    for name in ("kernel_movement", "weight_movement"):
        ends = np.array([run[name][-1] for run in runs])
        error = ends.std(ddof=1) / np.sqrt(len(ends))
        # three standard errors, and of order 1/n what the width itself changes
        assert abs(ends.mean() - seen[name][-1]) < 3 * error + 2 / 400
        assert error < 0.05 * ends.mean()  # so that the test says something
    gap = np.array([np.sqrt(np.mean((run["f"][-1] - seen["f"][-1]) ** 2)) for run in runs])
    size = np.sqrt(np.mean(seen["f"][-1] ** 2))
    assert (gap < 5 / np.sqrt(400) * size).all()  # a mean over 400 neurons of order 1


def test_the_free_energy_of_noisy_particles():
    """Of N(0, v I) in D = 2 with no risk: F = λv − (1 + log 2πv)/β exactly; where all coincide it is ∞."""
    problem = wf.Problem(x=wf.Dataset(np.ones((2, 1)), np.zeros(2)), neuron=wf.Neuron("erf"))
    v, beta, decay, n = 0.25, 10.0, 0.3, 4000
    theta = np.sqrt(v) * np.random.default_rng(1).normal(size=(n, 2))
    state = wf.Particles(theta, None, 1.0, problem.neuron)
    made = free_energy_estimate(0.0 * wf.Risk(problem), beta, decay)
    seen, error = made["free_energy_estimate"], made["free_energy_error"](0.0, state)
    exact = decay * v - (1 + np.log(2 * np.pi * v)) / beta
    # the entropy by its own error, and ½∫|θ|²dρ, of standard deviation v/√n
    assert abs(float(seen(0.0, state)) - exact) < 3 * np.hypot(error, decay * v / np.sqrt(n))
    assert error < 0.01
    assert seen(0.0, wf.Particles(np.ones((50, 2)), None, 1.0, problem.neuron)) == np.inf


def test_a_noisy_study_records_its_free_energy():
    noisy = [
        {"method": "langevin", "step": 0.1, "beta": b, "width": 60, "name": f"{b}"} for b in (9.0, np.inf)
    ]
    made = study(dynamics=noisy)
    names = [set(observers(made, made.state(case), case)) for case in made.cases]
    assert {"free_energy_estimate", "free_energy_error"} == names[0] - names[1]
    few = study(dynamics=[one | {"width": 6} for one in noisy])
    assert not any("free" in name for name in observers(few, few.state(few.cases[0]), few.cases[0]))


def test_observers_by_name_are_those_of_the_table():
    """In `evolve` as in a spec: one grammar, with functions of one's own beside them."""
    made = study()
    state = made.state(made.cases[0])
    names = ["kernel_movement", "weight_movement", "second_moment", "path_norm", "mass"]
    assert set(names) <= set(OBSERVABLES)

    def own(t, rho):
        return t

    descent = wf.GradientDescent(made.risk, 0.1)
    run = wf.evolve(descent, state, [0.0, 0.5], observe=[*names, own], progress=False)
    assert set(run.keys()) == {"risk", "fresh_risk", "fresh_risk_error", *names, "own"}
    assert run["mass"][-1] == pytest.approx(1.0, rel=1e-14) and run["kernel_movement"][0] == 0.0
    x = made.whole.sample(jax.random.key(2**32 - 3), 64).x
    moved = float(kernel_movement(state, x)(0.5, run.final))
    assert run["kernel_movement"][1] == pytest.approx(moved, rel=1e-12)  # one program and another
    with pytest.raises(ValueError, match=r"no observer 'weigth_movement'.*Did you mean 'weight_movement'"):
        wf.evolve(descent, state, [0.5], observe="weigth_movement")
    many = made.start.sample(jax.random.key(0), 6, replicas=2)
    moments = wf.evolve(descent, many, [0.5], observe=["second_moment"], progress=False)
    assert moments["second_moment"].shape == (1, 2)
    with pytest.raises(ValueError, match=r"'weight_movement' compares.*replicas"):
        wf.evolve(descent, many, [0.5], observe=["weight_movement"])
    with pytest.raises(ValueError, match="reduced coordinates have none"):
        small = study("problem.reduced=true")
        observer("kernel_movement", small.risk, small.state(small.cases[0]))


def test_weighted_quantiles_are_those_of_copies():
    """Of mass 1/10, 2/10, 3/10, 4/10 at −3, −1, 2, 5: the middle of each one's mass is where it is."""
    made = study()
    theta = np.zeros((4, 5))
    theta[:, 1] = [2.0, -3.0, 5.0, -1.0]
    seen = Feature(made.coordinates, "w1")(0.0, particles(theta, np.array([0.3, 0.1, 0.4, 0.2])))
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    np.testing.assert_allclose(seen, np.interp(levels, [0.05, 0.2, 0.45, 0.8], [-3.0, -1.0, 2.0, 5.0]))


def test_who_stands_for_a_weighted_measure():
    """At levels 1/6, 3/6, 5/6 of the mass."""
    made = study()
    theta = np.arange(20.0).reshape(4, 5)
    state = particles(theta, np.array([0.1, 0.5, 0.1, 0.3]))
    shown = Cloud(made.coordinates, ("w1", "w2"), "a", 3)(0.0, state)
    np.testing.assert_array_equal(shown, theta[[1, 1, 3]][:, [1, 2, 0]])


def test_replicas_are_drawn_as_they_are_alone():
    made = study()
    theta, widths = DRAW.normal(size=(3, 6, 5)), (2, 6, 4)
    mass = np.array([np.where(np.arange(6) < n, 1 / n, 0.0) for n in widths])
    mass[1] = [0.1, 0.3, 0.1, 0.2, 0.1, 0.2]
    many = particles(theta, mass)
    for seen in (Cloud(made.coordinates, ("s", "r"), "a", 4), Feature(made.coordinates, "s")):
        for r, drawn in enumerate(seen.of_replicas(many, widths)):
            alone = seen(0.0, many.replica(r).first(widths[r]))
            np.testing.assert_allclose(drawn, alone, rtol=0, atol=1e-15)  # lengths of a row, summed apart
