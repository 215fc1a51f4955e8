"""One run of a study, kept in its folder as it goes."""

import math
import shutil
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
from ..observers import Predictions, Value, free_energy_estimate, kernel_movement, mass, weight_movement
from ..run import Row, Run
from ..salvage import load
from ..spec.study import Spec
from ..states.grid import GridDensity, is_grid
from ..states.lifting import lift
from ..states.linearisation import linearised
from ..states.measure import is_measure
from ..states.particles import Particles, is_cloud
from ..store import folder
from ..store.fingerprints import fingerprint
from ..watch import to_host
from .build import Study, descended
from .cases import Case
from .observers import Cloud, Feature, Marginal, has_probes
from .points import DIRECTIONS, in_coordinates_of
from .questions import ENERGIES, FEWEST, question
from .regimes import summary

# Seconds between checkpoints: what a crash may cost.
EVERY = 10.0
# Neurons that a limit is lifted to, to see its kernel.
LIFTED = 4096
DIMENSIONS = 10  # at most, for an entropy by neighbours

Observers = dict[str, Callable[[float, Any], Any]]


def in_precision(spec: Spec) -> AbstractContextManager[None]:
    """The precision of a spec, for as long as the context lasts."""
    return jax.enable_x64(spec.precision == "float64")


def perform(study: Study, case: Case, path: Path, *, progress: bool | None = None) -> Run:
    """The run of a case, kept in the folder `path`: what is there already is not done again."""
    if case.is_limit:
        return _limit(study, case, path, progress)
    state = study.state(case)
    at = linearised(state) if case.linearised else state
    observe = observers(study, at, case)
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


def data_hash(study: Study) -> str | None:
    """A hash of the rows that a study of a data set reads, in the precision of its spec; None without."""
    x: Any = study.whole.x
    return fingerprint(x.x, x.y, x.weights) if study.spec.problem.x.law == "dataset" else None


def observers(study: Study, state: Any, case: Case | None = None) -> Observers:
    """What to look at in a run from this state."""
    return measured(study, state, case) | drawn(study, state, case)


def measured(study: Study, state: Any, case: Case | None = None) -> Observers:
    """What JAX can trace; particles of weight 0 make no difference to it."""
    spec = study.spec.observe
    chosen: dict[str, Any] = {}
    if (x := study.kernel_points) is not None:
        chosen["kernel_movement"] = kernel_movement(state, x)
    if case is None or not case.method.word.relabels:  # else particle j may become another
        chosen["weight_movement"] = weight_movement(state)
    if (x := study.test_points) is not None:
        chosen["f"] = Predictions(in_coordinates_of(state, x, study.whole))
    norms: dict[str, Any] = {"second_moment": Value(SecondMoment())}
    if is_measure(state):
        norms |= {"path_norm": Value(PathNorm()), "mass": mass}
    chosen |= {name: norms[name] for name in spec.norms if name in norms}
    return {name: fn for name, fn in chosen.items() if fn is not None}


def drawn(study: Study, state: Any, case: Case | None = None) -> Observers:
    """What is drawn of the neurons, and what needs all of them on the host."""
    if is_grid(state):
        return _densities(study, state)
    if state.cloud is None:
        return {}
    noisy = _free_energy(study, state, case) if is_cloud(state) else {}
    return _pictures(study, state.base) | noisy


def _free_energy(study: Study, state: Particles, case: Case | None) -> Observers:
    """F of noisy particles, where the question asks for it and neighbours can tell it."""
    beta = getattr(case.method, "beta", None) if case is not None else None
    asked = question(study.spec) in ENERGIES
    if not isinstance(beta, float) or math.isinf(beta) or not asked:
        return {}
    if state.D > DIMENSIONS or state.n < FEWEST:
        return {}
    functional = descended(study.risk, study.penalty)
    decay = float(getattr(case.method, "decay", 0.0)) if case is not None else 0.0
    return free_energy_estimate(functional, beta, decay)


def _pictures(study: Study, at: Particles) -> Observers:
    """What is drawn of the neurons, as far as these particles have the coordinates."""
    named, spec = study.coordinates, study.spec.observe
    pair, feature = study.cloud, study.feature
    if named is None or pair is None or feature is None or not spec.particles:
        return {}
    weights = [name for name in named.names if name.startswith("a")]
    colour = weights[0] if weights else None
    pictures: Observers = {}
    if named.known(at, pair):
        pictures["cloud"] = Cloud(named, pair, colour, spec.particles, has_probes(at))
    if named.known(at, (feature,)):
        pictures["feature"] = Feature(named, feature, has_probes(at))
    return pictures


def _densities(study: Study, at: GridDensity) -> Observers:
    """What is drawn of a density: its marginal in the coordinates that neurons are drawn at, in one of them
    where it has not both, and the distribution of the feature."""
    known = at.neuron.coordinates(at.D)
    names = tuple(dict.fromkeys(name for name in study.cloud or () if name in known))
    found: Observers = {"density": Marginal(names)} if names and study.spec.observe.particles else {}
    if study.coordinates is not None and study.feature in known:
        found["feature"] = Feature(study.coordinates, str(study.feature))
    return found


def _limit(study: Study, case: Case, path: Path, progress: bool | None) -> Run:
    """The limit as a study looks at it. Its levels are kept beside it as long as it is not there."""
    data = data_hash(study)
    if folder.exists(path):
        run = load(path)
        if run.provenance.get("data") != data:
            raise ValueError(f"{path} holds the limit of other data. Give --out another folder.")
        return run
    spec: Any = case.method
    levels = path.with_name(f"{path.name}.levels")
    run = limit(
        study.problem,
        study.start_of(case),  # type: ignore[arg-type]
        study.ts,
        spec.tol,
        alpha=spec.alpha,
        penalty=study.penalty,
        probes=spec.probes,
        work=spec.work,
        checkpoint=Checkpoint(levels, every=EVERY),
        progress=progress,
    )
    if run.status == "interrupted":
        return run
    run = _looked_at(study, run)
    run = replace(run, provenance=run.provenance | {"data": data})
    try:
        run.save(path)
    except OSError as error:
        return replace(run, info=run.info | {"checkpoint_error": str(error.__cause__ or error)})
    shutil.rmtree(levels, ignore_errors=True)
    return run


def _looked_at(study: Study, run: Run) -> Run:
    """The run of a limit with the observations of a study in place of its snapshots."""
    if not run.states:
        return run
    observe = observers(study, run.states[0])
    neurons = _neurons(study, run.states[0])
    x = study.kernel_points
    if neurons is not None and x is not None:
        moved = kernel_movement(neurons(run.states[0]), x)
        observe["kernel_movement"] = lambda t, state: moved(t, neurons(state))
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
        if not start.is_reduced:
            return inner
        return lift(study.whole, inner, key, copies=max(1, LIFTED // len(kept)))

    return neurons
