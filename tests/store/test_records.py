"""Fingerprints: the same in every process, and another one for whatever computes something else."""

import functools
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import wideflow as wf
from store.prints import prints
from wideflow.store import records
from wideflow.store.records import decode, encode, fingerprint, function_hash

SCRIPT = Path(__file__).parent / "prints.py"


@pytest.mark.parametrize("seed", ["1", "2"])
def test_fingerprints_are_the_same_in_every_process(seed, tmp_path):
    """Another order of sets, other addresses, another name of the module, another folder."""
    env = os.environ | {"PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, SCRIPT], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == prints()


def made(source: str, **names):
    """The function f of this source, with these globals."""
    space = {"jnp": jnp, "np": np, "jax": jax} | names
    exec(source, space)
    return space["f"]


def module(**names):
    found = types.ModuleType("settings")
    vars(found).update(names)
    return found


def closing(value):
    return lambda x: x + value


def twice(outer):
    """A decorator of the user's own, with functools.wraps."""

    def decorate(fn):
        @functools.wraps(fn)
        def wrapped(x):
            return outer * fn(x)

        return wrapped

    return decorate


class Ball:
    def __init__(self, radius):
        self.radius = radius

    def __call__(self, x):
        return x < self.radius


F = "def f(x): return "
PAIRS = {
    "constant": (made(F + "x + 1"), made(F + "x + 2")),
    "sign of zero": (made(F + "x * 0.0"), made(F + "x * -0.0")),
    "kind of constant": (made(F + "x * 1"), made(F + "x * 1.0")),
    "set of constants": (made(F + "x in {1, 2}"), made(F + "x in {1, 3}")),
    "operation": (made(F + "x + x"), made(F + "x * x")),
    "name": (made(F + "jnp.sin(x)"), made(F + "jnp.cos(x)")),
    "inner function": (made(F + "(lambda y: y + 1)(x)"), made(F + "(lambda y: y + 2)(x)")),
    "closure": (closing(1.0), closing(2.0)),
    "closure of float32": (closing(np.float32(1.0)), closing(np.float32(2.0))),
    "closure of an array": (closing(np.arange(3.0)), closing(np.nextafter(np.arange(3.0), 9.0))),
    "closure of a function": (closing(closing(1.0)), closing(closing(2.0))),
    "closure of a list": (closing([1, 2]), closing([1, 3])),
    "closure of a dict": (closing({"a": 1}), closing({"a": 2})),
    "closure of an object": (closing(Ball(1.0)), closing(Ball(2.0))),
    "closure of a problem": (closing(wf.Gaussian(2)), closing(wf.Gaussian(3))),
    "default": (made("def f(x, a=1): return x"), made("def f(x, a=2): return x")),
    "keyword": (made("def f(x, *, a=1): return x"), made("def f(x, *, a=2): return x")),
    "global": (made(F + "x + A", A=1), made(F + "x + A", A=2)),
    "global in an inner function": (
        made(F + "(lambda y: y + A)(x)", A=1),
        made(F + "(lambda y: y + A)(x)", A=2),
    ),
    "global function": (made(F + "g(x)", g=closing(1)), made(F + "g(x)", g=closing(2))),
    "global object": (
        made(F + "x + A.b", A=types.SimpleNamespace(b=1)),
        made(F + "x + A.b", A=types.SimpleNamespace(b=2)),
    ),
    "module of constants": (made(F + "x + m.b", m=module(b=1)), made(F + "x + m.b", m=module(b=2))),
    "partial": (functools.partial(np.add, 1), functools.partial(np.add, 2)),
    "bound method": (Ball(1.0).__call__, Ball(2.0).__call__),
    "callable object": (Ball(1.0), Ball(2.0)),
    "decorator": (twice(1.0)(closing(1.0)), twice(2.0)(closing(1.0))),
    "decorated": (twice(1.0)(closing(1.0)), twice(1.0)(closing(2.0))),
    "jit": (jax.jit(closing(1.0)), jax.jit(closing(2.0))),
    "grad": (closing(1.0), jax.grad(closing(1.0))),
    "two transformations": (jax.jacfwd(closing(1.0)), jax.jacrev(closing(1.0))),
    "axes of vmap": (jax.vmap(closing(1.0), in_axes=0), jax.vmap(closing(1.0), in_axes=1)),
    "library": (jnp.sin, jnp.cos),
    "numpy": (np.sin, np.cos),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_what_computes_something_else_has_another_hash(pair):
    assert function_hash(pair[0]) != function_hash(pair[1])


def test_a_changed_method_is_another_function():
    def objects():
        for sign in (1, -1):

            class Target(eqx.Module):
                a: float

                if sign > 0:

                    def __call__(self, x):
                        return self.a * x
                else:

                    def __call__(self, x):
                        return -self.a * x

            yield Target(2.0)

    one, other = objects()
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one)


@pytest.mark.parametrize(
    "one, other",
    [
        (optax.adam(1e-3), optax.adam(2e-3)),
        (optax.adam(1e-3), optax.adam(1e-3, b1=0.8)),
        (optax.sgd(0.1), optax.sgd(0.1, momentum=0.9)),
        (optax.sgd(0.1, momentum=0.9), optax.sgd(0.1, momentum=0.9, nesterov=True)),
        (optax.sgd(optax.linear_schedule(1.0, 0.0, 9)), optax.sgd(optax.linear_schedule(1.0, 0.0, 8))),
        (optax.chain(optax.clip(1.0), optax.sgd(0.1)), optax.chain(optax.clip(2.0), optax.sgd(0.1))),
        (optax.chain(optax.clip(1.0), optax.scale(2.0)), optax.chain(optax.scale(2.0), optax.clip(1.0))),
    ],
)
def test_optimisers_are_told_apart(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_what_does_not_matter_does_not_count():
    same = made(F + "x + A", A=1, unused=1)
    assert function_hash(same) == function_hash(made("\n\n\n" + F + "x + A", A=1, unused=2))
    # an attribute with the name of a global that is not read
    assert function_hash(made(F + "x.T", T=1)) == function_hash(made(F + "x.T", T=2))
    # what Python has learnt about a function by running it
    before = function_hash(same)
    for i in range(5000):
        same(i)
    assert function_hash(same) == before
    # equal optimisers made twice
    assert fingerprint(optax.adam(1e-3)) == fingerprint(optax.adam(1e-3))


def test_a_function_that_names_itself_has_a_hash():
    fn = made("def f(n): return n and f(n - 1)")
    assert function_hash(fn) == function_hash(made("def f(n): return n and f(n - 1)"))

    def unbound():
        return later  # a cell that is empty when the hash is taken

    before = function_hash(unbound)
    later = 1
    assert function_hash(unbound) != before


def test_fingerprints_see_every_part_of_an_array():
    base = np.arange(6.0)
    others = [base + np.eye(6)[5] * 1e-15, base.astype(np.float32), base.reshape(2, 3), base[::-1], -base]
    marks = {fingerprint(v) for v in [base, *others]}
    assert len(marks) == 1 + len(others)
    assert fingerprint(base) == fingerprint(jnp.asarray(base))
    assert fingerprint(np.float32(1)) != fingerprint(np.float32(2))
    assert fingerprint(jax.random.key(0)) != fingerprint(jax.random.key(1))
    # two arrays under what would be one path
    assert fingerprint({"a.b": base, "a": {"b": -base}}) != fingerprint({"a.b": base, "a": {"b": base}})


class Odd(eqx.Module):
    """Fields with the words of the record's own grammar."""

    key: jax.Array
    array: float
    list: tuple
    number: float


def test_encode_and_decode_are_inverse():
    wf.register("Odd", Odd)
    obj = Odd(jnp.arange(3), np.inf, (1, "a", None, (True, -0.0)), float("nan"))
    arrays = {}
    data = json.loads(json.dumps(encode({"x": obj, "k": jax.random.key(5)}, arrays)))
    found = decode(data, arrays)
    assert jnp.array_equal(found["x"].key, obj.key)
    assert (found["x"].array, found["x"].list) == (np.inf, obj.list)
    assert np.isnan(found["x"].number) and str(found["x"].list[3][1]) == "-0.0"
    assert jnp.array_equal(jax.random.key_data(found["k"]), jax.random.key_data(jax.random.key(5)))
    assert records.describe(obj)["key"] == [0, 1, 2]


def test_what_no_file_can_hold_is_named():
    with pytest.raises(TypeError, match=r"a\.0: set cannot be recorded"):
        encode({"a": [{1, 2}]}, {})
    with pytest.raises(ValueError, match="a type 'Gone' that this version does not know"):
        decode({"type": "Gone", "fields": {}}, {})


def test_reports_are_plain_whatever_is_in_them():
    told = {
        "a": np.float32(0.5),
        "b": jnp.arange(2),
        "c": float("inf"),
        "d": [np.nan, None],
        "e": {1: Path("x")},
    }
    text = json.dumps(records.plain(told), allow_nan=False)
    found = records.revived(json.loads(text))
    assert found["a"] == 0.5 and found["b"] == [0, 1] and found["c"] == np.inf
    assert np.isnan(found["d"][0]) and found["d"][1] is None and found["e"] == {"1": "x"}
