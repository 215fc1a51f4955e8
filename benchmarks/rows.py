"""A measured row of the table, and the trials behind it."""

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Row(NamedTuple):
    """One line: a quantity with its trials, the bound asked for and the aim beyond it."""

    what: str
    trials: tuple[float, ...]
    asked: float | None = None
    aim: float | None = None
    at_most: bool = False  # else the bound is "at least"
    note: str = ""

    @property
    def measured(self) -> float:
        return statistics.median(self.trials)

    @property
    def verdict(self) -> str:
        if self.asked is None:
            return "-"
        holds = self.measured <= self.asked if self.at_most else self.measured >= self.asked
        return "ok" if holds else "short"


def seconds(call: Callable[[], Any]) -> float:
    """Wall time of a call that waits for its own result. The pause lets the threads of whoever ran
    before stop spinning (OpenMP's wait for some milliseconds), so nobody pays for another's."""
    time.sleep(0.01)
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def processor_seconds(call: Callable[[], Any]) -> float:
    """Seconds of all cores together, which other processes hardly lengthen; waiting does not count."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def interleaved(calls: dict[str, Callable[[], Any]], trials: int) -> list[dict[str, float]]:
    """Seconds of every call in every trial, the calls taking turns; a first turn is thrown away."""
    turns = [{name: seconds(call) for name, call in calls.items()} for _ in range(trials + 1)]
    return turns[1:]


def ratios(
    turns: list[dict[str, float]], peer: str, ours: str = "ours", scale: float = 1.0
) -> tuple[float, ...]:
    """scale · peer/ours of each trial: above 1, wideflow is the faster one."""
    return tuple(scale * turn[peer] / turn[ours] for turn in turns)


def microseconds(turns: list[dict[str, float]], name: str, steps: int = 1) -> float:
    """Median microseconds a step, as an extra beside a ratio."""
    return 1e6 * statistics.median(turn[name] for turn in turns) / steps


SIDE = 4096
MATMUL_FLOPS = 2 * SIDE**3


def large_matmul() -> Callable[[], Any]:
    """A 4096³ float32 product by JAX: what this machine's floating-point units give at best."""
    a = jax.random.normal(jax.random.key(0), (SIDE, SIDE), jnp.float32)
    product = jax.jit(jnp.matmul)
    return lambda: product(a, a).block_until_ready()
