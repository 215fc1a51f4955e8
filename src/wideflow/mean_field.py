"""The mean-field limit to many digits: characteristics from Gauss nodes, refined until a tolerance holds."""

import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._checks import count, positive, times
from .dynamics.flow import GradientFlow
from .functionals.base import AbstractFunctional
from .functionals.expectations import Quadrature
from .functionals.risk import Risk
from .loop import Observer, evolve
from .problems.nodes import Nodes
from .problems.problem import Problem
from .problems.radial import RadialNeuron, radius_order
from .problems.symmetry import NoSymmetryError
from .run import Run
from .states.marginals import Normal, Radius
from .states.particles import Particles
from .states.starts import Law

_GROWTH = 1.5  # of an order that is tried alone, to see its error
_FINER = 1.25  # of all orders, from the level that is checked to the one that is returned
_SAFETY = 3.0  # on the error of the mean inside a neuron, which is not followed along the flow
_LEVELS = 8
_LEAST_RTOL = 1e-13
_SCALE = 0.1  # errors are taken to fall like _SCALE · exp(−κ order): that of a rule with no node at all
_WORK = 3e8  # particles × rows × nodes of a mean: about a second for a velocity on two cores
_CHEAP = 2e6  # of the same: compiling takes longer than this
_PAD = 128  # sizes are padded to powers of 2 times this, so that few shapes are compiled


@dataclass(frozen=True)
class Resolution:
    """How finely the limit is resolved: Gauss orders of the start by part, of E over x and of the mean
    in a reduced neuron, and the tolerance of the time steps."""

    nodes: dict[str, int]
    x: int
    u: int
    rtol: float

    def dimensions(self) -> list[str]:
        return [*self.nodes, "x", "u", "time"]

    def order(self, name: str) -> float:
        return {**self.nodes, "x": self.x, "u": self.u, "time": self.rtol}[name]

    def with_order(self, name: str, order: Any) -> "Resolution":
        if name == "time":
            return replace(self, rtol=order)
        if name == "x":
            return replace(self, x=int(order))
        if name == "u":
            return replace(self, u=_whole(order))
        return replace(self, nodes=self.nodes | {name: int(order)})

    def scaled(self, names: Iterable[str], factor: float) -> "Resolution":
        """Orders times `factor` > 1; the tolerance of the time steps by a quarter."""
        other = self
        for name in names:
            now = self.order(name)
            finer = max(now / 4, _LEAST_RTOL) if name == "time" else math.ceil(factor * now)
            other = other.with_order(name, finer)
        return other


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
    work: float = _WORK,
    progress: bool | None = None,
) -> Run:
    """The infinite-width, infinite-sample gradient flow, with the risk to the absolute tolerance `tol`
    at all times `ts`.

    Gauss nodes of the start are carried along the flow as weighted particles, in the reduced coordinates
    where the problem has a symmetry (else in its own, for d ≤ 3). Orders of all rules and the time steps
    are refined until two levels differ little enough: `run.info["error"]` is the estimated error of
    the risk and `run.info["resolution"]` what it took. A run that could not reach the tolerance within
    `work` (evaluations of φ for one velocity) has status "stalled" and says how far it came.

    - `alpha`, `penalty`: scale of the network, and a functional to add to the risk (λ·SecondMoment()).
    - `probes`: so many low-discrepancy points of the start are carried along without weight, for
      pictures of the moving density (`wf.density`).

    It computes in float64, whatever JAX is set to; `observe` and `progress` are those of `evolve`."""
    if not isinstance(problem, Problem) or not isinstance(start, Law):
        raise ValueError(
            "limit(problem, start, ts) takes a wf.Problem and a law such as wf.init(problem), got a "
            f"{type(problem).__name__} and a {type(start).__name__}."
        )
    asked, tol = times(ts), positive("limit(tol)", tol)
    single = jnp.result_type(float) == jnp.float32
    floor = 4 * float(jnp.finfo(jnp.float32).eps) if single else 1e-13
    if tol < floor:
        hint = ' Set jax.config.update("jax_enable_x64", True) for more digits.' if single else ""
        raise ValueError(f"limit(tol) must be {floor:.1e} or more, as a risk is rounded, got {tol:g}.{hint}")
    own, law = _coordinates(problem, start)
    show = sys.stderr.isatty() if progress is None else progress
    with jax.enable_x64(True) if single else nullcontext():
        solve = _Solver(_double(own), _double(law), asked, alpha, penalty, observe, show, work)
        run, error, finest = _refine(solve, _first(law, tol), tol)
        if probes and run.status == "ok":
            run = solve(finest, count("limit(probes)", probes))
    found = {
        "error": error,
        "resolution": {name: finest.order(name) for name in finest.dimensions()},
        "expectation": f"Gauss quadrature of order {finest.x}",
        "expectation_error": error,
    }
    made = {"dynamics": run.provenance["dynamics"] | {"name": "limit", "tol": tol}}
    made["sources"] = ["mei2018", *run.provenance["sources"]]
    run = replace(run, info=run.info | found, provenance=run.provenance | made)
    if run.status == "ok" and not error <= tol:
        message = (
            f"The limit is known to {error:.2g}, not to tol = {tol:g}. Either the next level would take more "
            f"work than allowed ({work:g} evaluations for a velocity): see limit(…, work=…); or {_LEVELS} "
            "levels were not enough, as where a start splits. Ask for less, or take "
            "start.reduced().points(n) and wf.GradientFlow."
        )
        run = replace(run, status="stalled", message=message)
    return _single(run) if single else run


def _coordinates(problem: Problem, start: Law) -> tuple[Problem, Law]:
    """The problem and start in which the limit is computed."""
    kind = lambda neuron: getattr(neuron, "blocks", neuron)  # of a reduced one, whatever its order
    if kind(start.neuron) != kind(problem.neuron) or start.D != problem.D:
        raise ValueError(
            f"limit(start) must be a law of θ in R^{problem.D} for {problem.neuron!r}, got one in "
            f"R^{start.D} for {start.neuron!r}. Use wf.init(problem)."
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


def _first(law: Law, tol: float) -> Resolution:
    """A first guess: more nodes for more digits, fewer for coordinates of small spread."""
    p = 4 + 0.6 * math.log10(1 / tol)
    nodes = {}
    for name, marginal in zip(law.names, law.marginals, strict=True):
        spread = 1.0
        if isinstance(marginal, Normal):
            spread = min(1.0, 2 * float(marginal.sd))
        if isinstance(marginal, Radius):
            spread = min(1.0, 2 / math.sqrt(4 + marginal.dim))
        nodes[name] = max(2, round(p * spread)) if marginal.points_of(99) == 99 else marginal.points_of(99)
    return Resolution(nodes, round(2 * p), _whole(2.5 * p), 0.1 * tol)


def _whole(order: float) -> int:
    """An order of the mean in a neuron, in steps of 8: each is compiled anew."""
    return 8 * math.ceil(order / 8)


class _Solver:
    """Solves at a resolution."""

    def __init__(self, problem, law, ts, alpha, penalty, observe, show, work):
        self.problem, self.law, self.ts, self.alpha, self.work = problem, law, ts, alpha, work
        self.penalty, self.observe, self.show = penalty, observe, show
        self.fixed = [n for n, m in zip(law.names, law.marginals, strict=True) if m.points_of(99) != 99]
        self.reduced = isinstance(problem.neuron, RadialNeuron)
        if not self.reduced:
            self.fixed.append("u")

    def static_gap(self, run: Run, resolution: Resolution, other: Resolution) -> float:
        """How far the risk at the states of a run depends on the orders of x and u."""
        states: list[Any] = [run.rows[i].state for i in {0, len(run.rows) // 2, len(run.rows) - 1}]

        def risks(level: Resolution) -> np.ndarray:
            problem, _ = self.at(level)
            risk = Risk(problem, Quadrature(level.x))
            same = [Particles(s.theta, s.weights, s.alpha, problem.neuron) for s in states]
            return np.array([float(risk.value(s)) for s in same])

        return float(np.max(np.abs(risks(resolution) - risks(other))))

    def at(self, resolution: Resolution) -> tuple[Problem, Law]:
        if not self.reduced:
            return self.problem, self.law
        neuron = self.problem.neuron.coarser(resolution.u)
        problem = replace(self.problem, neuron=neuron)
        return problem, self.law.on(problem)

    def cost(self, resolution: Resolution) -> float:
        """Evaluations of φ for one velocity."""
        x = self.problem.x
        blocks = getattr(x, "blocks", ()) if self.reduced else ()
        signal = x.d - len(blocks)
        rows = float(resolution.x) ** signal * math.prod(radius_order(resolution.x, dim) for dim in blocks)
        means = float(resolution.u) ** len(blocks) if self.reduced else 1.0
        return self.law.size(resolution.nodes) * rows * means

    def say(self, level: int, resolution: Resolution, error: float) -> None:
        if self.show:
            orders = ", ".join(f"{n} {resolution.order(n):g}" for n in resolution.dimensions())
            print(f"limit, level {level + 1}: risk to {error:.1g} ({orders})", file=sys.stderr, flush=True)

    def __call__(self, resolution: Resolution, probes: int = 0, like: Resolution | None = None) -> Run:
        """The flow at this resolution; padded to the sizes of `like`, whose program it then shares, where
        that costs little."""
        problem, law = self.at(resolution)
        nodes = lambda level: law.nodes(level.nodes, self.alpha, least=1e-3 * level.rtol**2)
        particles = nodes(resolution)
        theta, weights = particles.theta, particles.weights
        rows: Any = problem.quadrature(resolution.x)
        sizes = (0, 0)
        if like is not None and self.cost(like) < _CHEAP:
            finer: Any = problem.quadrature(like.x)
            sizes = nodes(like).n, finer.m
        if probes:
            theta = jnp.concatenate([theta, law.points(probes).theta])
        size, theta = len(theta), _padded(theta, sizes[0], "edge")
        weights = _padded(weights, len(theta))
        particles = Particles(theta, weights, self.alpha, particles.neuron)
        pad = lambda v, mode="edge": _padded(v, sizes[1], mode)
        rows = Nodes(pad(rows.x), pad(rows.y), pad(rows.weights, "constant"))
        functional: AbstractFunctional = Risk(problem, Quadrature(resolution.x)).on(rows)
        if self.penalty is not None:
            functional = functional + self.penalty
        flow = GradientFlow(functional, rtol=resolution.rtol, solver=_method(resolution.rtol))
        return _cut(evolve(flow, particles, self.ts, observe=self.observe, progress=False), size)


def _padded(array: Any, least: int = 0, mode: str = "constant") -> Any:
    """Rows up to the next size that is compiled, as copies of the last one or zeros."""
    size = _PAD
    while size < max(len(array), least):
        size *= 2
    return jnp.pad(array, [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1), mode=mode)


def _cut(run: Run, n: int) -> Run:
    """The run with the first n particles of its states, without the padding."""

    def cut(state: Any) -> Any:
        return Particles(state.theta[:n], state.weights[:n], state.alpha, state.neuron) if state else state

    rows = tuple(replace(row, state=cut(row.state)) for row in run.rows)
    return replace(run, rows=rows, final=cut(run.final))


def _method(rtol: float) -> Any:
    """Tsit5, or a method of order 8 where many digits are asked for."""
    import diffrax

    return diffrax.Dopri8() if rtol < 1e-8 else None


def _refine(solve: _Solver, first: Resolution, tol: float) -> tuple[Run, float, Resolution]:
    """Levels until one and the next finer differ by tol at most; (run, its error, its resolution).

    A level refines the nodes of the start and the time steps. The error that is returned is that of the
    coarser of the last two, so it is on the safe side. The orders of E over x and of the mean inside
    the neuron are the same in both; their error is looked at apart, at the states of the run."""
    moving = [name for name in (*first.nodes, "time") if name not in solve.fixed]
    still = [name for name in ("x", "u") if name not in solve.fixed]
    base = solve(first)
    if base.status != "ok":
        return base, math.inf, first
    check = _predicted(solve, first, base, tol, moving, still)
    run, error, resolution, before, growth = base, math.inf, first, None, _FINER
    for level in range(_LEVELS):
        finer = check.scaled(moving, growth)
        if solve.cost(finer) > solve.work:
            break
        before = solve(check, like=finer) if before is None else before
        after = solve(finer)
        if after.status != "ok":
            return after, math.inf, finer
        inner = {n: _SAFETY * solve.static_gap(after, finer, finer.scaled([n], _GROWTH)) for n in still}
        gap = _gap(after, before)
        run, resolution, error = after, finer, gap + sum(inner.values()) + 1e-15
        solve.say(level, finer, error)
        if error <= tol:
            break
        coarse = [name for name in still if inner[name] > 0.2 * tol]
        check, before = finer.scaled(coarse, _GROWTH), None if coarse else after
        growth = _FINER if gap < 30 * tol else 2.0  # a start that splits has no spectral convergence
    return run, error, resolution


def _predicted(
    solve: _Solver, first: Resolution, base: Run, tol: float, moving: list[str], still: list[str]
) -> Resolution:
    """The orders that should bring every dimension's share of the error to its part of tol: each is
    refined alone, which shows its error, and errors fall exponentially with the order. The two
    quadratures are refined at the states of the first run, without a run of their own."""
    share, found = tol / (2 * len(moving + still)), first
    for name in [name for name in moving + still if name != "time"]:
        alone = first.scaled([name], _GROWTH)
        seen = solve.static_gap(base, first, alone) if name in still else _gap(solve(alone), base)
        rate = math.log(_SCALE / min(max(seen, 1e-16), 0.5 * _SCALE)) / first.order(name)
        needed = min(math.ceil(math.log(_SCALE / share) / rate), 4 * int(first.order(name)))
        found = found.with_order(name, max(needed, first.u if name == "u" else 1))
    return found


def _gap(run: Run, other: Run) -> float:
    """The largest difference of the risk over all times."""
    if run.status != "ok" or other.status != "ok":
        return math.inf
    return float(np.max(np.abs(run["risk"] - other["risk"])))


def _cast(tree: Any, of: Any, to: Any) -> Any:
    return jax.tree.map(lambda v: v.astype(to) if getattr(v, "dtype", None) == of else v, tree)


def _double(tree: Any) -> Any:
    return _cast(tree, jnp.float32, jnp.float64)


def _single(run: Run) -> Run:
    rows = tuple(replace(row, state=_cast(row.state, jnp.float64, jnp.float32)) for row in run.rows)
    return replace(run, rows=rows, final=_cast(run.final, jnp.float64, jnp.float32))
