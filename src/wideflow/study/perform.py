"""One run of a study, kept in its folder as it goes."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..checkpoint import Checkpoint
from ..functionals.penalties import PathNorm, SecondMoment
from ..loop import evolve
from ..mean_field.limit import limit
from ..problems.radial import RadialNeuron
from ..run import Row, Run, load, to_host
from ..spec.study import Spec
from ..states.lifting import lift
from ..states.linearisation import Linearisation
from ..states.particles import Particles
from ..store import folder
from .build import Study
from .cases import Case
from .judging import summary
from .observers import Cloud, Feature, Predictions, Value, kernel_movement, weight_movement
from .points import DIRECTIONS, KERNEL, TEST, in_coordinates_of, points

# Seconds between checkpoints: what a crash may cost.
EVERY = 10.0
# Neurons that a limit is lifted to, to see its kernel.
LIFTED = 4096

Observers = dict[str, Callable[[float, Any], Any]]


def in_precision(spec: Spec) -> AbstractContextManager[None]:
    """The precision of a spec, for as long as the context lasts."""
    return jax.enable_x64(spec.precision == "float64")


def perform(study: Study, case: Case, path: Path, *, progress: bool | None = None) -> Run:
    """The run of a case, kept in the folder `path`: what is there already is not done again."""
    if case.is_limit:
        return _limit(study, case, path, progress)
    state = study.state(case)
    at = Linearisation(state) if case.linearised else state
    observe = observers(study, at)
    keep = study.spec.observe.snapshots
    checkpoint = Checkpoint(path, every=EVERY)
    made = study.dynamics(case)
    return evolve(
        made,
        state,
        study.ts,
        key=case.key,
        observe=observe,
        checkpoint=checkpoint,
        progress=progress,
        snapshots=keep,
    )


def observers(study: Study, state: Any) -> Observers:
    """What to look at in a run from this state."""
    spec = study.spec.observe
    found: dict[str, Any] = {}
    if (x := points(study.whole, spec.kernel, KERNEL)) is not None:
        found["kernel movement"] = kernel_movement(state, x)
    found["weight movement"] = weight_movement(state)
    if (x := points(study.whole, spec.test, TEST)) is not None:
        found["f"] = Predictions(in_coordinates_of(state, x, study.whole))
    at = state.at if isinstance(state, Linearisation) else state
    if isinstance(at, Particles):
        found |= _pictures(study, at)
    norms: dict[str, Any] = {"second_moment": SecondMoment()}
    if isinstance(state, Particles):
        norms |= {"path_norm": PathNorm()}
    found |= {name.replace("_", " "): Value(norms[name]) for name in spec.norms if name in norms}
    return {name: fn for name, fn in found.items() if fn is not None}


def _pictures(study: Study, at: Particles) -> Observers:
    """What is drawn of the neurons, as far as these particles have the coordinates."""
    named, spec = study.coordinates, study.spec.observe
    pair, feature = study.cloud, study.feature
    if named is None or pair is None or feature is None or not spec.particles:
        return {}
    weights = [name for name in named.names if name.startswith("a")]
    colour = weights[0] if weights else None
    found: Observers = {}
    if named.known(at, pair):
        found["cloud"] = Cloud(named, pair, colour, spec.particles)
    if named.known(at, (feature,)):
        found["feature"] = Feature(named, feature)
    return found


def _limit(study: Study, case: Case, path: Path, progress: bool | None) -> Run:
    """The limit has no checkpoint: it is there whole, or is computed (again)."""
    if folder.exists(path):
        return load(path)
    spec: Any = case.method
    run = limit(
        study.problem,
        study.start_of(case),  # type: ignore[arg-type]
        study.ts,
        spec.tol,
        alpha=spec.alpha,
        penalty=study.penalty,
        probes=spec.probes,
        work=spec.work,
        progress=progress,
    )
    if run.status == "interrupted":
        return run
    run = _looked_at(study, run)
    run.save(path)
    return run


def _looked_at(study: Study, run: Run) -> Run:
    """The run of a limit with the observations of a study in place of its snapshots."""
    if not run.states:
        return run
    observe = observers(study, run.states[0])
    neurons = _neurons(study, run.states[0])
    x = points(study.whole, study.spec.observe.kernel, KERNEL)
    if neurons is not None and x is not None:
        moved = kernel_movement(neurons(run.states[0]), x)
        observe["kernel movement"] = lambda t, state: moved(t, neurons(state))
        ends = summary(study, neurons(run.states[0]), neurons(run.final))
        run = replace(run, info=run.info | {"regime": ends})
    keep = study.spec.observe.snapshots
    rows = []
    for row in run.rows:
        seen = {name: to_host(fn(row.t, row.state)) for name, fn in observe.items()}
        rows.append(Row(row.t, row.observed | seen, row.state if keep else None))
    return replace(run, rows=tuple(rows))


def _neurons(study: Study, start: Particles) -> Callable[[Particles], Particles] | None:
    """A limit's particles as neurons in R^d; reduced ones in the same directions at all times, so that their
    kernel is that of the limit up to the chance of these directions. None in d = ∞, where there are none."""
    if math.isinf(study.whole.d):
        return None
    key = jax.random.key(DIRECTIONS)

    def neurons(state: Particles) -> Particles:
        weights = np.asarray(state.weights)
        kept = np.flatnonzero(weights > 0)  # probes have no weight
        theta, mass = np.asarray(state.theta)[kept], weights[kept] / weights[kept].sum()
        inner = Particles(theta, mass, state.alpha, state.neuron)
        if not isinstance(start.neuron, RadialNeuron):
            return inner
        return lift(study.whole, inner, key, copies=max(1, LIFTED // len(kept)))

    return neurons
