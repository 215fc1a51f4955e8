"""Small helpers at the door of compiled functions."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import get_opaque_trace_state
from jaxtyping import PyTree

from ._compiled import keep_compiled_programs

keep_compiled_programs()  # here, as everything that compiles imports this module

# At its highest level LLVM unrolls the rounds of random number generators: programs that draw compile eight
# times slower, to run no faster. XLA's loops use half of an AVX-512 register where they are not told to use
# all of it: twice as slow for erf, tanh and exp. Processors without it go on with what they have.
_LEVEL = {"xla_backend_optimization_level": 2, "xla_cpu_prefer_vector_width": 512}
# What runs once need not run fast: XLA's older emitters of loops compile in half the time, and use one core.
# Later versions have the newer ones alone, and refuse the option.
_OLDER_LOOPS = {"xla_cpu_use_fusion_emitters": False} if jax.__version_info__ < (0, 11) else {}
_ONCE = _LEVEL | _OLDER_LOOPS

Fn = TypeVar("Fn", bound=Callable)


def jit(fn: Fn) -> Fn:
    """`eqx.filter_jit`, compiled quickly. Inside of another transformation it is a part of the program there,
    for which options cannot be set."""
    return _compiled(fn, _LEVEL)


def jit_once(fn: Fn) -> Fn:
    """`jit` for what runs once or so (draws of a start, checks, estimates of an error): compiled as quickly
    as XLA can."""
    return _compiled(fn, _ONCE)


def _compiled(fn: Fn, options: dict) -> Fn:
    inner = eqx.filter_jit(fn)
    alone = eqx.filter_jit(fn, compiler_options=options)  # type: ignore[call-overload]

    @functools.wraps(fn)
    def call(*args, **kwargs):
        return (inner if under_a_trace() else alone)(*args, **kwargs)

    return call  # type: ignore[return-value]


def under_a_trace() -> bool:
    """Whether this runs inside of `jax.jit`, `jax.grad` or `jax.vmap`."""
    now = get_opaque_trace_state(convention="flax")
    with jax.core.eval_context():
        return now != get_opaque_trace_state(convention="flax")


def on_device(value: Any, dtype: Any = None) -> jax.Array:
    """`jnp.asarray`, which compiles a program for each shape of NumPy's arrays: here none is needed."""
    if isinstance(value, np.ndarray) and not under_a_trace():
        return jax.device_put(value if dtype is None else value.astype(jnp.dtype(dtype), copy=False))
    return jnp.asarray(value, dtype)


def traced(tree: PyTree) -> PyTree:
    """Python floats as arrays, so that another step size or temperature does not recompile."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, tree)
