"""What the tests of the loop and of its checkpoints share: a small run, and Ctrl-C at a given moment."""

import contextlib
import itertools
from functools import cache

import jax
import jax.numpy as jnp
import pytest

import wideflow as wf
from wideflow import loop


@contextlib.contextmanager
def ctrl_c(at):
    """Ctrl-C at the `at`-th sign of progress: after a piece of an interval or a saved time."""
    count = itertools.count()

    def update(t, risk=None):
        if next(count) == at:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "bar", lambda *_: contextlib.nullcontext(update))
        yield


def sine(factor):
    def target(x):
        return factor * jnp.sin(x[0])

    return target


def cosine():
    def target(x):
        return jnp.cos(x[0])

    return target


@cache
def sampled_risk(make, *args):
    problem = wf.Problem(x=wf.Gaussian(1), target=make(*args), neuron=wf.Neuron("tanh"))
    return wf.Risk(problem, wf.Sample(8))


def small(target=(sine, 1.0), step=0.1, width=3, seed=0, ts=(0.0, 0.5, 1.0), **more):
    risk = sampled_risk(*target)
    start = wf.init(risk.problem).sample(jax.random.key(1), width)
    key = jax.random.key(seed)
    return {"dynamics": wf.GradientDescent(risk, step), "state": start, "ts": ts, "key": key} | more
