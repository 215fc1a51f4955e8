"""The mean-field limit to many digits: characteristics from Gauss nodes, refined until a tolerance holds."""

import math
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from .._checks import count, positive, times
from ..functionals.base import AbstractFunctional, is_functional
from ..functionals.penalties import Moment
from ..loop import Observer, observers_by_name
from ..problems.problem import Problem, is_problem
from ..problems.symmetry import NoSymmetryError
from ..run import Row, Run
from ..states.starts import Law, is_law
from ..store.records import describe
from ..watch import to_host
from .precision import double, single
from .refinement import LEVELS, refined
from .resolution import first_resolution
from .solver import WORK, Solver

_LEAST = 1e-13  # of a tolerance


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

    It computes in float64, whatever JAX is set to (states come back as JAX is set, observations in
    float64). `run.info["resolution"]` has the orders of the start's rules by part, of E over x, of the mean
    u inside a reduced neuron, and the tolerance of the time steps. `observe` and `progress` are those of
    `evolve`; observers look once, at the finest level. Without a symmetry (d ≤ 3) all coordinates of w have
    nodes, which takes longest.

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
            f"limit(penalty) must be a functional such as 0.1 * wf.SecondMoment(), got {penalty!r}."
        )
    if tol < _LEAST:
        raise ValueError(f"limit(tol) must be {_LEAST:.1e} or more, as a risk is rounded, got {tol:g}.")
    observers = observers_by_name(observe)
    narrow, begun = jnp.result_type(float) == jnp.float32, time.monotonic()
    own, law = _coordinates(problem, start)
    if own is not problem and any(isinstance(term, Moment) for term in _terms(penalty)):
        raise ValueError(
            "limit(penalty) must not change under rotations, as SecondMoment and PathNorm do not; of a "
            "Moment that is not known. Give limit a problem.reduced(), and a Moment of its (a, s, r)."
        )
    show = sys.stderr.isatty() if progress is None else progress
    with jax.enable_x64(True) if narrow else nullcontext():
        solve = Solver(double(own), double(law), asked, alpha, penalty, show, work)
        run, error, finest = refined(solve, first_resolution(law, tol), tol)
        if probes and run.status == "ok":
            run = solve(finest, probes)
        run = _seen(run, asked, observers)
    found = {
        "error": error,
        "resolution": {name: finest.order(name) for name in finest.dimensions()},
        "expectation": f"Gauss quadrature of order {finest.x}",
        "expectation_error": error,
        "seconds": time.monotonic() - begun,
    }
    made = {"dynamics": run.provenance["dynamics"] | {"name": "limit", "tol": tol}}
    made["observers"] = {name: describe(fn) for name, fn in observers.items()}
    made["sources"] = ["mei2018", *run.provenance["sources"]]
    run = replace(run, info=run.info | found, provenance=run.provenance | made)
    if run.status == "ok" and not error <= tol:
        run = replace(run, status="stalled", message=_stalled(error, tol, work))
    return _single(run) if narrow else run


def _terms(penalty: AbstractFunctional | None) -> list[PyTree]:
    return jax.tree.leaves(penalty, is_leaf=lambda term: isinstance(term, Moment))


def _stalled(error: float, tol: float, work: float) -> str:
    known = f"to {error:.2g}" if math.isfinite(error) else "at one resolution only, so with no error"
    return (
        f"The limit is known {known}, not to tol = {tol:g}: the next level would take more work than allowed "
        f"({work:g} evaluations for a velocity, see limit(…, work=…)), or {LEVELS} levels were not enough. "
        "Ask for less, or take start.reduced().points(n) and wf.GradientFlow."
    )


def _coordinates(problem: Problem, start: Law) -> tuple[Problem, Law]:
    """The problem and start in which the limit is computed."""
    if start.neuron.with_order(1) != problem.neuron.with_order(1) or start.D != problem.D:
        raise ValueError(
            f"limit(start) must be a law of θ in R^{problem.D} for {problem.neuron!r}, got one in "
            f"R^{start.D} for {start.neuron!r}. Use wf.init(problem), and for a reduced problem "
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
                    f"The observer {changed[0]!r} returned an array of shape {seen[changed[0]].shape} at t = "
                    f"{row.t:.6g}, but {rows[0].observed[changed[0]].shape} before; one shape is needed."
                )
            rows.append(replace(row, observed=row.observed | seen))
    return replace(run, rows=tuple(rows))


def _single(run: Run) -> Run:
    rows = tuple(replace(row, state=single(row.state)) for row in run.rows)
    return replace(run, rows=rows, final=single(run.final))
