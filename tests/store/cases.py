"""One small run for every dynamics, the same in every process; and what "the same bits" means."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
import optax

import wideflow as wf


def theta_norm(t, state):
    return (state.theta**2).sum()


def first(t, state):
    return state.theta[0]


@cache
def _data() -> wf.Risk:
    rng = np.random.default_rng(0)
    x = wf.Dataset(rng.normal(size=(24, 2)), rng.normal(size=24))
    return wf.Risk(wf.Problem(x=x, neuron=wf.Neuron("tanh")))


@cache
def _law() -> wf.Risk:
    problem = wf.Problem(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=wf.Neuron("tanh"), noise=0.1)
    return wf.Risk(problem, wf.Sample(16))


@cache
def _line() -> wf.FreeEnergy:
    """On data in R¹, where neurons (a, w) have a density on a grid."""
    rng = np.random.default_rng(1)
    x = wf.Dataset(rng.normal(size=(12, 1)), rng.normal(size=12))
    return wf.FreeEnergy(wf.Risk(wf.Problem(x=x, neuron=wf.Neuron("tanh"))), beta=20.0, decay=0.1)


@cache
def _deep() -> wf.Risk:
    rng = np.random.default_rng(0)
    return wf.Risk(wf.Problem(x=wf.Dataset(rng.normal(size=(24, 2)), rng.normal(size=24))))


def _neurons(functional: Any) -> Any:
    return wf.init(functional.problem, a=0.5).sample(jax.random.key(7), 5)


def _replicas(functional: Any) -> Any:
    return wf.init(functional.problem, a=0.5).sample(jax.random.key(7), 5, replicas=2)


def _density(functional: Any) -> Any:
    return wf.on_grid(wf.init(functional.problem, a=0.5), -4.0, 4.0, cells=16)


def _network(functional: Any) -> Any:
    return wf.MLP(2, depth=2, activation="tanh").sample(jax.random.key(7), 6)


@dataclass(frozen=True)
class Case:
    """`make()` builds the dynamics, `begin(functional)` the start; saved times go from 0 to `end`."""

    name: str
    make: Callable[[], Any]
    end: float
    begin: Callable[[Any], Any] = _neurons
    observe: tuple[Callable, ...] = (theta_norm, first)

    def call(self, rows: int = 5) -> dict[str, Any]:
        """The arguments of `evolve`."""
        dynamics = _made(self)
        return {
            "dynamics": dynamics,
            "state": self.begin(dynamics.functional),
            "ts": np.linspace(0.0, self.end, rows),
            "key": jax.random.key(3),
            "observe": list(self.observe),
        }


@cache  # an optimiser made anew would be compiled anew
def _made(case: Case) -> Any:
    return case.make()


CASES = {
    case.name: case
    for case in (
        Case("GradientDescent", lambda: wf.GradientDescent(_data(), 0.05), 2.0),
        Case("SGD-law", lambda: wf.SGD(_law(), 0.02, batch=2), 1.0),
        Case("SGD-law-many-passes", lambda: wf.SGD(_law(), 0.02, one_pass=False), 1.0),
        Case("SGD-data", lambda: wf.SGD(_data(), 0.02, batch=3), 1.0),
        Case("SGD-data-one-pass", lambda: wf.SGD(_data(), 0.05, one_pass=True), 1.2),
        Case("Langevin", lambda: wf.Langevin(_data(), 0.02, beta=50.0, decay=0.1), 1.0),
        Case("BirthDeath", lambda: wf.BirthDeath(_data(), 0.02, reaction=9.0, beta=50.0), 1.0),
        Case("FisherRao", lambda: wf.FisherRao(_data(), 0.02), 1.0),
        Case("Adam", lambda: wf.Adam(_data(), 0.02, batch=2), 1.0),
        Case("Optax", lambda: wf.Optax(_data(), optax.sgd(0.02, momentum=0.9), 0.02), 1.0),
        Case("GradientFlow", lambda: wf.GradientFlow(_data(), rtol=1e-7), 30.0),
    )
}

# Other states than neurons, and the dynamics that take longer to compile.
OTHERS = {
    case.name: case
    for case in (
        Case("WassersteinFisherRao", lambda: wf.WassersteinFisherRao(_data(), 0.02), 1.0),
        Case("Linearised", lambda: wf.Linearised(wf.SGD(_data(), 0.02, batch=3)), 1.0, observe=()),
        Case("KernelFlow", lambda: wf.KernelFlow(_deep()), 1.0, _network, ()),
        Case("Network", lambda: wf.SGD(_deep(), 0.02, batch=3), 1.0, _network, ()),
        Case("Replicas", lambda: wf.SGD(_data(), 0.02, batch=3), 1.0, _replicas),
        Case("GridFlow", lambda: wf.GridFlow(_line()), 1.0, _density),
        Case("JKO", lambda: wf.JKO(_line(), 0.05), 0.6),
        Case("JKO-grid", lambda: wf.JKO(_line(), 0.05), 0.6, _density),
    )
}

# A run that does not end before it is stopped.
LONG = Case("long", lambda: wf.Langevin(_data(), 0.02, beta=50.0, decay=0.1), 24.0)


def limit_call() -> dict[str, Any]:
    """The arguments of a `limit` of a few levels."""
    problem = wf.Problem(x=wf.Gaussian(10), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    return {"problem": problem, "start": wf.init(problem), "ts": [0.0, 1.0], "tol": 1e-3}


def assert_same_bits(one: wf.Run, other: wf.Run) -> None:
    """Times, observations, snapshots, final state: every number to its last bit."""
    assert one.status == other.status
    assert one.keys() == other.keys()
    _same_arrays(one.t, other.t)
    for name in one:
        _same_arrays(one[name], other[name])
    assert len(one.states) == len(other.states)
    for a, b in zip([*one.states, one.final], [*other.states, other.final], strict=True):
        assert jax.tree.structure(a) == jax.tree.structure(b)
        for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            _same_arrays(left, right)


def assert_begins(run: wf.Run, whole: wf.Run) -> None:
    """`run` has the first saved times of `whole`, to the last bit."""
    rows = whole.rows[: len(run.rows)]
    cut = wf.Run(rows, run.final, run.status)
    assert_same_bits(run, cut)


def _same_arrays(one: Any, other: Any) -> None:
    one, other = np.asarray(one), np.asarray(other)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert one.tobytes() == other.tobytes()
