"""The mean-field limit to many digits: characteristics from Gauss nodes, refined until a tolerance holds."""

import math
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from .. import signals
from .._checks import count, positive, times
from .._shown import shown
from ..checkpoint import Checkpoint, Ledger
from ..functionals.base import AbstractFunctional, is_functional
from ..functionals.penalties import Moment
from ..problems.problem import Problem, is_problem
from ..problems.symmetry import NoSymmetryError
from ..run import Row, Run
from ..states.starts import Law, is_law
from ..store.records import describe, fingerprint, functions_in
from ..store.settings import settings
from ..watch import Observer, observers_by_name, to_host
from .precision import double, single
from .refinement import LEVELS, refined
from .solver import WORK, Solver, StoppedError

_LEAST, _LARGEST = 1e-13, 1.0  # of a tolerance; the laws of errors that are assumed are for risks of order 1
LEVELS_FOLDER = "levels"  # inside that of a checkpoint, as long as the limit is not finished


def limit(
    problem: Problem,
    start: Law,
    ts: ArrayLike,
    tol: float = 1e-6,
    *,
    alpha: float = 1.0,
    penalty: AbstractFunctional | None = None,
    observe: Mapping[str, Observer] | Iterable[Observer] = (),
    probes: int = 0,
    work: float = WORK,
    checkpoint: Checkpoint | str | Path | None = None,
    progress: bool | None = None,
) -> Run:
    """∂tρ = ∇·(ρ∇Ψ(θ; ρ)), the infinite-width, infinite-sample gradient flow, with the risk to the absolute
    tolerance `tol` at all times `ts`.

    Gauss nodes of the start are carried along the flow as weighted particles, in the reduced coordinates
    where the problem has a symmetry (else in its own, for d ≤ 3). Orders of all rules and the time steps
    are refined until two levels differ little enough along the whole trajectory: `run.info["error"]` is
    the estimated error of the risk and `run.info["resolution"]` what it took. A run that could not reach the
    tolerance within `work` (evaluations of φ for one velocity) has status "stalled" and says how far it came.

    A start of several coordinates, of which a small part goes another way than the rest, has no panels: there
    the estimate can miss that part.

    - `alpha`, `penalty`: scale of the network, and a functional to add to the risk (λ·SecondMoment()).
    - `probes`: so many low-discrepancy points of the start are carried along without weight, for
      pictures of the moving density (`wf.diagnostics.density(…, probes=True)`).
    - `checkpoint`: a folder. Levels that are done are kept there; killed, the same call goes on from them to
      the same bits, and a limit that is finished is returned at once. Another limit's folder is refused.

    Interrupted (Ctrl-C), it returns the best level so far with that status, its error in `run.info["error"]`.

    It computes in float64, whatever JAX is set to (states come back as JAX is set, observations in
    float64). `run.info["resolution"]` has the orders of the start's rules by part, of E over x (nodes, or the
    degree of Hermite modes: `run.info["expectation"]` says which), of the mean u inside a reduced neuron (of
    modes, of their series in |w|), and the tolerance of the time steps. `observe` is that of `evolve`;
    observers look once, at the finest level. `progress` shows the level, the error so far and the time left:
    a bar on a terminal, which is the default there, else lines. Without a symmetry (d ≤ 3) all coordinates of
    w have nodes, which takes longest.

    >>> run = wf.limit(line, wf.init(line, theta=1.0), ts, tol=1e-3)
    >>> run.status, bool(run.info["error"] < 1e-3)
    ('ok', True)"""
    if not is_problem(problem) or not is_law(start):
        hint = " The limit starts from a law, not from neurons drawn from it." if callable(start) else ""
        raise ValueError(
            "limit(problem, start, ts) takes a wf.Problem and a law such as wf.init(problem), got "
            f"{type(problem).__name__} and {type(start).__name__}.{hint}"
        )
    asked, tol, work = times(ts), positive("limit(tol)", tol), positive("limit(work)", work)
    probes = count("limit(probes)", probes, least=0)
    if penalty is not None and not is_functional(penalty):
        raise ValueError(
            f"limit(penalty) must be a functional such as 0.1 * wf.SecondMoment(), got {shown(penalty)}."
        )
    if tol < _LEAST:
        raise ValueError(f"limit(tol) must be {_LEAST:.1e} or more, as a risk is rounded, got {tol:g}.")
    observers = observers_by_name(observe)
    narrow = jnp.result_type(float) == jnp.float32
    own, law = _coordinates(problem, start)
    if own is not problem and any(isinstance(term, Moment) for term in _terms(penalty)):
        raise ValueError(
            "limit(penalty) must not change under rotations, as SecondMoment and PathNorm do not; of a "
            "Moment that is not known. Give limit a problem.reduced(), and a Moment of its (a, s, r)."
        )
    show = sys.stderr.isatty() if progress is None else progress
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    asks = _Question(own, law, asked, tol, alpha, penalty, observers, probes, work)
    with signals.heeding(signals.BY_HAND if checkpoint is None else signals.ENDING) as request:
        run = asks.answer(show, narrow) if checkpoint is None else asks.kept(checkpoint, show, narrow)
        if run.status == "interrupted":
            signals.farewell(request, run.message)
    return run


@dataclass(frozen=True)
class _Question:
    """What a limit is asked for, in the coordinates in which it is computed."""

    problem: Problem
    law: Law
    ts: np.ndarray
    tol: float
    alpha: float
    penalty: AbstractFunctional | None
    observers: dict[str, Observer]
    probes: int
    work: float

    def prints(self) -> dict[str, str]:
        """Fingerprints of all that the answer depends on, by name."""
        return {
            "problem": fingerprint(self.problem, called="problem"),
            "start": fingerprint(self.law, called="start"),
            "times": fingerprint(self.ts),
            "tolerance or work": fingerprint(self.tol, self.work),
            "alpha or penalty": fingerprint(self.alpha, self.penalty, called="penalty"),
            "probes": fingerprint(self.probes),
            "observers": fingerprint(self.observers, called="observe"),
            **settings(),
        }

    def kept(self, checkpoint: Checkpoint, show: bool, narrow: bool) -> Run:
        """The answer in the folder, or computed on from the levels that are there."""
        ledger = Ledger(checkpoint, self.prints())
        levels = Path(checkpoint.directory) / LEVELS_FOLDER
        with ledger.lock():
            saved = ledger.restore((), functions_in(self.law))
            if saved is not None and saved[0].status != "interrupted":
                return saved[0]
            ledger.segments = []  # of the best level so far: what comes has other states
            run = self.answer(show, narrow, Checkpoint(levels, checkpoint.every))
            ledger.save(run, (), last=True)
            if ledger.trouble:
                told = ledger.told("save the run elsewhere: run.save(another_folder).")
                info = run.info | {"checkpoint_error": ledger.trouble}
                return replace(run, message=f"{run.message} {told}".strip(), info=info)
            if run.status != "interrupted":
                shutil.rmtree(levels, ignore_errors=True)
        return run

    def answer(self, show: bool, narrow: bool, levels: Checkpoint | None = None) -> Run:
        """The limit, with what it took and how well it is known; `narrow` if states are to be float32."""
        begun, tol = time.monotonic(), self.tol
        with jax.enable_x64(True) if narrow else nullcontext():
            problem, law = double(self.problem), double(self.law)
            solve = Solver(problem, law, self.ts, self.alpha, self.penalty, show, self.work, levels)
            aim = min(tol, _LARGEST)
            run, error, finest = refined(solve, solve.first(aim), aim)
            if self.probes and run.status == "ok":
                try:
                    run = solve(finest, self.probes)
                except StoppedError as stopped:
                    run = replace(run, status="interrupted", message=stopped.run.message)
            run = _seen(run, self.ts, self.observers)
        facts = {
            "error": error,
            "resolution": {name: finest.order(name) for name in finest.dimensions()},
            "expectation": solve.way(finest),
            "expectation_error": error,
            "seconds": time.monotonic() - begun,
        }
        origin = {"dynamics": run.provenance["dynamics"] | {"name": "limit", "tol": tol}}
        origin["observers"] = {name: describe(fn) for name, fn in self.observers.items()}
        origin["sources"] = ["mei2018", *run.provenance["sources"]]
        run = replace(run, info=run.info | facts, provenance=run.provenance | origin)
        if run.status == "ok" and not error <= tol:
            run = replace(run, status="stalled", message=_stalled(error, tol, self.work))
        elif run.status == "interrupted":
            run = replace(run, message=f"{run.message} The limit is known {_known(error)}.")
        return _single(run) if narrow else run


def _terms(penalty: AbstractFunctional | None) -> list[PyTree]:
    return jax.tree.leaves(penalty, is_leaf=lambda term: isinstance(term, Moment))


def _known(error: float) -> str:
    return f"to {error:.2g}" if math.isfinite(error) else "at one resolution only, so with no error"


def _stalled(error: float, tol: float, work: float) -> str:
    return (
        f"The limit is known {_known(error)}, not to tol = {tol:g}: the next level would take more work than "
        f"allowed ({work:g} evaluations for a velocity, see limit(…, work=…)), or {LEVELS} levels were not "
        "enough. Ask for less, or take start.reduced().points(n) and wf.GradientFlow."
    )


def _coordinates(problem: Problem, start: Law) -> tuple[Problem, Law]:
    """The problem and start in which the limit is computed."""
    if start.neuron.with_order(1) != problem.neuron.with_order(1) or start.D != problem.D:
        raise ValueError(
            f"limit(start) must be a law of θ in R^{problem.D} for {shown(problem.neuron)}, got one in "
            f"R^{start.D} for {shown(start.neuron)}. Use wf.init(problem), and for a reduced problem "
            "wf.init(the problem before its reduction).reduced()."
        )
    start = start.on(problem)
    if not problem.neuron.is_flat:
        return problem, start
    try:
        return problem.reduced(), start.reduced()
    except NoSymmetryError as error:
        if math.isinf(problem.d) or problem.d > 3 or problem.x.default_order() is None:
            raise NoSymmetryError(
                f"limit needs a symmetry, or d <= 3 with a law that has Gauss nodes. {error}"
            ) from error
        return problem, start


def _seen(run: Run, asked: np.ndarray, observers: Mapping[str, Observer]) -> Run:
    """The run at the asked times alone, with what the observers see there."""
    rows: list[Row] = []
    for row in run.rows:
        if row.t in asked:
            seen = {name: to_host(fn(row.t, row.state)) for name, fn in observers.items()}
            changed = [name for name in seen if rows and seen[name].shape != rows[0].observed[name].shape]
            if changed:
                raise ValueError(
                    f"The observer {shown(changed[0])} returned an array of shape {seen[changed[0]].shape} "
                    f"at t = {row.t:.6g}, but {rows[0].observed[changed[0]].shape} before; one shape is "
                    "needed."
                )
            rows.append(replace(row, observed=row.observed | seen))
    return replace(run, rows=tuple(rows))


def _single(run: Run) -> Run:
    rows = tuple(replace(row, state=single(row.state)) for row in run.rows)
    return replace(run, rows=rows, final=single(run.final))
