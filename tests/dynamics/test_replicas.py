"""Every dynamics as a pure function, and as many systems at once: one table of contracts."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wideflow as wf
from exact_cases import erf_problem
from wideflow.dynamics.replicated import Replicated
from wideflow.states import replicas
from wideflow.states.replicas import group_size, in_groups

KEY, REPLICAS, TS = jax.random.key(5), 3, (0.0, 0.125, 0.5)
STEP = 2.0**-5
# A replica runs through other compiled code than a single run (sums in another order), over 16 steps: some
# thousand roundings of the last digit.
ROUNDING = {"float64": 1e-12, "float32": 1e-5}


@cache
def law() -> wf.Risk:
    return wf.Risk(erf_problem(3))


@cache
def data() -> wf.Risk:
    rng = np.random.default_rng(0)
    return wf.Risk(
        wf.Problem(x=wf.Dataset(rng.normal(size=(16, 3)), rng.normal(size=16)), neuron=wf.Neuron("tanh"))
    )


@cache
def line() -> wf.Risk:
    target, neuron = wf.single_index("identity"), wf.Neuron("identity", output="unit")
    return wf.Risk(wf.Problem(x=wf.Gaussian(1), target=target, neuron=neuron))


def cloud(risk: Callable[[], wf.Risk], n: int = 5) -> Callable[..., Any]:
    return lambda key, **many: wf.init(risk().problem).sample(key, n, **many)


def density(key, replicas=None):
    """Densities with means that differ from replica to replica."""
    one = lambda k: wf.on_grid(
        wf.init(line().problem, w=wf.laws.Normal(float(jax.random.uniform(k)), 0.5)), -4.0, 4.0, 24
    )
    if replicas is None:
        return one(key)
    return wf.stack([one(jax.random.fold_in(key, r)) for r in range(replicas)])


def network(key, **many):
    return wf.MLP(3, depth=2, activation="tanh").sample(key, 8, "mup", **many)


@dataclass(frozen=True)
class Case:
    make: Callable[[], Any]
    start: Callable[..., Any]


CASES = {
    "GradientFlow": Case(lambda: wf.GradientFlow(law()), cloud(law)),
    "GradientDescent": Case(lambda: wf.GradientDescent(law(), STEP), cloud(law)),
    "SGD": Case(lambda: wf.SGD(law(), STEP), cloud(law)),
    "SGD on data": Case(lambda: wf.SGD(data(), STEP, batch=4), cloud(data)),
    "SGD, one pass": Case(lambda: wf.SGD(data(), STEP, one_pass=True), cloud(data)),
    "SGD, network": Case(lambda: wf.SGD(data(), STEP, batch=4), network),
    "Langevin": Case(lambda: wf.Langevin(wf.FreeEnergy(law(), beta=50.0, decay=0.1), STEP), cloud(law)),
    "Adam": Case(lambda: wf.Adam(data(), STEP, batch=4), cloud(data)),
    "Optax": Case(lambda: wf.Optax(data(), _MOMENTUM, STEP), cloud(data)),
    "Linearised": Case(lambda: wf.Linearised(wf.SGD(data(), STEP)), cloud(data)),
    "Linearised flow": Case(lambda: wf.Linearised(data()), cloud(data)),
    "KernelFlow": Case(lambda: wf.KernelFlow(data()), cloud(data)),
    "GridFlow": Case(lambda: wf.GridFlow(wf.FreeEnergy(line(), beta=8.0), tol=1e-4), density),
    "GridFlow, no noise": Case(lambda: wf.GridFlow(line(), tol=1e-3), density),
    "JKO": Case(lambda: wf.JKO(data(), 0.125), cloud(data)),
    "JKO, splitting": Case(lambda: wf.JKO(data(), 0.125, beta=50.0), cloud(data)),
    "JKO, quantiles": Case(lambda: wf.JKO(line(), 0.125, beta=8.0), cloud(line)),
    "JKO, grid": Case(lambda: wf.JKO(line(), 0.125, beta=2.0), density),
    "FisherRao": Case(lambda: wf.FisherRao(data(), STEP), cloud(data)),
    "FisherRao, grid": Case(lambda: wf.FisherRao(wf.FreeEnergy(line(), beta=8.0), STEP), density),
    "WassersteinFisherRao": Case(lambda: wf.WassersteinFisherRao(data(), STEP), cloud(data)),
    "BirthDeath": Case(lambda: wf.BirthDeath(data(), STEP, reaction=9.0, beta=50.0), cloud(data)),
}
_MOMENTUM = optax.sgd(STEP, momentum=0.9)
every = pytest.mark.parametrize("name", CASES)


@cache
def replicated(name: str) -> wf.Run:
    case = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # JKO on a coarse grid says that it blurs
        return wf.evolve(case.make(), case.start(KEY, replicas=REPLICAS), TS, key=KEY)


def leaves(state):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state)]


@every
@pytest.mark.filterwarnings("ignore:JKO blurs")
def test_a_replica_is_the_single_run(name):
    """Replica r starts from `sample(fold_in(key, r))` and draws with the key `fold_in(key, r)`."""
    case, many = CASES[name], replicated(name)
    assert many.status == "ok" and many["risk"].shape == (len(TS), REPLICAS)
    r, key = REPLICAS - 1, jax.random.fold_in(KEY, REPLICAS - 1)
    one, mine = wf.evolve(case.make(), case.start(key), TS, key=key), many.replica(r)
    assert np.array_equal(mine.t, one.t) and mine.status == one.status
    for name in one:
        assert np.allclose(mine[name], one[name], rtol=ROUNDING["float64"], atol=1e-13)
    for ours, theirs in zip(leaves(mine.final), leaves(one.final), strict=True):
        assert np.allclose(ours, theirs, rtol=0, atol=1e-11)  # risks are means, coordinates are not
    assert not np.allclose(many["risk"][-1, 0], many["risk"][-1, 1], rtol=1e-6)  # they differ


@every
@pytest.mark.filterwarnings("ignore:JKO blurs")
def test_advance_is_pure(name):
    """`jax.jit` and `jax.vmap` go through `init`, `advance` and `read`; the info is arrays."""
    case = CASES[name]
    dynamics, start = case.make(), case.start(KEY)

    def end(state, key, t):
        carry, info = dynamics.advance(dynamics.init(state, key, TS), t, 1000)
        return dynamics.read(carry, t), info

    state, info = end(start, KEY, 0.5)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(info))
    compiled, _ = jax.jit(end)(start, KEY, 0.5)
    for ours, theirs in zip(leaves(compiled), leaves(state), strict=True):
        assert np.allclose(ours, theirs, rtol=0, atol=1e-11)  # rounding of 16 steps
    many = jax.vmap(lambda key: end(start, key, 0.5)[1].reached)(jax.random.split(KEY, 2))
    assert many.shape == (2,) and many.all()


@every
@pytest.mark.filterwarnings("ignore:JKO blurs")
def test_replicas_do_not_recompile(name):
    replicated(name)
    case, compiled = CASES[name], []
    start = case.start(KEY, replicas=REPLICAS)
    listener = lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        wf.evolve(case.make(), start, (0.0, 0.25, 0.5), key=jax.random.fold_in(KEY, 9))
    finally:
        jax.monitoring.clear_event_listeners()
    assert compiled == []


@every
@pytest.mark.filterwarnings("ignore:JKO blurs")
def test_replicas_resume_to_the_same_bits(name, tmp_path):
    case, whole = CASES[name], replicated(name)
    seen = []

    def stop(t, state):  # Ctrl-C while it looks at the second saved time
        if not seen and t > 0:
            seen.append(t)
            raise KeyboardInterrupt
        return jnp.zeros(())

    call = lambda: wf.evolve(
        case.make(),
        case.start(KEY, replicas=REPLICAS),
        TS,
        key=KEY,
        observe={"stop": wf.named("stop", stop)},
        checkpoint=wf.Checkpoint(tmp_path, every=0),
    )
    assert call().status == "interrupted"
    resumed = call()
    assert resumed.status == "ok" and resumed.replicas == REPLICAS
    assert whole["risk"].tobytes() == resumed["risk"].tobytes()
    for ours, theirs in zip(leaves(whole.final), leaves(wf.load(tmp_path).final), strict=True):
        assert ours.tobytes() == theirs.tobytes()


def test_replicas_of_a_sample_are_samples():
    rho0 = wf.init(erf_problem(4))
    many = rho0.sample(KEY, 6, replicas=5)
    assert many.replicas == 5 and many.theta.shape == (5, 6, 5)
    x = jnp.ones((2, 4))
    assert many(x).shape == (5, 2)
    for r in range(5):
        one = rho0.sample(jax.random.fold_in(KEY, r), 6)
        assert np.array_equal(many.replica(r).theta, one.theta)
        # one dot product, of six terms
        assert np.allclose(many(x)[r], one(x), rtol=1e-14, atol=1e-15)


def test_a_replica_is_the_single_run_in_float32():
    case, r = CASES["SGD on data"], REPLICAS - 1
    key = jax.random.fold_in(KEY, r)
    many = wf.evolve(case.make(), case.start(KEY, replicas=REPLICAS, dtype=jnp.float32), TS, key=KEY)
    one = wf.evolve(case.make(), case.start(key, dtype=jnp.float32), TS, key=key)
    assert many.final.theta.dtype == np.float32
    assert np.allclose(many["risk"][:, r], one["risk"], rtol=ROUNDING["float32"])
    assert np.allclose(many.replica(r).final.theta, one.final.theta, rtol=0, atol=ROUNDING["float32"])


def test_keys_of_replicas_may_be_given():
    start = wf.init(erf_problem(3)).sample(KEY, 5, replicas=REPLICAS)
    keys = jax.vmap(lambda r: jax.random.fold_in(KEY, r))(jnp.arange(REPLICAS))
    one, other = (wf.evolve(wf.SGD(law(), STEP), start, TS, key=key) for key in (KEY, keys))
    assert one["risk"].tobytes() == other["risk"].tobytes()
    with pytest.raises(ValueError, match="3 replicas take one key, or 3 of them"):
        wf.evolve(wf.SGD(law(), STEP), start, TS, key=keys[:2])
    with pytest.raises(ValueError, match="this state is a single one"):
        wf.evolve(wf.SGD(law(), STEP), start.replica(0), TS, key=keys)


def test_one_diverging_replica_does_not_spread():
    """Replica 1 starts so far out that its squares overflow; the others do not notice."""
    problem = wf.Problem(x=wf.Gaussian(2), target=wf.single_index("identity"), neuron=wf.Neuron("square"))
    risk, start = wf.Risk(problem, wf.Quadrature(6)), wf.init(problem, a=0.1, w=0.1)
    calm = start.sample(KEY, 4, replicas=3)
    theta = np.asarray(calm.theta).copy()
    theta[1] *= 1e6
    wild = wf.Particles(theta, neuron=problem.neuron)
    with pytest.warns(UserWarning, match="1 of 3 replicas diverged"):
        run = wf.evolve(wf.GradientDescent(risk, 0.01), wild, [0.0, 0.1, 0.2], key=KEY)
    assert run.status == "diverged" and "1 of 3 replicas diverged (1)" in run.message
    assert np.isnan(run["risk"][1:, 1]).all() and np.isfinite(run["risk"][:, [0, 2]]).all()
    assert run.replica(1).status == "diverged" and len(run.replica(1).t) == 1
    assert run.replica(0).status == "ok" and len(run.replica(0).t) == 3
    alone = wf.evolve(wf.GradientDescent(risk, 0.01), calm, [0.0, 0.1, 0.2], key=KEY)
    assert np.array_equal(alone["risk"][:, [0, 2]], run["risk"][:, [0, 2]])
    assert np.isfinite(run.final.theta).all()  # of replica 1 the last state that was whole


def test_observers_that_cannot_be_traced_see_one_replica_after_the_other():
    start = wf.init(erf_problem(3)).sample(KEY, 5, replicas=REPLICAS)
    plain = lambda t, state: float(np.asarray(state.theta).max())
    traced = lambda t, state: state.theta.max()
    run = wf.evolve(wf.SGD(law(), STEP), start, TS, key=KEY, observe={"plain": plain, "traced": traced})
    assert run["plain"].shape == (len(TS), REPLICAS)
    assert np.array_equal(run["plain"], run["traced"])


def test_gradient_of_a_run_in_the_scale_of_its_start_and_in_alpha():
    """d(risk at the end)/d(scale, α) by `jax.grad` against central differences of second order."""
    problem = erf_problem(3)
    risk, law_ = wf.Risk(problem), wf.init(problem)
    theta = law_.sample(KEY, 6).theta
    dynamics = wf.SGD(risk, 0.05, batch=2)

    def end(scale, alpha):
        start = wf.Particles(scale * theta, alpha=alpha, neuron=problem.neuron)
        carry, _ = dynamics.advance(dynamics.init(start, KEY, None), 0.4)
        return risk.value(dynamics.read(carry, 0.4))

    ours = jax.grad(end, argnums=(0, 1))(1.3, 2.0)
    h = 1e-5  # differences err by h² f''' and by rounding/h, 1e-10 each
    theirs = [
        (end(1.3 + h, 2.0) - end(1.3 - h, 2.0)) / (2 * h),
        (end(1.3, 2.0 + h) - end(1.3, 2.0 - h)) / (2 * h),
    ]
    assert np.allclose(ours, theirs, rtol=1e-7, atol=1e-9)
    assert np.allclose(jax.jit(jax.grad(end))(1.3, 2.0), ours[0], rtol=1e-10)  # rounding of eight steps


def test_gradient_in_the_scales_of_a_law_and_of_the_noise():
    """The law of the start, and β(t), made inside of the trace; central differences as above."""
    problem, risk = law().problem, law()

    def end(scale, beta):
        start = wf.init(problem, a=scale, w=0.7).sample(KEY, 3)
        dynamics = wf.Langevin(risk, 0.1, beta=wf.Annealing(beta, 50.0, over=0.2))
        return risk.value(dynamics.advance(dynamics.init(start, KEY), 0.3)[0].state)

    ours, h = jax.jit(jax.grad(end, argnums=(0, 1)))(1.3, 9.0), 1e-4
    theirs = [
        (end(1.3 + h, 9.0) - end(1.3 - h, 9.0)) / (2 * h),
        (end(1.3, 9.0 + h) - end(1.3, 9.0 - h)) / (2 * h),
    ]
    # differences err by h² times a third derivative of order 1, and by rounding/h, 1e-12
    assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-8)
    many = jax.vmap(lambda scale: wf.init(problem, w=scale).sample(KEY, 2, replicas=2).theta)(jnp.ones(3))
    alone = wf.init(problem).sample(KEY, 2, replicas=2).theta
    assert np.allclose(many[0], alone, rtol=1e-15)  # one product, in another program


def test_a_traced_step():
    """vmap over step sizes, and the derivative of the end in the step by forward mode."""
    risk, start = law(), wf.init(law().problem).sample(KEY, 5)

    def end(step):
        dynamics = wf.GradientDescent(risk, step)
        return risk.value(dynamics.advance(dynamics.init(start, KEY, None), 0.5)[0].state)

    steps = jnp.array([0.05, 0.1, 0.125])
    alone = [wf.evolve(wf.GradientDescent(risk, float(s)), start, [0.5])["risk"][-1] for s in steps]
    assert np.allclose(jax.vmap(end)(steps), alone, rtol=1e-12)  # rounding of ten steps
    slope = jax.jvp(end, (0.1,), (1.0,))[1]
    assert np.isfinite(slope) and slope != 0


def test_groups_of_replicas_move_as_all_at_once():
    """Replicas in groups of two, and all together: the same up to the rounding of other compiled code, which
    the steps of the flow carry on as times (its own tolerance is 1e-6)."""
    flow, start = wf.GradientFlow(law()), cloud(law)(KEY, replicas=4)
    for dynamics, state in ((flow, start), (wf.SGD(law(), STEP), start)):
        carry = Replicated(dynamics).init(state, KEY, None)
        both = [
            jax.jit(
                lambda carry, dynamics=dynamics, size=size: in_groups(
                    lambda one: dynamics.advance_to(one, dynamics.target(0.5), jnp.asarray(100)), carry, size
                )
            )(carry)
            for size in (4, 2)
        ]
        (all_at_once, info), (grouped, other) = both
        assert jax.tree.map(jnp.shape, grouped) == jax.tree.map(jnp.shape, all_at_once)
        np.testing.assert_allclose(
            grouped.state.theta, all_at_once.state.theta, rtol=0, atol=100 * ROUNDING["float64"]
        )
        np.testing.assert_array_equal(info.steps, other.steps)


def test_a_share_for_each_core_moves_as_all_at_once(monkeypatch):
    """Five replicas on two cores, three on each, one of them twice: as in one program up to the rounding of
    other compiled code. Side by side, which begins with the second call, to the bits of one after the
    other."""
    start = cloud(law)(KEY, replicas=5)
    # the control of the steps divides roundings by its tolerance, 1e-8
    for dynamics, apart in ((wf.GradientFlow(law()), 1e-8), (wf.SGD(law(), STEP), ROUNDING["float64"])):
        many = Replicated(dynamics)
        carry = many.init(start, KEY, None)
        together, info = many.advance(carry, 0.5, 100)
        with monkeypatch.context() as patch:
            patch.setattr(replicas, "_CACHE", 0)
            patch.setattr(replicas, "cores", lambda: 2)
            assert replicas.shares(carry) == ((0, 2), 3)
            in_turn, side_by_side = (many.advance(carry, 0.5, 100) for _ in range(2))
        jax.tree.map(np.testing.assert_array_equal, *_numbers(in_turn, side_by_side))
        theta = side_by_side[0].state.theta
        np.testing.assert_allclose(theta, together.state.theta, rtol=0, atol=apart)
        np.testing.assert_array_equal(side_by_side[1].steps, info.steps)


def _numbers(*trees):
    """Keys as numbers, which NumPy can compare."""
    data = lambda leaf: jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
    return [jax.tree.map(data, eqx.filter(tree, eqx.is_array)) for tree in trees]


@pytest.mark.parametrize(
    ("replicas", "n", "size"),
    [(64, 1024, 4), (8, 1024, 8), (61, 1024, 61), (4, 40_000, 4)],
    ids=["cut", "small", "prime", "too wide to be two in a group"],
)
def test_how_many_replicas_move_together(replicas, n, size):
    """1024 neurons in R^4 with their weights are 41 kB in float64, of which 2¹⁸ bytes hold 6: 4 divides
    64."""
    state = wf.Particles(np.zeros((replicas, n, 4)), neuron=wf.Neuron("erf"))
    assert group_size(state) == size
