"""Compiled programs side by side, one on each core."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax

In = TypeVar("In")
Out = TypeVar("Out")


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def side_by_side(fn: Callable[[In], Out], items: Sequence[In]) -> list[Out]:
    """[fn(item) for item in items], in a thread for each core: of what one thread asks for, XLA runs one
    program after the other. fn has to wait for its own result.

    Settings of JAX made by `with` belong to a thread. The precision is handed on; under another one that
    threads would not have, the items take turns."""
    precise, here = jax.config.values["jax_enable_x64"], _settings()

    def call(item: In) -> Out:
        with jax.enable_x64(precise):
            return fn(item)

    with ThreadPoolExecutor(max(1, min(cores(), len(items)))) as pool:
        if pool.submit(_settings).result() == here:
            return list(pool.map(call, items))
    return [fn(item) for item in items]


def _settings() -> dict:
    return {name: value for name, value in jax.config.values.items() if name != "jax_enable_x64"}
