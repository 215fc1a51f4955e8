"""The velocity kernel: chunks and blocks change rounding and nothing else, and hold nothing large."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from wideflow.functionals import engine
from wideflow.states import chunks
from wideflow.states import particles as states


def fresh(name="tanh", **options):
    """A neuron that no compiled program has met, so that constants changed by a test take effect."""
    fn = {"tanh": lambda h: jnp.tanh(h), "relu": lambda h: jnp.where(h > 0, h, 0.0)}[name]
    return wf.Neuron(wf.types.Activation(name, fn), **options)


NEURONS = {
    "plain": lambda: fresh(),
    "bias, three outputs": lambda: fresh("relu", bias=True, outputs=3),
    "unit": lambda: fresh(output="unit", bias=True),
    "frozen": lambda: fresh(output="frozen"),
    "custom": lambda: wf.CustomNeuron(lambda x, t: jnp.sin(x @ t[:3]) * t[3], 4),
}


def small_chunks(monkeypatch):
    monkeypatch.setattr(chunks, "_MOST_ROWS", 8)


def small_blocks(monkeypatch):
    monkeypatch.setattr(chunks, "_MOST_HIDDEN", 1)
    for module in (engine, states):
        monkeypatch.setattr(module, "NEURONS", 4)
    monkeypatch.setattr(engine, "_BLOCK_ROWS", 16)


def problem_data(neuron, n, m, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(n, neuron.size(3)))
    p = wf.Particles(theta, rng.dirichlet(np.ones(n)), 1.7, neuron)
    y = rng.normal(size=(m, neuron.outputs) if neuron.outputs > 1 else m)
    return p, wf.types.Nodes(rng.normal(size=(m, 3)), y, rng.dirichlet(np.ones(m)))


def answers(neuron, n, m):
    p, data = problem_data(neuron, n, m)
    risk, drift = jax.jit(lambda p, data: engine.sweep(p, data, wf.losses.Squared()))(p, data)
    return risk, neuron.pack(drift), p(data.x)


SIZES = [("plain", (1, 1)), ("plain", (13, 8)), *((name, (7, 37)) for name in NEURONS)]


@pytest.mark.parametrize(("name", "sizes"), SIZES, ids=[f"{name} {sizes}" for name, sizes in SIZES])
def test_chunks_and_blocks_agree(name, sizes, monkeypatch):
    """Ragged rows, ragged blocks, one particle, one row."""
    whole = answers(NEURONS[name](), *sizes)
    small_chunks(monkeypatch)
    by_chunks = answers(NEURONS[name](), *sizes)
    small_blocks(monkeypatch)
    assert chunks.is_wide(sizes[0], float)
    by_blocks = answers(NEURONS[name](), *sizes)
    for given in (by_chunks, by_blocks):
        for one, other in zip(given, whole, strict=True):
            # another order of summation: a few units of the last place of the largest term
            assert np.allclose(one, other, rtol=1e-13, atol=1e-14)


def test_chunks_are_really_small(monkeypatch):
    """The tests above would pass as well if nothing were cut."""
    small_chunks(monkeypatch)
    assert chunks.chunk_rows(37, 7, 3, float) == 8
    assert chunks.chunked(jnp.zeros((37, 3)), 8).shape == (5, 8, 3)
    assert chunks.in_blocks(jnp.arange(7.0), 4).tolist() == [[0, 1, 2, 3], [4, 5, 6, 6]]
    assert chunks.joined(chunks.in_blocks(jnp.arange(14.0).reshape(2, 7), 4), 7).shape == (2, 7)


@pytest.mark.parametrize("cut", [small_chunks, small_blocks])
def test_padding_never_meets_a_neuron_where_it_is_not_defined(cut, monkeypatch):
    """⟨θ, x/|x|⟩ has no value at x = 0, nor √|θ| a derivative at θ = 0: neither is ever asked for."""
    cut(monkeypatch)
    neuron = wf.CustomNeuron(lambda x, t: t[:3] @ x / jnp.linalg.norm(x) * jnp.sqrt(jnp.abs(t[3])), 4)
    for given in answers(neuron, 7, 37):
        assert np.all(np.isfinite(given))


def test_psi_v_and_u_in_chunks(monkeypatch):
    def all_of(neuron):
        p, data = problem_data(neuron, 6, 37)
        problem = wf.Problem(x=wf.Dataset(data.x, data.y, data.weights), neuron=neuron)
        risk, theta = wf.Risk(problem), p.theta
        return risk.psi(theta, p), risk.V(theta), risk.U(theta, theta[:2])

    whole = all_of(fresh(bias=True))
    small_chunks(monkeypatch)
    for one, other in zip(all_of(fresh(bias=True)), whole, strict=True):
        assert np.allclose(one, other, rtol=1e-13, atol=1e-14)  # another order of summation


def test_equal_particles_are_one_particle():
    """n copies, however weighted, are the same measure, with the same velocity each; the closed form,
    whose kernel has a kink on the diagonal, included."""
    problem = wf.Problem(x=wf.Gaussian(2), target=wf.single_index("relu"), neuron=wf.Neuron("relu"))
    theta = np.array([[0.8, 0.5, -0.4]])
    one = wf.Particles(theta, neuron=problem.neuron)
    many = wf.Particles(np.repeat(theta, 5, axis=0), [0.1, 0.2, 0.0, 0.3, 0.4], neuron=problem.neuron)
    for way in (wf.ClosedForm(), wf.Sample(50)):
        risk = wf.Risk(problem, way)
        assert float(risk.value(many)) == pytest.approx(float(risk.value(one)), rel=1e-13)
        assert np.allclose(risk.velocity(many), risk.velocity(one), rtol=1e-13)


# --- dtypes --------------------------------------------------------------------------------------


def dtype_of(ask, p):
    """The type of an answer, traced and not computed."""
    return jax.eval_shape(lambda p: ask(p), p).dtype


@pytest.mark.parametrize("way", [wf.ClosedForm(), wf.Quadrature(33), wf.Sample(200)], ids=str)
def test_float32_stays_float32(way):
    """With x64 on, and float64 data, targets and noise behind it."""
    problem = wf.Problem(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=wf.Neuron("erf"), noise=0.3)
    risk = wf.Risk(problem, way)
    double = wf.init(problem).sample(jax.random.key(0), 5, alpha=2.0)
    p = wf.init(problem).sample(jax.random.key(0), 5, alpha=2.0, dtype=jnp.float32)
    total = 0.5 * risk + 0.1 * wf.SecondMoment()
    answers = {
        "prediction": lambda p: p(np.ones((3, 2))),
        "value": total.value,
        "energy": total.energy,
        "velocity": total.velocity,
        "psi": lambda p: risk.psi(p.theta, p),
        "V": lambda p: risk.V(p.theta),
        "U": lambda p: risk.U(p.theta, p.theta),
    }
    for name, ask in answers.items():
        assert dtype_of(ask, p) == jnp.float32, name
    if isinstance(way, wf.Sample):
        single = wf.Particles(np.asarray(double.theta, np.float32), alpha=2.0, neuron=problem.neuron)
        # 200 rows and 5 neurons in single precision: a hundred roundings of 6e-8
        assert float(total.value(single)) == pytest.approx(float(total.value(double)), rel=1e-5)
        assert np.allclose(total.velocity(single), total.velocity(double), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", ["huber", "logistic", "cross_entropy"])
def test_float32_stays_float32_for_every_loss(loss):
    rng = np.random.default_rng(0)
    y = {"huber": rng.normal(size=40), "logistic": rng.choice([-1, 1], 40)}.get(loss, rng.integers(0, 3, 40))
    outputs = 3 if loss == "cross_entropy" else 1
    problem = wf.Problem(
        x=wf.Dataset(rng.normal(size=(40, 2)), y), neuron=wf.Neuron("tanh", outputs=outputs), loss=loss
    )
    p = wf.init(problem).sample(jax.random.key(0), 4, dtype=jnp.float32)
    risk = wf.Risk(problem)
    for ask in (risk.value, risk.velocity, lambda p: risk.psi(p.theta, p)):
        assert dtype_of(ask, p) == jnp.float32


def test_mixture_in_float32():
    problem = wf.Problem(x=wf.two_gaussians(2, 0.3), neuron=wf.Neuron("erf"))
    p = wf.init(problem).sample(jax.random.key(0), 4, dtype=jnp.float32)
    risk = wf.Risk(problem)
    for ask in (risk.value, risk.velocity, lambda p: risk.V(p.theta)):
        assert dtype_of(ask, p) == jnp.float32


# --- memory --------------------------------------------------------------------------------------


def temporary(fn, *args):
    return jax.jit(lambda *args: fn(*args)).lower(*args).compile().memory_analysis().temp_size_in_bytes


def test_nothing_of_size_rows_times_neurons_is_held():
    m = n = 4096
    problem = wf.Problem(x=wf.Gaussian(4), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    p = wf.init(problem).sample(jax.random.key(0), n)
    sample, pairs = wf.Risk(problem, wf.Sample(m)), wf.Risk(problem, wf.ClosedForm())
    whole = m * n * 8
    programs = {
        "velocity": sample.drift,
        "value": sample.value,
        "psi": lambda p: sample.psi(p.theta, p),
        "prediction": lambda p: p(sample.ways[-1].nodes.x),
        "velocity by pairs": pairs.drift,
        "value by pairs": pairs.value,
    }
    # a chunk of the hidden layer is 8 MB, a block of pairs 4 MB, of 134 MB; derivatives hold a few of them
    for name, program in programs.items():
        assert temporary(program, p) < 0.25 * whole, name


def test_a_wide_network_is_held_in_blocks():
    """200,000 neurons and 1,000 rows: compiled, not run. A block is 8192 neurons × 256 rows."""
    n, m = 200_000, 1000
    neuron = wf.Neuron("tanh")
    assert chunks.is_wide(n, float)
    p = eqx.filter_eval_shape(lambda: wf.Particles(jnp.ones((n, 4)), neuron=neuron))
    data = eqx.filter_eval_shape(lambda: wf.types.Nodes(jnp.ones((m, 3)), jnp.ones(m), jnp.ones(m) / m))
    velocity = lambda p, data: engine.sweep(p, data, wf.losses.Squared())[1]
    arrays, static = eqx.partition((p, data), lambda v: isinstance(v, jax.ShapeDtypeStruct))
    lowered = lambda arrays: velocity(*eqx.combine(arrays, static))
    assert temporary(lowered, arrays) < 0.1 * n * m * 8


# --- compilation ---------------------------------------------------------------------------------


class Traces:
    """An activation that counts how often it is traced."""

    def __init__(self):
        self.count = 0

        def fn(h):
            self.count += 1
            return jax.lax.erf(h)

        self.neuron = wf.Neuron(wf.types.Activation("counted", fn))

    def during(self, ask):
        before = self.count
        jax.block_until_ready(ask())
        return self.count - before


@pytest.mark.parametrize("expectation", [wf.Quadrature(9), wf.Sample(50)], ids=str)
def test_a_second_call_does_not_compile(expectation):
    """Nor does it for other particles, another α, another noise."""
    traces = Traces()
    problems = [
        wf.Problem(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=traces.neuron, noise=noise)
        for noise in (0.1, 0.2)
    ]
    first, second = (wf.Risk(problem, expectation) for problem in problems)
    starts = [wf.init(problems[0]).sample(jax.random.key(i), 5, alpha=1.0 + i) for i in range(2)]
    asked = {
        "value": lambda risk, p: risk.value(p),
        "velocity": lambda risk, p: risk.velocity(p),
        "sum": lambda risk, p: (risk + float(p.alpha) * wf.SecondMoment()).velocity(p),
        "psi": lambda risk, p: risk.psi(p.theta, p),
        "V": lambda risk, p: risk.V(p.theta),
        "U": lambda risk, p: risk.U(p.theta, p.theta),
        "prediction": lambda risk, p: p(jnp.ones((3, 2))),
        "error": lambda risk, p: risk.error(p),
    }
    for name, ask in asked.items():
        once = traces.during(lambda ask=ask: ask(first, starts[0]))
        assert once > 0 or name in ("error", "V"), name  # the counter counts
        assert traces.during(lambda ask=ask: ask(second, starts[1])) == 0, name


def test_closed_forms_do_not_compile_twice():
    compiled = []
    listen = lambda name, *_, **__: compiled.append(name) if "backend_compile" in name else None
    jax.monitoring.register_event_duration_secs_listener(listen)
    law = wf.Gaussian(2)
    risks = [
        wf.Risk(wf.Problem(x=law, target=wf.single_index("erf"), neuron=wf.Neuron("erf"), noise=s))
        for s in (0.1, 0.2)
    ]
    starts = [wf.init(risks[0].problem).sample(jax.random.key(i), 6, alpha=1.0 + i) for i in range(2)]
    for risk, p in zip(risks, starts, strict=True):
        before = len(compiled)
        jax.block_until_ready((risk.value(p), risk.velocity(p), risk.psi(p.theta, p), risk.V(p.theta)))
        fresh = len(compiled) - before
    assert len(compiled) > 0 and fresh == 0


def test_another_step_does_not_compile():
    traces = Traces()
    problem = wf.Problem(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=traces.neuron)
    risk = wf.Risk(problem, wf.Sample(16))
    start = wf.init(problem).sample(jax.random.key(0), 3)
    run = lambda step: wf.evolve(wf.GradientDescent(risk, step), start, [0.0, 1.0]).final.theta
    assert traces.during(lambda: run(0.1)) > 0
    assert traces.during(lambda: run(0.05)) == 0


# --- prediction ----------------------------------------------------------------------------------


def test_prediction_is_the_dense_sum():
    rng = np.random.default_rng(0)
    theta, weights, x = rng.normal(size=(6, 6)), rng.dirichlet(np.ones(6)), rng.normal(size=(11, 3))
    p = wf.Particles(theta, weights, 1.5, wf.Neuron("tanh", outputs=2, bias=True))
    hidden = np.tanh(x @ theta[:, 2:5].T + theta[:, 5])
    assert np.allclose(p(x), 1.5 * hidden @ (weights[:, None] * theta[:, :2]), rtol=1e-13, atol=1e-15)
    assert p(x[:1]).shape == (1, 2) and np.allclose(p(x[:1]), p(x)[:1], rtol=1e-13)
    assert p(np.zeros((0, 3))).shape == (0, 2)


def test_prediction_on_many_rows_in_chunks():
    """Rows beyond one chunk of 1,024: the other layout of the hidden layer."""
    rng = np.random.default_rng(0)
    theta, x = rng.normal(size=(4, 3)), rng.normal(size=(2500, 2))
    p = wf.Particles(theta, neuron=wf.Neuron("relu"))
    assert np.allclose(p(x), np.maximum(x @ theta[:, 1:].T, 0) @ theta[:, 0] / 4, rtol=1e-13, atol=1e-15)
