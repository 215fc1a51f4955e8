"""The limit solver: known digits, honest errors, long times, bad input."""

import math
import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from store.cases import assert_same_bits, limit_call
from wideflow.mean_field import solver
from wideflow.mean_field.solver import compared_times
from wideflow.problems.activations import activation
from wideflow.states.marginals import Panels

RAMPS = activation("piecewise_linear", knots=((0.5, -2.5), (1.5, 7.5)))
FAILING = activation("piecewise_linear", knots=((0.0, -2.5), (0.5, -4.0), (1.5, 7.5)))


def single_index(link="erf", d=math.inf, law=None, **neuron):
    law = wf.Gaussian(d) if law is None else law
    return wf.Problem(x=law, target=wf.single_index(link), neuron=wf.Neuron(link, **neuron))


@pytest.mark.slow
def test_the_table_of_the_theory():
    """erf link and neuron, a ~ N(0, 1), |w| = 1, d = ∞: known to the digits given."""
    problem = single_index()
    run = wf.limit(problem, wf.init(problem), [0.0, 1.0, 2.0, 5.0], tol=1e-8)
    assert run.status == "ok" and run.info["error"] <= 1e-8
    assert run["risk"][0] == pytest.approx(math.asin(2 / 3) / math.pi, abs=1e-10)
    wanted, units = [0.109047313, 0.050656744, 0.0042973], np.array([1e-9, 1e-9, 1e-7])
    assert np.all(np.abs(run["risk"][1:] - wanted) <= 0.5 * units + 1e-8)


@pytest.mark.slow
def test_the_table_in_fifty_dimensions():
    """To 2e-5 here, as that is quick; to all digits in the experiment limit-digits."""
    problem = single_index(d=50)
    run = wf.limit(problem, wf.init(problem), [1.0, 2.0], tol=2e-5)
    assert np.all(np.abs(run["risk"] - [0.107199, 0.049445]) <= 0.5e-6 + 2e-5)


def linear_limit(t, d, alpha):
    """Exact case 2: τ̇ = e/α, e = 1 − ½α(A + S) sinh 2τ, R = ½e², A = 1, S = 1/d."""
    from scipy.integrate import solve_ivp

    left = lambda tau: 1 - 0.5 * alpha * (1 + 1 / d) * np.sinh(2 * tau)
    path = solve_ivp(
        lambda _, tau: left(tau) / alpha, (0, max(t)), [0.0], "DOP853", t, rtol=1e-12, atol=1e-14
    )
    return 0.5 * left(path.y[0]) ** 2


TIMES = [0.5, 1.0, 2.0]
# (problem, start, tol); the truth is the same at a tolerance a thirtieth as large
HONEST = {
    "erf, d = ∞": (single_index(), {}, 1e-4),
    "relu, d = ∞": (single_index("relu"), {}, 1e-4),
    "sin, on a sphere": (single_index("sin", law=wf.Sphere(10)), {"a": wf.laws.Rademacher()}, 1e-3),
    "bias": (single_index("tanh", bias=True, output="unit"), {"b": wf.laws.Uniform()}, 1e-4),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_the_error_is_honest(name):
    problem, start, tol = HONEST[name]
    law = wf.init(problem, **start)
    run = wf.limit(problem, law, TIMES, tol)
    truth = wf.limit(problem, law, TIMES, tol / 30)
    assert run.status == truth.status == "ok"
    assert run.info["error"] <= tol
    assert np.max(np.abs(run["risk"] - truth["risk"])) <= 10 * run.info["error"] + truth.info["error"]


@pytest.mark.parametrize(("alpha", "noise"), [(1.0, 0.0), (3.0, 0.5)])
def test_exact_two_layer_linear_case(alpha, noise):
    """Label noise moves no neuron and adds ½ noise² to the risk."""
    law, target, neuron = wf.Gaussian(5), wf.single_index("identity"), wf.Neuron("identity")
    problem = wf.Problem(x=law, target=target, neuron=neuron, noise=noise)
    run = wf.limit(problem, wf.init(problem), TIMES, tol=1e-7, alpha=alpha)
    true = np.max(np.abs(run["risk"] - linear_limit(TIMES, 5, alpha) - 0.5 * noise**2))
    assert run.info["error"] <= 1e-7 and true <= 10 * run.info["error"]


def square_limit(t, d, gamma):
    """Exact case 3, y = x_1², w ~ N(0, (γ²/d) I): M = diag(m, μ, …, μ), Ṁ = −2GM, G = 2(2Δ + tr(Δ)I)."""
    from scipy.integrate import solve_ivp

    left = lambda m: m - np.array([1.0, 0.0])
    trace = lambda m: left(m) @ [1, d - 1]
    field = lambda _, m: -4 * (2 * left(m) + trace(m)) * m
    path = solve_ivp(field, (0, t), np.full(2, gamma**2 / d), "DOP853", rtol=1e-12, atol=1e-14)
    end = path.y[:, -1]
    return 0.5 * (2 * left(end) ** 2 @ [1, d - 1] + trace(end) ** 2)


EXACT = {
    "linear, d = ∞": (single_index("identity"), 1.0, lambda t: linear_limit([t], math.inf, 1.0)[0]),
    "linear, d = 10": (single_index("identity", 10), 1.0, lambda t: linear_limit([t], 10, 1.0)[0]),
    "square, d = 40": (single_index("square", 40, output="unit"), 2.0, lambda t: square_limit(t, 40, 2.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "tol"), [(name, 1e-3) for name in EXACT] + [("square, d = 40", 1e-4)])
@pytest.mark.parametrize("t", [0.05, 0.3, 0.7])
def test_the_error_is_honest_at_a_single_time(name, tol, t):
    """Two levels can agree at one time by chance, share their first steps, and leave out the same tails."""
    problem, gamma, exact = EXACT[name]
    run = wf.limit(problem, wf.init(problem, w=gamma), [t], tol)
    assert run.info["error"] <= tol
    assert abs(run["risk"][0] - exact(t)) <= 3 * run.info["error"]  # an estimate, not a bound


def test_levels_are_compared_at_times_that_nobody_sees():
    """Every sixteenth of the whole has an asked time or another within a sixteenth of itself."""
    for ts in (np.array([0.7]), np.array([0.0, 1.0, 10.0]), np.linspace(0, 10, 41)):
        compared = compared_times(ts)
        assert set(ts) <= set(compared) and compared[-1] == ts[-1] and len(compared) <= len(ts) + 21
        gaps = [np.min(np.abs(compared - t)) / t for t in np.arange(1, 17) / 16 * ts[-1]]
        assert max(gaps) <= 1 / 16
    assert list(compared_times(np.zeros(1))) == [0.0]


def test_observers_look_once_at_the_times_asked_for():
    problem, seen = single_index(), []
    run = wf.limit(
        problem, wf.init(problem), [0.5, 1.0], 1e-2, observe={"n": lambda t, s: seen.append(t) or 1}
    )
    assert seen == [0.5, 1.0] == list(run.t) and list(run["n"]) == [1, 1]
    assert "n" in run.provenance["observers"] and len(run.states) == 2
    with pytest.raises(ValueError, match="must be a function"):  # before anything is computed
        wf.limit(problem, wf.init(problem), [0.5], observe={"n": 3})
    changing = iter((1, 2))
    with pytest.raises(ValueError, match=r"'size' returned an array of shape \(2,\) at t = 1"):
        sizes = {"size": lambda t, s: np.zeros(next(changing))}
        wf.limit(problem, wf.init(problem), [0.5, 1.0], 1e-2, observe=sizes)


@pytest.mark.slow
def test_without_a_symmetry_in_few_dimensions():
    """d = 2 has no room for one: the nodes are those of (a, w) itself, against a finer product."""
    problem = single_index("erf", 2)
    run = wf.limit(problem, wf.init(problem), [1.0], tol=2e-3)
    nodes = wf.init(problem).nodes({"a": 12, "w": 14})
    fine = wf.evolve(wf.GradientFlow(wf.Risk(problem, wf.Quadrature(32)), rtol=1e-6), nodes, [1.0])
    assert run.final.neuron == problem.neuron
    assert abs(run["risk"][0] - fine["risk"][0]) <= 10 * run.info["error"]


@pytest.mark.slow
def test_past_a_saddle():
    """Two Gaussians in d = ∞ from one radius, 1e-5 above a radius that repels: it waits there for long and
    then leaves, and how long depends on all the digits. Against SciPy on ṙ = −Ψ'(r; δ_r)."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import brentq

    problem = wf.Problem(x=wf.two_gaussians(math.inf, 0.5), neuron=wf.Neuron(FAILING, output="unit"))
    reduced = problem.reduced(32)
    risk = wf.Risk(reduced)
    speed = jax.jit(lambda r: risk.drift(wf.Particles(r[None, None], neuron=reduced.neuron)).w[0, 0])
    repels = brentq(lambda r: float(speed(jnp.asarray(r))), 0.1, 0.4, xtol=1e-14)
    assert float(speed(jnp.asarray(repels + 1e-3))) > 0 > float(speed(jnp.asarray(repels - 1e-3)))
    ts = [0.05, 0.1, 0.2, 0.5, 2.0]
    run = wf.limit(problem, wf.init(problem, w=repels + 1e-5), ts, 1e-5)
    path = solve_ivp(
        lambda _, r: [float(speed(jnp.asarray(r[0])))], (0, ts[-1]), [repels + 1e-5], "DOP853", ts,
        rtol=1e-11, atol=1e-13,
    )  # fmt: skip
    found = [float(state.theta[0, 0]) for state in run.states]
    assert abs(found[0] - repels) < 0.02 and found[-1] > 2 * repels  # it waited, and got away
    # r(t) is ten times as sensitive as the risk, which is to 1e-5
    assert np.allclose(found, path.y[0], atol=1e-4)


@pytest.mark.slow
def test_a_start_that_splits():
    """Two Gaussians, Δ = 0.8, t = 40: neurons below a radius of the start shrink, those above it grow.
    Against quantiles of the start, of which 512 know its place to 1/512 of the mass; what hangs on
    that is the jump of Ψ there, below 1."""
    problem = wf.Problem(x=wf.two_gaussians(40, 0.8), neuron=wf.Neuron(RAMPS, output="unit"))
    start = wf.init(problem, w=0.8)
    run = wf.limit(problem, start, [1.0, 40.0], 1e-3)
    assert run.status == "ok" and run.info["error"] <= 1e-3
    flow = wf.GradientFlow(wf.Risk(problem.reduced(), wf.Quadrature(39)), rtol=1e-4)
    other = wf.evolve(flow, start.reduced().points(512), [1.0, 40.0])
    assert np.allclose(run["risk"], other["risk"], rtol=0, atol=2e-3)
    radii = np.asarray(run.final.theta[:, 0])
    assert radii.min() < 0.5 < 2 < radii.max()


@pytest.mark.slow
def test_a_small_part_that_goes_another_way():
    """One neuron in 300 starts above the radius that repels, and grows; the others come to rest at 0. Few
    Gauss nodes would all lie below it. Against panels of width ¼ for the whole start."""
    problem = wf.Problem(x=wf.two_gaussians(40, 0.5), neuron=wf.Neuron(FAILING, output="unit"))
    start, ts = wf.init(problem, w=0.15), [1.0, 5.0]
    run = wf.limit(problem, start, ts, 1e-2)
    nodes = start.reduced().nodes({"r": Panels(tuple(np.linspace(-5, 5, 41)), 4)})
    flow = wf.GradientFlow(wf.Risk(problem.reduced(), wf.Quadrature(24)), rtol=1e-5)
    truth = wf.evolve(flow, nodes, ts)["risk"]
    assert run.status == "ok" and run["risk"][1] < 3.61  # 3.625, if all had come to rest
    assert np.max(np.abs(run["risk"] - truth)) <= min(1e-2, 10 * run.info["error"])


def test_an_equilibrium_is_not_left():
    """w = 0 and a smooth φ: the velocity is exactly 0 for ever, though the equilibrium is not stable."""
    problem = wf.Problem(x=wf.two_gaussians(40, 0.5), neuron=wf.Neuron("square", output="unit"))
    run = wf.limit(problem, wf.init(problem, w=0.0), [0.0, 60.0], 1e-3)
    assert np.allclose(run["risk"], 0.5, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_spike_between_the_nodes_is_seen():
    """exp(−(20s)²) lies between the nodes of every even rule of x: the error must not be called small."""
    target = wf.multi_index(lambda s: jnp.exp(-((20 * s[0]) ** 2)), 1)
    problem = wf.Problem(x=wf.Gaussian(math.inf), target=target, neuron=wf.Neuron("tanh", output="unit"))
    run = wf.limit(problem, wf.init(problem), [0.0], 1e-3, work=5e3)
    exact = 0.5 / math.sqrt(1 + 4 * 400)
    assert abs(run["risk"][0] - exact) <= 10 * run.info["error"]


@pytest.mark.slow
def test_neurons_that_come_to_rest_at_zero():
    """σ with a kink at 0 pulls neurons below a radius to w = 0 in finite time. There f = σ(0) = −2.5, and
    R = ½·½(1.5² + 3.5²) exactly; no neuron leaves again, and the steps do not collapse."""
    problem = wf.Problem(x=wf.two_gaussians(320, 0.5), neuron=wf.Neuron(FAILING, output="unit"))
    run = wf.limit(problem, wf.init(problem, w=0.1), [0.05, 0.1, 1.0, 10.0], 1e-4)
    assert run.status == "ok" and run.info["error"] <= 1e-4
    assert np.allclose(run["risk"][1:], 3.625, rtol=0, atol=1e-9)
    assert float(jnp.max(run.final.theta)) <= 1e-12 <= float(jnp.min(run.final.theta))


def test_penalty_and_probes():
    """Decay λ alone moves θ by e^{−λt}: with a target of 0 the risk only helps; probes follow the flow
    and weigh nothing."""
    problem = wf.Problem(x=wf.Gaussian(20), target=wf.teacher(np.eye(1, 20), a=[0.0], link="erf"),
                         neuron=wf.Neuron("erf"))  # fmt: skip
    start = wf.init(problem, a=wf.laws.Rademacher(1e-6))
    run = wf.limit(problem, start, [0.0, 1.0], 1e-4, penalty=0.5 * wf.SecondMoment(), probes=512)
    weights, theta = np.asarray(run.final.weights), np.asarray(run.final.theta)
    probes = weights == 0
    assert probes.sum() >= 512 and weights.sum() == pytest.approx(1)
    before = np.asarray(run.states[0].theta)
    assert np.allclose(theta[probes], before[probes] * math.exp(-0.5), atol=1e-4)


@pytest.mark.slow
def test_density_of_probes():
    """At t = 0 the density of r is that of (γ/√d)χ_{d−1}, up to the smoothing of the picture."""
    from scipy import stats

    problem = single_index("erf", 10)
    run = wf.limit(problem, wf.init(problem), [0.0], 1e-3, probes=4096)
    grid = np.linspace(0.3, 1.7, 40)
    exact = stats.chi(9, scale=1 / math.sqrt(10)).pdf(grid)
    assert (
        np.max(np.abs(wf.diagnostics.density(run.final, "r", grid, probes=True) - exact)) < 0.04 * exact.max()
    )
    with pytest.raises(ValueError, match="Did you mean 'r'"):
        wf.diagnostics.density(run.final, "rr", grid)


@pytest.mark.slow
def test_single_precision_gets_the_same_digits():
    """The limit computes in double precision whatever JAX is set to, and hands back what JAX is set to."""
    problem = single_index()
    wanted = wf.limit(problem, wf.init(problem), [1.0], 1e-5)
    with jax.enable_x64(False):
        problem = single_index()
        run = wf.limit(problem, wf.init(problem), [1.0], 1e-5)
        assert run.final.theta.dtype == jnp.float32
        assert abs(run["risk"][0] - wanted["risk"][0]) < 1e-7
        assert abs(wf.limit(problem, wf.init(problem), [1.0], 1e-8)["risk"][0] - 0.109047313) < 1e-8


@pytest.mark.slow
def test_tolerance_out_of_reach_is_a_status():
    problem = single_index("erf", 50)
    run = wf.limit(problem, wf.init(problem), [1.0], 1e-9, work=1e5)
    assert run.status == "stalled" and run.info["error"] > 1e-9 and "work" in run.message


OTHER = wf.init(single_index("erf", 9, bias=True, output="unit"), b=1.0).reduced()  # (s, r, b), not (a, s, r)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tol": 1e-16}, "1.0e-13 or more"),
        ({"tol": -1.0}, "tol"),
        ({"ts": [2.0, 1.0]}, "increase strictly"),
        ({"start": 3}, "a law such as"),
        ({"start": wf.init(single_index("erf", 9)).sample(jax.random.key(0), 5)}, "not from neurons drawn"),
        ({"start": wf.init(single_index("erf", 30))}, "R\\^10 .* got one in R\\^31"),
        ({"problem": single_index("erf", 9).reduced(), "start": OTHER}, "got one in R\\^3 for"),
        ({"probes": -3}, "probes"),
        ({"work": 0.0}, "work"),
        ({"penalty": 3}, "SecondMoment"),
        ({"penalty": 0.5 * wf.Moment(lambda theta: theta[-1] ** 4) + wf.SecondMoment()}, "under rotations"),
        (
            {"problem": wf.Problem(x=wf.Gaussian(9), target=lambda x: x[0], neuron=wf.Neuron("erf"))},
            "symmetry",
        ),
    ],
    ids=[
        "below rounding",
        "negative",
        "times",
        "no law",
        "neurons",
        "another dimension",
        "another neuron",
        "probes",
        "work",
        "penalty",
        "no symmetry of the penalty",
        "no symmetry",
    ],
)
def test_bad_input(change, says):
    problem = change.get("problem", single_index("erf", 9))
    start = change.get("start") or wf.init(problem)
    given = {"start": start, "ts": [1.0], "tol": 1e-3} | {k: v for k, v in change.items() if k != "problem"}
    with pytest.raises(ValueError, match=says):
        wf.limit(problem, **given)


# --- kept, stopped and gone on with ----------------------------------------------------------------


def stopped_at(patch, number, solutions):
    """A real Ctrl-C before the solution of this number; returns how many were begun."""
    evolve = solver.evolve

    def counted(*args, **kwargs):
        solutions.append(kwargs["checkpoint"])
        if len(solutions) == number + 1:
            os.kill(os.getpid(), signal.SIGINT)
        return evolve(*args, **kwargs)

    patch.setattr(solver, "evolve", counted)


@pytest.fixture(scope="module")
def undisturbed():
    return wf.limit(**limit_call())


def test_a_limit_tells_its_levels(undisturbed, capfd):
    call = limit_call()
    assert_same_bits(wf.limit(**call, progress=True), undisturbed)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("limit, level ")]
    assert lines and f"risk to {undisturbed.info['error']:.1g} (" in lines[-1]


def test_a_limit_is_saved_and_loaded(undisturbed, tmp_path):
    run = undisturbed
    run.save(tmp_path / "run")
    back = wf.load(tmp_path / "run")
    assert np.array_equal(back.final.theta, run.final.theta) and back.final.neuron == run.final.neuron
    assert back.info["error"] == run.info["error"]


def test_an_interrupted_limit_is_the_best_level_and_goes_on(undisturbed, monkeypatch, tmp_path, capfd):
    call = limit_call()
    kept = call | {"checkpoint": tmp_path}
    total, begun = 0, []
    for number in (1, 3, 1, 1):  # each goes on from the solutions of those before, which it asks for again
        solutions: list = []
        with monkeypatch.context() as patch:
            stopped_at(patch, total + number, solutions)
            run = wf.limit(**kept)
        total, begun = total + number, [*begun, len(solutions)]
        if run.status == "ok":
            break
        assert run.status == "interrupted" and run.message in capfd.readouterr().err
        assert "Stopped by hand" in run.message and "The limit is known" in run.message
        assert np.array_equal(run.t, call["ts"]) and np.isfinite(run["risk"]).all()
        error = run.info["error"]
        assert np.isinf(error) or np.max(np.abs(run["risk"] - undisturbed["risk"])) < error + 1e-3
        assert_same_bits(wf.load(tmp_path), run)
    again = wf.limit(**kept)
    assert len(begun) >= 3  # it was stopped at several levels
    assert_same_bits(again, undisturbed)
    assert again.info["error"] == undisturbed.info["error"]
    assert again.info["resolution"] == undisturbed.info["resolution"]
    assert not (tmp_path / "levels").exists()


def test_a_finished_limit_is_not_solved_again(undisturbed, monkeypatch, tmp_path):
    call = limit_call()
    assert_same_bits(wf.limit(**call, checkpoint=tmp_path), undisturbed)
    monkeypatch.setattr(solver, "evolve", lambda *args, **kwargs: pytest.fail("work was done"))
    assert_same_bits(wf.limit(**call, checkpoint=tmp_path), undisturbed)
    for other, part in [({"tol": 2e-3}, "tolerance"), ({"alpha": 2.0}, "alpha"), ({"ts": [1.0]}, "times")]:
        with pytest.raises(ValueError, match=f"holds another run: other {part}"):
            wf.limit(**call | other, checkpoint=tmp_path)
