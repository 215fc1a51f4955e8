"""Fingerprints of many things. As a script it prints them, to be compared from process to process."""

import functools
import json
import math
import sys
import types
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from wideflow.store.records import fingerprint, function_hash

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES

SCALE = 2.0
SETTINGS = types.SimpleNamespace(shift=0.5, names={"one", "two", "three"})


def helper(x):
    return SCALE * x


def uses_globals(x):
    return helper(x) + SETTINGS.shift + sum(map(lambda v: v * SCALE, x))


def member(x):
    return x in {"alpha", "beta", "gamma", "delta"}


def closing(value):
    def inside(x):
        return x + value

    return inside


def recursive():
    def down(n):
        return n if n == 0 else down(n - 1)

    return down


class Ball:
    def __init__(self, radius):
        self.radius = radius

    def __call__(self, x):
        return jnp.sum(x**2) < self.radius


class Shifted(eqx.Module):
    by: float

    def __call__(self, x):
        return x + self.by


def functions() -> dict:
    risk = CASES["GradientDescent"].make().functional
    return {
        "globals": uses_globals,
        "member": member,
        "closure": closing(1.5),
        "array": closing(np.arange(4.0)),
        "jax array": closing(jnp.arange(4.0)),
        "key": closing(jax.random.key(3)),
        "object": closing(object()),
        "risk": closing(risk),
        "observer": lambda t, state: risk.value(state),
        "recursive": recursive(),
        "partial": functools.partial(closing(1.0), x=2.0),
        "method": Ball(2.0).__call__,
        "callable": Ball(2.0),
        "jit": jax.jit(helper),
        "vmap": jax.vmap(helper),
        "cached": functools.cache(helper),
        "numpy": np.sin,
        "jax": jnp.tanh,
        "relu": jax.nn.relu,
        "builtin": math.sin,
        "adam": optax.adam(1e-3).update,
        "schedule": optax.adam(optax.cosine_decay_schedule(0.1, 10)).update,
        "chain": optax.chain(optax.clip(1.0), optax.sgd(0.1, momentum=0.9)).update,
    }


def prints() -> dict[str, str]:
    found = {name: function_hash(fn) for name, fn in functions().items()}
    found["module"] = fingerprint(Shifted(0.5))
    for name, case in CASES.items():
        call = case.call()
        found |= {f"{name}/{part}": fingerprint(value) for part, value in call.items()}
    return found


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)  # as the tests do
    print(json.dumps(prints()))
