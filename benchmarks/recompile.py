"""Compilations in a second call with the same shapes."""

from collections.abc import Callable
from typing import Any

import jax
import optax

import wideflow as wf

from .rows import Row

EVENT = "/jax/core/compile/backend_compile_duration"
_compiled: list[str] = []  # names of what was compiled, in order


def _listen(event: str, duration: float, fun_name: str = "?", **_: Any) -> None:
    if event == EVENT:
        _compiled.append(fun_name)


def _compilations(call: Callable[[], Any]) -> list[str]:
    before = len(_compiled)
    call()
    return _compiled[before:]


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


def _evolve(make: Callable, risk: wf.Risk, start: wf.Particles, seed: int) -> None:
    dynamics = make(risk, (0.01, 0.005)[seed])
    run = wf.evolve(dynamics, start, [0.1, 0.3], key=jax.random.key(seed))
    assert run.status == "ok", run.message


def _calls(finite: bool) -> dict[str, list[Callable[[], Any]]]:
    """By name, a first and a second call that differ in everything but shapes."""
    cases = [_problem(seed, finite) for seed in (0, 1)]
    calls = {"wf.Risk(problem)": [lambda p=problem: wf.Risk(p) for problem, _ in cases]}
    ready = [(wf.Risk(problem), start) for problem, start in cases]
    calls["velocity"] = [lambda r=risk, s=start: r.velocity(s).block_until_ready() for risk, start in ready]
    for name, make in DYNAMICS.items():
        calls[f"evolve, {name}"] = [
            lambda make=make, r=risk, s=start, seed=seed: _evolve(make, r, s, seed)
            for seed, (risk, start) in enumerate(ready)
        ]
    return calls


def measure(quick: bool) -> list[Row]:
    """Number of XLA compilations in a second call: other data, other start, other key, and for
    dynamics another step size (tolerance, temperature) too, all of the same shapes. Counted by JAX's
    own monitoring event, which is checked to see what the first evolve compiles."""
    jax.monitoring.register_event_duration_secs_listener(_listen)
    rows = []
    for finite in (False, True):
        for name, (first, second) in _calls(finite).items():
            seen, again = _compilations(first), _compilations(second)
            assert seen or not name.startswith("evolve"), f"the event missed the first {name}"
            what = f"compilations again on a {'data set' if finite else 'Gaussian law'}: {name}"
            rows.append(Row(what, (float(len(again)),), 0.0, at_most=True, note=", ".join(again)))
    jax.monitoring.unregister_event_duration_listener(_listen)
    return rows
