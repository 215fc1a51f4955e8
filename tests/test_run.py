"""A run on disk is the run in memory."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from store.cases import CASES, assert_same_bits
from wideflow.problems.neurons import AbstractNeuron
from wideflow.run import Row
from wideflow.store import folder
from wideflow.store import registry as registry_module


def bump(x, theta):
    return theta[0] * jnp.exp(-jnp.sum((x - theta[1:]) ** 2))


def bumps(x, theta):
    return jnp.stack([bump(x, theta), -bump(x, theta)])


def softsign(h):
    return h / (1 + jnp.abs(h))


def tanh(h):  # the name of a known activation, and another function
    return 2 * jnp.tanh(h)


def made(neuron, d=2, n=4, dtype=jnp.float64, alpha=1.5):
    """Particles with weights and a scale of their own."""
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.5, 1.0, n)
    theta = jnp.asarray(rng.normal(size=(n, neuron.size(d))), dtype)
    return wf.Particles(theta, (weights / weights.sum()).astype(dtype), alpha, neuron)


def run_of(state, times=(0.0, 1.0)):
    """A run without an evolution: the same state at some times."""
    rows = [Row(t, {"risk": np.asarray(1.0 - t), "vector": np.arange(3) * t}, state) for t in times]
    return wf.Run(tuple(rows), state, "ok", "", {"steps": 3, "error": np.inf}, {"sources": ["mei2018"]})


STATES = {
    "float64": made(wf.Neuron("erf")),
    "float32": made(wf.Neuron("erf"), dtype=jnp.float32),
    "bias": made(wf.Neuron("relu", bias=True)),
    "outputs": made(wf.Neuron("gelu", outputs=3)),
    "frozen": made(wf.Neuron("tanh", output="frozen")),
    "unit": made(wf.Neuron("tanh", output="unit", bias=True)),
    "options": made(wf.Neuron(wf.activation("leaky_relu", slope=0.2))),
    "degree": made(wf.Neuron(wf.activation("hermite", degree=3))),
    "knots": made(wf.Neuron(wf.activation("piecewise_linear", knots=((-1, -1), (0.5, 2), (1, 1))))),
    "wide": made(wf.Neuron("tanh"), d=30, n=500),
    "one": made(wf.Neuron("tanh"), d=1, n=1),
}
OWN = {
    "activation": (made(wf.Neuron(softsign)), {"softsign": softsign}),
    "kinks": (made(wf.Neuron(wf.types.Activation("abs", jnp.abs, kinks=(0.0,)))), {"abs": jnp.abs}),
    "namesake": (made(wf.Neuron(tanh)), {"tanh": tanh}),
    "neuron": (made(wf.CustomNeuron(bump, 3)), {"bump": bump}),
    "neuron with outputs": (made(wf.CustomNeuron(bumps, 3, outputs=2)), {"bumps": bumps}),
}
X = np.random.default_rng(2).normal(size=(7, 2))


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_what_is_saved_is_what_is_loaded(state, tmp_path):
    run = run_of(state)
    loaded = wf.load(run.save(tmp_path / "run"))
    assert_same_bits(loaded, run)
    assert loaded.final.neuron == state.neuron  # so that nothing is compiled again for it
    d = next(d for d in range(1, 99) if state.neuron.size(d) == state.theta.shape[1])
    x = np.random.default_rng(2).normal(size=(7, d))
    assert np.array_equal(loaded.final(x), state(x))
    assert (loaded.message, loaded.info, loaded.provenance) == (run.message, run.info, run.provenance)


@pytest.mark.parametrize("name", ["bias", "outputs", "unit"])
def test_a_linearised_state_is_loaded_where_it_was(name, tmp_path):
    at = STATES[name]
    state = wf.kernels.Linearisation(at, jax.tree.map(lambda p: p + 0.1, at.parts))
    loaded = wf.load(run_of(state).save(tmp_path / "run"))
    assert_same_bits(loaded, run_of(state))
    assert np.array_equal(loaded.final(X), state(X))


@pytest.mark.parametrize("name", ["float64", "bias", "unit", "one"])
def test_a_notebook_shows_a_run(name):
    page = run_of(STATES[name])._repr_html_()
    assert 'class="wf-player"' in page and "<table" in page and "data:image/svg+xml" in page
    still = run_of(STATES[name], times=(0.0,))._repr_html_()
    assert 'class="wf-player"' not in still


@pytest.mark.parametrize("state, functions", OWN.values(), ids=OWN)
def test_own_functions_come_back_by_name(state, functions, tmp_path):
    path = run_of(state).save(tmp_path / "run")
    loaded = wf.load(path, functions=functions)
    assert_same_bits(loaded, run_of(state))
    assert np.array_equal(loaded.states[0](X), state(X))


@pytest.mark.parametrize("state, functions", OWN.values(), ids=OWN)
def test_without_own_functions_the_numbers_are_there(state, functions, tmp_path):
    (name,) = functions
    loaded = wf.load(run_of(state).save(tmp_path / "run"))
    assert np.array_equal(loaded.final.theta, state.theta)
    with pytest.raises(ValueError, match=f"your own function '{name}'.*functions={{'{name}': {name}}}"):
        loaded.final(X)
    # saved once more, it still asks for the same function
    again = wf.load(loaded.save(tmp_path / "again"), functions=functions)
    assert np.array_equal(again.final(X), state(X))


@pytest.mark.parametrize("state, functions", OWN.values(), ids=OWN)
def test_another_function_of_the_same_name_is_refused(state, functions, tmp_path):
    path = run_of(state).save(tmp_path / "run")
    other = {name: lambda *args: 0.0 for name in functions}
    with pytest.raises(ValueError, match="is not the one the run used"):
        wf.load(path, functions=other)


@pytest.fixture
def registry(monkeypatch):
    """What a test registers is forgotten after it."""
    for table in ("_FUNCTIONS", "_BY_NAME", "_BY_CLASS"):
        monkeypatch.setattr(registry_module, table, dict(getattr(registry_module, table)))


@pytest.mark.parametrize("state, functions", OWN.values(), ids=OWN)
def test_registered_functions_are_found(state, functions, tmp_path, registry):
    """Registered before or after the run was saved, by the name that it was saved under."""
    path = run_of(state).save(tmp_path / "run")
    for name, fn in functions.items():
        assert wf.register(name, fn) is fn
    loaded = wf.load(path)
    assert_same_bits(loaded, run_of(state))
    assert np.array_equal(loaded.states[0](X), state(X))


def test_a_registered_name_is_the_one_in_the_file(tmp_path, registry):
    """Two functions that are both called <lambda>, and a third one under a name that is taken."""
    one, two = (lambda h: jnp.tanh(h) + 1), (lambda h: jnp.tanh(h) - 1)
    wf.register("up", one)
    wf.register("down", two)
    for phi in (one, two):
        state = made(wf.Neuron(phi))
        path = run_of(state).save(tmp_path / "run")
        assert np.array_equal(wf.load(path).final(X), state(X))
    wf.register("down", one)
    with pytest.raises(ValueError, match="'down' that is registered is not the one the run used"):
        wf.load(path)


class Bump(AbstractNeuron):
    """A neuron of a user's: θ₁ exp(−|x − θ₂|²/width)."""

    width: float
    outputs: int = 1

    def size(self, d):
        return 1 + d

    def unpack(self, theta):
        return jnp.swapaxes(theta, -1, -2)

    def pack(self, parts):
        return jnp.swapaxes(parts, -1, -2)

    def features(self, parts, x):
        one = lambda t: t[0] * jnp.exp(-jnp.sum((x - t[1:]) ** 2, axis=1) / self.width)
        return jax.vmap(one, in_axes=-1)(parts)

    def weighted_sum(self, parts, x, weights):
        return weights @ self.features(parts, x)

    def trained(self, parts):
        return True


def test_a_neuron_class_of_ones_own_is_loaded(tmp_path, registry, monkeypatch):
    state = made(Bump(0.5))
    path = run_of(state).save(tmp_path / "run")
    with pytest.raises(
        ValueError, match=r"a type 'Bump' that .* does not know.*wf\.register\('Bump', Bump\)"
    ):
        wf.load(path)
    wf.register("Bump", Bump)
    loaded = wf.load(path)
    assert_same_bits(loaded, run_of(state))
    assert np.array_equal(loaded.final(X), state(X)) and loaded.final.neuron.width == 0.5
    monkeypatch.setattr(Bump, "size", lambda self, d: d + 1)
    with pytest.warns(UserWarning, match="The class 'Bump' has changed since"):
        wf.load(path)


def test_a_class_of_the_librarys_name_is_not_taken_for_it(tmp_path, registry):
    """A user's own `Neuron` that nobody has registered."""
    other = type("Neuron", (Bump,), {"__doc__": "", "__annotations__": {}})
    path = run_of(made(other(0.5))).save(tmp_path / "run")
    with pytest.raises(ValueError, match="a type 'Neuron' that this version does not know"):
        wf.load(path)


def test_what_can_be_registered(registry):
    for bad in (("", bump), (1, bump), ("x", 1), ("Neuron", bump), ("x", int)):
        with pytest.raises(ValueError, match="register"):
            wf.register(*bad)


def test_a_named_function_comes_back_by_its_name(tmp_path, registry):
    """Given as it is, or as `wf.named`; another one under that name is vouched for by the user."""
    state = made(wf.CustomNeuron(wf.named("bump-1", bump), 3))
    path = run_of(state).save(tmp_path / "run")
    for fn in (bump, wf.named("bump-1", bump)):
        loaded = wf.load(path, functions={"bump-1": fn})
        assert np.array_equal(loaded.final(X), state(X))
    wf.register("bump-1", bump)
    assert np.array_equal(wf.load(path).final(X), state(X))


def test_a_run_is_saved_whatever_its_functions_are(tmp_path):
    """A function that no fingerprint can read: without a checkpoint nothing is refused."""
    hidden = np.frompyfunc(lambda v: v, 1, 1)
    fn = lambda x, theta: theta[0] * jnp.sum(x) + hidden(0.0)
    state = made(wf.CustomNeuron(fn, 3))
    loaded = wf.load(run_of(state).save(tmp_path / "run"), functions={"<lambda>": fn})
    assert np.array_equal(loaded.final(X), state(X))


def test_a_run_answers(tmp_path):
    run = run_of(STATES["float64"])
    assert np.array_equal(run.t, [0.0, 1.0])
    assert np.array_equal(run["risk"], [1.0, 0.0]) and run["vector"].shape == (2, 3)
    assert list(run) == run.keys() == ["risk", "vector"] and "risk" in run
    assert len(run.states) == 2
    with pytest.raises(KeyError, match=r"'nope' was not observed; this run has risk, vector\."):
        run["nope"]
    (paper,) = run.citations()
    assert "Montanari" in paper
    assert repr(run) == "Run(run, ok, 2 times, t = 1, risk = 0)"


def test_a_run_without_saved_times(tmp_path):
    empty = wf.Run((), STATES["bias"], "interrupted", "Stopped.")
    loaded = wf.load(empty.save(tmp_path))
    assert_same_bits(loaded, empty)
    assert (loaded.keys(), len(loaded.t), loaded.states) == ([], 0, [])
    assert repr(loaded) == "Run(run, interrupted, 0 times, empty)"
    with pytest.raises(KeyError, match="no saved time yet"):
        loaded["risk"]


def test_a_run_of_an_evolution(tmp_path):
    run = wf.evolve(**CASES["Langevin"].call(3), snapshots=False)
    loaded = wf.load(run.save(tmp_path))
    assert_same_bits(loaded, run)
    assert loaded.states == [] and loaded.info == run.info and loaded.provenance == run.provenance
    assert loaded.provenance["seed"] == [0, 3] and loaded.provenance["dtype"] == "float64"
    assert any("Langevin" in paper for paper in loaded.citations())
    assert repr(loaded).startswith("Run(Langevin, ok, 3 times, t = 1, risk = ")


def test_replicas_are_kept(tmp_path):
    """A leading axis on θ and one risk for each replica."""
    one = STATES["float64"]
    state = jax.tree.map(lambda v: jnp.stack([v, 2 * v]), one)
    run = wf.Run((Row(0.0, {"risk": np.array([1.0, 3.0])}, state),), state)
    loaded = wf.load(run.save(tmp_path))
    assert_same_bits(loaded, run)
    assert "risk = 2" in repr(loaded)


def contents(path):
    return {p.name: p.read_bytes() for p in path.iterdir()}


def test_another_run_is_replaced_only_if_told(tmp_path):
    first, other = run_of(STATES["wide"]), wf.Run((), STATES["bias"])
    first.save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    before = contents(tmp_path)
    changed = replace(first, rows=tuple(replace(row, t=row.t + 1) for row in first.rows))
    for run in (other, changed, replace(first, provenance={"seed": 1})):
        with pytest.raises(ValueError, match=r"holds another run\. .*overwrite=True"):
            run.save(tmp_path)
    assert contents(tmp_path) == before
    assert_same_bits(wf.load(other.save(tmp_path, overwrite=True)), other)
    assert len(list(tmp_path.iterdir())) == 3  # nothing of the first is left; what is not ours stays
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_same_run_may_be_saved_again(tmp_path):
    """As it is, with something added to it, or further on; but what is there must not become less."""
    run = run_of(STATES["wide"])
    part = replace(run, rows=run.rows[:1])
    assert len(run.rows) > 1
    for one in (part, run, run, replace(run, info={"note": 1})):
        assert_same_bits(wf.load(one.save(tmp_path)), one)
    with pytest.raises(ValueError, match="this run at another stage"):
        part.save(tmp_path)


def test_saving_does_not_cost_a_checkpoint(tmp_path):
    """The folder of a checkpoint holds more than a run: what is needed to go on."""
    call = CASES["GradientDescent"].call(3)
    run = wf.evolve(**call, checkpoint=tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    run.save(tmp_path)  # it is there already
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    with pytest.raises(ValueError, match="holds another run"):
        run_of(STATES["bias"]).save(tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_digits_that_jax_cannot_hold_are_told(tmp_path):
    run_of(STATES["float64"]).save(tmp_path)
    with jax.enable_x64(False), pytest.warns(UserWarning, match="holds float64, but JAX is set to round"):
        loaded = wf.load(tmp_path)
    assert loaded.final.dtype == jnp.float32
    assert loaded["risk"].dtype == np.float64  # observations are NumPy's, and whole


def test_there_is_nothing_to_load(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no saved run \(manifest\.json is not there\)"):
        wf.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        run_of(STATES["bias"]).save(tmp_path / "file")


def test_no_code_and_no_path_is_written(tmp_path):
    """Names and hashes of functions only: no import path, no source."""
    run_of(OWN["neuron"][0]).save(tmp_path)
    text = (tmp_path / folder.MANIFEST).read_text()
    assert '"function": "bump"' in text
    assert "test_run" not in text and "jnp" not in text and "wideflow" not in text
