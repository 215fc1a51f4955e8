"""The mean-field limit to many digits: characteristics from Gauss nodes, refined until a tolerance holds."""

import math
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from .._checks import count, positive, times
from ..functionals.base import AbstractFunctional
from ..functionals.penalties import Moment
from ..loop import Observer
from ..problems.problem import Problem
from ..problems.radial import RadialNeuron
from ..problems.symmetry import NoSymmetryError
from ..run import Run
from ..states.starts import Law
from .precision import double, single
from .refinement import LEVELS, refined
from .resolution import first_resolution
from .solver import WORK, Solver

_LEAST = 1e-13  # of a tolerance


def limit(
    problem: Problem,
    start: Law,
    ts: Any,
    tol: float = 1e-6,
    *,
    alpha: float = 1.0,
    penalty: AbstractFunctional | None = None,
    observe: Mapping[str, Observer] | Iterable[Observer] = (),
    probes: int = 0,
    work: float = WORK,
    progress: bool | None = None,
) -> Run:
    """The infinite-width, infinite-sample gradient flow, with the risk to the absolute tolerance `tol`
    at all times `ts`.

    Gauss nodes of the start are carried along the flow as weighted particles, in the reduced coordinates
    where the problem has a symmetry (else in its own, for d ≤ 3). Orders of all rules and the time steps
    are refined until two levels differ little enough: `run.info["error"]` is the estimated error of
    the risk and `run.info["resolution"]` what it took. A run that could not reach the tolerance within
    `work` (evaluations of φ for one velocity) has status "stalled" and says how far it came.

    A start of several coordinates, of which a small part goes another way than the rest, has no panels: there
    the estimate can miss that part.

    - `alpha`, `penalty`: scale of the network, and a functional to add to the risk (λ·SecondMoment()).
    - `probes`: so many low-discrepancy points of the start are carried along without weight, for
      pictures of the moving density (`wf.density`).

    It computes in float64, whatever JAX is set to (states come back as JAX is set, observations in
    float64). `run.info["resolution"]` has the orders of the start's rules by part, of E over x, of the mean
    u inside a reduced neuron, and the tolerance of the time steps. `observe` and `progress` are those of
    `evolve`. Without a symmetry (d ≤ 3) all coordinates of w have nodes, which takes longest."""
    if not isinstance(problem, Problem) or not isinstance(start, Law):
        hint = " The limit starts from a law, not from neurons drawn from it." if callable(start) else ""
        raise ValueError(
            "limit(problem, start, ts) takes a wf.Problem and a law such as wf.init(problem), got "
            f"{type(problem).__name__} and {type(start).__name__}.{hint}"
        )
    asked, tol, work = times(ts), positive("limit(tol)", tol), positive("limit(work)", work)
    probes = count("limit(probes)", probes, least=0)
    if penalty is not None and not isinstance(penalty, AbstractFunctional):
        raise ValueError(
            f"limit(penalty) must be a functional such as 0.1 * wf.SecondMoment(), got {penalty!r}."
        )
    if tol < _LEAST:
        raise ValueError(f"limit(tol) must be {_LEAST:.1e} or more, as a risk is rounded, got {tol:g}.")
    narrow, begun = jnp.result_type(float) == jnp.float32, time.monotonic()
    own, law = _coordinates(problem, start)
    if own is not problem and any(isinstance(term, Moment) for term in _terms(penalty)):
        raise ValueError(
            "limit(penalty) must not change under rotations, as SecondMoment and PathNorm do not; of a "
            "Moment that is not known. Give limit a problem.reduced(), and a Moment of its (a, s, r)."
        )
    show = sys.stderr.isatty() if progress is None else progress
    with jax.enable_x64(True) if narrow else nullcontext():
        solve = Solver(double(own), double(law), asked, alpha, penalty, observe, show, work)
        run, error, finest = refined(solve, first_resolution(law, tol), tol)
        if probes and run.status == "ok":
            run = solve(finest, probes)
    found = {
        "error": error,
        "resolution": {name: finest.order(name) for name in finest.dimensions()},
        "expectation": f"Gauss quadrature of order {finest.x}",
        "expectation_error": error,
        "seconds": time.monotonic() - begun,
    }
    made = {"dynamics": run.provenance["dynamics"] | {"name": "limit", "tol": tol}}
    made["sources"] = ["mei2018", *run.provenance["sources"]]
    run = replace(run, info=run.info | found, provenance=run.provenance | made)
    if run.status == "ok" and not error <= tol:
        run = replace(run, status="stalled", message=_stalled(error, tol, work))
    return _single(run) if narrow else run


def _terms(penalty: AbstractFunctional | None) -> list[Any]:
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
    if isinstance(problem.neuron, RadialNeuron):
        return problem, start
    try:
        return problem.reduced(), start.reduced()
    except NoSymmetryError as error:
        if math.isinf(problem.d) or problem.d > 3 or problem.x.default_order() is None:
            raise NoSymmetryError(
                f"limit needs a symmetry, or d <= 3 with a law that has Gauss nodes. {error}"
            ) from error
        return problem, start


def _single(run: Run) -> Run:
    rows = tuple(replace(row, state=single(row.state)) for row in run.rows)
    return replace(run, rows=rows, final=single(run.final))
