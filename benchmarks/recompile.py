"""Compilations in a second call with the same shapes."""

from collections.abc import Callable
from typing import Any

import jax
import optax

import wideflow as wf

from .rows import Row

EVENT = "/jax/core/compile/backend_compile_duration"
_compiled: list[str] = []


def _listen(event: str, duration: float, **_: Any) -> None:
    if event == EVENT:
        _compiled.append(event)


def _compilations(call: Callable[[], Any]) -> int:
    before = len(_compiled)
    call()
    return len(_compiled) - before


def _problem(seed: int, finite: bool = False) -> tuple[wf.Problem, wf.Particles]:
    """A new problem and start of the same shapes for every seed."""
    key = jax.random.key(seed)
    x = jax.random.normal(key, (64, 8))
    law = wf.Dataset(x, x[:, 0]) if finite else wf.Gaussian(8)
    target = None if finite else wf.single_index("erf")
    problem = wf.Problem(x=law, target=target, neuron=wf.Neuron("erf"))
    return problem, wf.init(problem).sample(key, 32)


DYNAMICS: dict[str, Callable[[wf.Risk, float], Any]] = {
    "GradientFlow": lambda risk, step: wf.GradientFlow(risk, rtol=step),
    "GradientDescent": wf.GradientDescent,
    "SGD": lambda risk, step: wf.SGD(risk, step, batch=2),
    "Langevin": lambda risk, step: wf.Langevin(risk, step, beta=1 / step, decay=step),
    "Adam": wf.Adam,
    "Optax(optax.sgd)": lambda risk, step: wf.Optax(risk, optax.sgd, step),
}


def _velocity(seed: int, finite: bool) -> None:
    problem, start = _problem(seed, finite)
    wf.Risk(problem).velocity(start).block_until_ready()


def _evolve(make: Callable, seed: int, finite: bool, step: float) -> None:
    problem, start = _problem(seed, finite)
    run = wf.evolve(make(wf.Risk(problem), step), start, [0.1, 0.3], key=jax.random.key(seed))
    assert run.status == "ok", run.message


def measure(quick: bool) -> list[Row]:
    """Number of XLA compilations in a second call: other data, other start, other key, and for
    dynamics another step size (tolerance, temperature) too, all of the same shapes. Counted by JAX's
    own monitoring event; the first call is checked to be seen by it."""
    jax.monitoring.register_event_duration_secs_listener(_listen)
    calls: dict[str, tuple[Callable, Callable]] = {}
    for finite in (False, True):
        where = "a data set" if finite else "a Gaussian law"
        calls[f"velocity on {where}"] = tuple(lambda s=s, f=finite: _velocity(s, f) for s in (0, 1))
        for name, make in DYNAMICS.items():
            calls[f"{name} on {where}"] = tuple(
                lambda s=s, f=finite, make=make: _evolve(make, s, f, (0.01, 0.005)[s]) for s in (0, 1)
            )
    rows = []
    for name, (first, second) in calls.items():
        assert _compilations(first) > 0, f"{name}: the first call compiled nothing that we see"
        count = float(_compilations(second))
        rows.append(Row(f"compilations in the second call, {name}", (count,), 0.0, at_most=True))
    return rows
