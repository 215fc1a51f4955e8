"""Behind a right hash: an edited manifest or array loads as the same run, or is a DamagedError.

An edit that makes another run out of one (another finite number, another activation) with all its hashes
right *is* another run; here are those that break what belongs together."""

import copy
import hashlib
import io
import json
import random
import re
import shutil
import zipfile
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import wideflow as wf
from loop_cases import small
from store.cases import assert_same_bits
from store.edits import edited, variants
from wideflow.run import Row
from wideflow.store import folder, registry


def run_of(state):
    rows = [Row(t, {"risk": np.asarray(1.0 - t), "vector": np.arange(3) * t}, state) for t in (0.0, 0.5, 1.0)]
    return wf.Run(tuple(rows), state, "ok", "", {"steps": 3, "error": np.inf}, {"sources": ["mei2018"]})


def particles(neuron, d=2, n=3):
    theta = np.random.default_rng(0).normal(size=(n, neuron.size(d)))
    return wf.Particles(theta, neuron=neuron)


def networks():
    key, phi = jax.random.key(0), wf.activation("leaky_relu", slope=0.2)
    yield "mlp", wf.MLP(2, 2, phi, outputs=2, bias=0.1).sample(key, 3, "mup", centred=True)
    yield "cnn", wf.CNN((4, 4, 1), pool=2, head="average").sample(key, 2)


STATES = {
    "particles": particles(wf.Neuron("erf", bias=True, outputs=2)),
    "hermite": particles(wf.Neuron(wf.activation("hermite", degree=3))),
    "linearised": wf.kernels.Linearisation(particles(wf.Neuron("tanh"))),
    "grid": wf.GridDensity(np.full((4, 3), 1 / 12), (-1.0, -1.0), (1.0, 1.0), neuron=wf.Neuron("tanh")),
    "kernel": wf.kernels.KernelFunction(
        wf.kernels.InfiniteKernel(wf.MLP(2)), x=jnp.ones((2, 2)), coefficients=jnp.arange(2.0)
    ),
    "radial": particles(
        wf.Problem(x=wf.Gaussian(5), target=wf.single_index("erf"), neuron=wf.Neuron("erf")).reduced().neuron
    ),
    **dict(networks()),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder for each kind of state, and a checkpoint of two segments with its carry."""
    path = tmp_path_factory.mktemp("saved")
    for name, state in STATES.items():
        run_of(state).save(path / name)
    wf.evolve(**small(), checkpoint=wf.Checkpoint(path / "checkpoint", every=0.0))
    assert len(folder.read(path / "checkpoint")["segments"]) > 1
    return path


def loads_equal_or_is_damaged(path, expected, what):
    try:
        run = wf.load(path)
    except folder.DamagedError as error:
        assert str(path) in str(error) and re.search(r"\.json|\.npz", str(error)), (what, str(error))
        return False
    assert_equal(run, expected)
    assert repr(run)
    return True


def assert_equal(run, expected):
    """The same bits; what is no array is equal."""
    arrays = lambda r: wf.Run(tuple(replace(row, state=None) for row in r.rows), jnp.zeros(()), r.status)
    assert_same_bits(arrays(run), arrays(expected))
    for one, other in zip([*run.states, run.final], [*expected.states, expected.final], strict=True):
        assert jax.tree.structure(one) == jax.tree.structure(other)
        for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            assert type(left) is type(right) and np.all(left == right)


@pytest.mark.parametrize("name", [*STATES, "checkpoint"])
def test_an_edited_manifest_loads_equal_or_is_damaged(saved, name, tmp_path):
    draw, path, same = random.Random(name), tmp_path / name, 0
    shutil.copytree(saved / name, path)
    expected, record = wf.load(path), folder.read(path)
    for _ in range(100):
        changed, what = edited(record, draw)
        folder.write(path / folder.MANIFEST, folder._serialise(changed))
        same += loads_equal_or_is_damaged(path, expected, what)
    assert same < 20  # almost all of it is checked
    folder.write(path / folder.MANIFEST, folder._serialise(record))
    assert_equal(wf.load(path), expected)


def rewritten(path, record, entry, arrays):
    """The file of an entry with other arrays, its hash and that of the manifest right again."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, value in arrays.items():
            with archive.open(f"{key}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
    (path / entry["file"]).write_bytes(buffer.getvalue())
    entry["sha256"] = hashlib.sha256(buffer.getvalue()).hexdigest()
    folder.write(path / folder.MANIFEST, folder._serialise(record))


def is_read(file, key, how):
    """Whether an edit concerns what `load` reads, and is not of an observer, which may answer NaN."""
    free = ("observed/vector", "observed/fresh_risk", "observed/fresh_risk_error")
    return not file.startswith("carry") and not (how == "nan" and key in free)


@pytest.mark.parametrize("name", ["particles", "mlp", "grid", "linearised", "kernel", "checkpoint"])
def test_edited_arrays_are_damaged(saved, name, tmp_path):
    draw, path = random.Random(name), tmp_path / name
    shutil.copytree(saved / name, path)
    expected, original = wf.load(path), folder.read(path)
    for number, listed in enumerate(folder.entries(original)):
        arrays = folder.get(path, listed)
        every = [(k, *v) for k in arrays for v in variants(arrays, k, draw)]
        for key, how, edited_arrays in draw.sample(every, min(40, len(every))):
            record = copy.deepcopy(original)
            rewritten(path, record, list(folder.entries(record))[number], edited_arrays)
            if is_read(listed["file"], key, how):
                assert not loads_equal_or_is_damaged(path, expected, (listed["file"], key, how)), (key, how)
        shutil.rmtree(path)
        shutil.copytree(saved / name, path)


RELISTED = ("one more axis", "flat", "shorter", "empty", "nan", "removed", "renamed", "float32")


@pytest.mark.parametrize("name", ["particles", "grid"])
def test_arrays_must_fit_to_each_other(saved, name, tmp_path):
    """Also where the manifest's list of types and shapes was written anew: states to times, to the
    final state and to their own structure."""
    draw, path = random.Random(name), tmp_path / name
    shutil.copytree(saved / name, path)
    original = folder.read(path)
    for number, listed in enumerate(folder.entries(original)):
        arrays = folder.get(path, listed)
        for key in (k for k in arrays if not k.startswith("observed/v")):
            for how, edited_arrays in variants(arrays, key, draw):
                if how not in RELISTED or (key == "observed/risk" and how in ("float32", "one more axis")):
                    continue
                record = copy.deepcopy(original)
                entry = list(folder.entries(record))[number]
                entry["holds"] = folder._listing(edited_arrays)
                rewritten(path, record, entry, edited_arrays)
                with pytest.raises(folder.DamagedError):
                    wf.load(path)
        shutil.rmtree(path)
        shutil.copytree(saved / name, path)


@pytest.mark.parametrize("how", ["float32", "shorter", "one more axis", "removed", "renamed"])
def test_an_edited_carry_is_not_gone_on_from(saved, how, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(saved / "checkpoint", path)
    record = folder.read(path) | {"status": "running"}
    arrays = folder.get(path, record["carry"])
    key = max(arrays, key=lambda k: arrays[k].size)
    edited_arrays = dict(variants(arrays, key, random.Random(0)))[how]
    record["carry"]["holds"] = folder._listing(edited_arrays)
    rewritten(path, record, record["carry"], edited_arrays)
    with pytest.raises(folder.DamagedError, match=r"manifest\.json: the numbers in 'carry'"):
        wf.evolve(**small(), checkpoint=path)


def test_damage_is_told_with_file_and_field(saved, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(saved / "particles", path)
    record = folder.read(path)
    tell = lambda change: folder.write(path / folder.MANIFEST, folder._serialise(change))
    cases = {
        "status": ({"status": "fine"}, "the status 'fine'"),
        "times": ({"times": 2}, "'segments' hold 3 times, but 'times' is 2"),
        "info": ({"info": []}, "'info' must be a dict"),
        "message": ({"message": 3}, "'message' must be a str"),
    }
    for change, words in cases.values():
        tell(record | change)
        with pytest.raises(folder.DamagedError, match=re.escape(words)) as error:
            wf.load(path)
        assert str(path / "manifest.json") in str(error.value)
    deeper = json.loads(json.dumps(record))
    deeper["final"]["state"]["fields"]["neuron"]["fields"]["outputs"] = 7
    tell(deeper)
    with pytest.raises(folder.DamagedError, match=r"manifest\.json: final"):
        wf.load(path)


def test_no_file_outside_the_folder_is_read(saved, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(saved / "particles", path)
    record = folder.read(path)
    name = record["final"]["arrays"]["file"]
    shutil.copy(path / name, tmp_path / name)
    record["final"]["arrays"]["file"] = f"../{name}"
    folder.write(path / folder.MANIFEST, folder._serialise(record))
    with pytest.raises(folder.DamagedError, match="no file of arrays"):
        wf.load(path)


def test_every_class_of_the_library_is_found_at_home():
    for name, home in registry.HOMES.items():
        recipe = registry.recipe_named(name)
        assert recipe is not None and recipe.cls.__module__ == f"wideflow.{home}" and not recipe.own
    ours = {n for n, recipe in registry._BY_NAME.items() if recipe.cls.__module__.startswith("wideflow.")}
    assert ours == set(registry.HOMES)
