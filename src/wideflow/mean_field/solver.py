"""The flow of the limit at one resolution."""

import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._tracing import on_device
from ..checkpoint import Checkpoint
from ..dynamics.flow import GradientFlow
from ..functionals.base import AbstractFunctional
from ..functionals.expectations import Quadrature
from ..functionals.host_modes import host_risk
from ..functionals.risk import Risk
from ..loop import evolve
from ..problems.neurons import AbstractNeuron
from ..problems.nodes import Nodes
from ..problems.problem import Problem
from ..problems.sphere_mean import is_broken_line
from ..progress import Part, clock
from ..run import Run
from ..states.marginals import Panels
from ..states.particles import Particles
from ..states.starts import Law
from .resolution import Resolution, first_resolution
from .spectral import carried, rows_of, spectrum, unfolded

if TYPE_CHECKING:
    import diffrax

WORK = 3e8  # particles × rows × nodes of a mean: about a second for a velocity on two cores
_CHEAP = 2e6  # of the same: compiling takes longer than this
_FEW = 512  # particles, which take next to no time by modes: fewer are padded to these
_MANY = 4096  # particles, which take as long as compiling: sizes are padded to multiples of a quarter of it
_LISTED = 1e7  # nodes of a start: no more of them are written down only to see which weigh next to nothing
_PAD = 32  # sizes are padded to powers of 2 times this, so that few shapes are compiled


def compared_times(ts: Float[np.ndarray, " k"]) -> Float[np.ndarray, " l"]:
    """The requested times, with others in between at which levels are compared too: 0, sixteenths of the
    whole and halves of the first of them. At one time alone two levels can agree by chance, where the
    difference of their risks changes its sign."""
    shares = np.concatenate([0.5 ** np.arange(8, 4, -1), np.arange(1, 17) / 16])
    extra = [t for t in shares * ts[-1] if np.min(np.abs(ts - t)) > t / 16]
    return np.unique(np.concatenate([[0.0], ts, extra]))


class StoppedError(Exception):
    """A solution was interrupted; `run` is what it had reached."""

    def __init__(self, run: Run):
        super().__init__(run.message)
        self.run = run


class Solver:
    """Solves at a resolution. With a checkpoint the solutions are kept in folders, numbered as they come: the
    same questions in the same order are then answered from there."""

    def __init__(self, problem, law, ts, alpha, penalty, show, work, checkpoint: Checkpoint | None = None):
        self.checkpoint, self.solved, self.begun = checkpoint, 0, time.monotonic()
        self.told: bool | Part = False
        self.problem, self.law, self.alpha, self.work = problem, law, alpha, work
        self.ts, self.penalty, self.show = compared_times(ts), penalty, show
        self.sizes: dict[int, float] = {}
        self.fixed = [n for n, m in zip(law.names, law.marginals, strict=True) if not m.spread]
        self.reduced = not problem.neuron.is_flat
        if not self.reduced or _has_no_nodes(problem):
            self.fixed.append("u")
        few = {name: marginal.points_of(3) for name, marginal in zip(law.names, law.marginals, strict=True)}
        start = law.nodes(few)
        self.modes = spectrum(problem, start) if self.reduced else None
        self.pairs = self.modes is not None and self.modes.pairs(start)
        self.starts: dict[tuple, Particles] = {}

    def first(self, tol: float) -> Resolution:
        """A first guess."""
        guess = first_resolution(self.law, tol)
        return guess if self.modes is None else self.modes.first(guess, tol)

    def way(self, resolution: Resolution) -> str:
        """How E over x is taken, in words."""
        by = "Gauss quadrature of order" if self.modes is None else "Hermite modes of degree <"
        return f"{by} {resolution.x}"

    def risk(self, resolution: Resolution) -> Risk:
        """The risk at these orders of x and u."""
        problem, _ = self.at(resolution)
        if self.modes is None:
            return Risk(problem, Quadrature(resolution.x))
        return Risk(problem, self.modes.expectation(resolution.x, resolution.u))

    def static_gap(self, run: Run, resolution: Resolution, other: Resolution) -> float:
        """How far the risk at the states of a run depends on the orders of x and u."""
        states: list[PyTree] = [run.rows[i].state for i in {0, len(run.rows) // 2, len(run.rows) - 1}]

        def risks(level: Resolution) -> np.ndarray:
            risk = self.risk(level)
            if self.modes is not None:
                return np.array([host_risk(risk.ways[0], s) for s in states])
            return np.array([float(risk.value(_rounded_up(s, risk.problem.neuron))) for s in states])

        return float(np.max(np.abs(risks(resolution) - risks(other))))

    def at(self, resolution: Resolution) -> tuple[Problem, Law]:
        if not self.reduced or self.modes is not None:
            return self.problem, self.law
        neuron = self.problem.neuron.with_order(resolution.u)
        problem = replace(self.problem, neuron=neuron)
        return problem, self.law.on(problem)

    def cost(self, resolution: Resolution) -> float:
        """Evaluations of φ for one velocity, or as much work."""
        if self.modes is not None:
            size = self.law.size(resolution.nodes)
            particles = size if size > _LISTED else self._start(resolution).n
            return self.modes.cost(particles, resolution)
        means = self.problem.neuron.with_order(resolution.u).evaluations
        return self.law.size(resolution.nodes) * self.rows(resolution.x) * means

    def rows(self, order: int) -> float:
        """How many points the rule of x has; ∞ if they are too many to store."""
        if order not in self.sizes:
            try:
                rule: PyTree = self.problem.x.rule(order)
                self.sizes[order] = len(rule[2])
            except ValueError:
                self.sizes[order] = math.inf
        return self.sizes[order]

    def say(self, what: str, resolution: Resolution, error: float) -> None:
        """A line on what is known now."""
        if self.show:
            orders = ", ".join(f"{n} {resolution.order(n):g}" for n in resolution.dimensions())
            spent = clock(time.monotonic() - self.begun)
            print(f"limit, {what}: risk to {error:.1g} ({orders}), {spent}", file=sys.stderr, flush=True)

    def tell(self, what: str, error: float = math.inf, after: float | None = None) -> None:
        """What the next solutions are for, and what is known so far, for their bars; `after`: how long all
        takes that comes after one of them, in units of it."""
        known = "" if math.isinf(error) else f", risk to {error:.1g} so far"
        self.told = Part(f"limit, {what}{known}", after) if self.show else False

    def __call__(self, resolution: Resolution, probes: int = 0, like: Resolution | None = None) -> Run:
        """The flow at this resolution; padded to the sizes of `like`, whose program it then shares, where
        that costs little."""
        if self.modes is not None:
            return self._by_modes(resolution, probes, like)
        problem, law = self.at(resolution)
        nodes = lambda level: law.nodes(level.nodes, self.alpha, least=_least(level))
        particles = nodes(resolution)
        rows: PyTree = problem.quadrature(resolution.x)
        sizes = (0, 0)
        if like is not None and self.cost(like) < _CHEAP:
            finer: PyTree = problem.quadrature(like.x)
            sizes = nodes(like).n, finer.m
        pad = lambda v, mode="edge": _padded(v, sizes[1], mode)
        rows = Nodes(*map(on_device, (pad(rows.x), pad(rows.y), pad(rows.weights, "constant"))))
        functional = eqx.tree_at(lambda risk: risk.ways[0].nodes, self.risk(resolution), rows)
        return self._flow(functional, particles, resolution.rtol, probes, sizes[0])

    def _by_modes(self, resolution: Resolution, probes: int, like: Resolution | None) -> Run:
        """The flow by modes, again with modes that reach further as long as neurons grow out of them."""
        assert self.modes is not None
        folded, particles = self._folds(resolution), self._start(resolution)
        shared = 0 if like is None else self._start(like).n
        least = max(_FEW, shared if shared <= _MANY else 0)
        self.modes.makes_room(particles)
        while True:
            run = self._flow(self.risk(resolution), particles, resolution.rtol, probes, least)
            if self.modes.holds(run):
                return unfolded(run, particles.n) if folded else run

    def _folds(self, level: Resolution) -> bool:
        return self.pairs and not _has_panels(level)

    def _start(self, level: Resolution) -> Particles:
        """The nodes of the start that are carried by modes."""
        key = (*level.nodes.items(), level.rtol)
        if key not in self.starts:
            nodes = self.law.nodes(level.nodes, self.alpha)
            self.starts[key] = nodes if _has_panels(level) else carried(nodes, level.rtol, self._folds(level))
        return self.starts[key]

    def _flow(
        self, functional: AbstractFunctional, particles: Particles, rtol: float, probes: int, least: int
    ) -> Run:
        """The flow of these particles, padded to `least` of them, and of probes."""
        theta, weights = rows_of(particles)
        if probes:
            theta = np.concatenate([theta, rows_of(self.law.points(probes))[0]])
        size, theta = len(theta), _padded(theta, least, "edge", self.modes is not None)
        weights = np.pad(weights, (0, len(theta) - len(weights)))
        particles = Particles(theta, weights, self.alpha, particles.neuron)
        if self.penalty is not None:
            functional = functional + self.penalty
        flow = GradientFlow(functional, rtol=rtol, solver=_method(rtol))
        run = _cut(evolve(flow, particles, self.ts, progress=self.told, checkpoint=self._next()), size)
        if run.status == "interrupted":
            raise StoppedError(run)
        return run

    def _next(self) -> Checkpoint | None:
        """The place of the next solution."""
        if self.checkpoint is None:
            return None
        place = Path(self.checkpoint.directory) / f"{self.solved:03d}"
        self.solved += 1
        return Checkpoint(place, self.checkpoint.every)


def _has_no_nodes(problem: PyTree) -> bool:
    """Whether the mean inside a reduced neuron is in closed form."""
    neuron = problem.neuron
    return len(neuron.blocks) == 1 and is_broken_line(neuron.base.activation)


def _least(level: Resolution) -> float:
    """The least weight of a node that is kept: of panels every one, as their places are read later."""
    return 0.0 if _has_panels(level) else 1e-3 * level.rtol**2


def _has_panels(level: Resolution) -> bool:
    return any(isinstance(order, Panels) for order in level.nodes.values())


def _padded(
    array: Array | np.ndarray, least: int = 0, mode: Any = "constant", by_modes: bool = False
) -> np.ndarray:
    """Rows up to the next size that is compiled, as copies of the last one or zeros."""
    size, wanted = _PAD, max(len(array), least)
    while size < wanted:
        size += min(size, _MANY // 4) if by_modes else size
    return np.pad(np.asarray(array), [(0, size - len(array))] + [(0, 0)] * (array.ndim - 1), mode)


def _rounded_up(state: PyTree, neuron: AbstractNeuron) -> Particles:
    """The state with weightless particles up to the next size that is compiled."""
    theta, weights = rows_of(state)
    theta = _padded(theta, 0, "edge")
    return Particles(theta, np.pad(weights, (0, len(theta) - len(weights))), state.alpha, neuron)


def _cut(run: Run, n: int) -> Run:
    """The run with the first n particles of its states, without the padding."""

    def cut(state: PyTree) -> PyTree:
        if not state:
            return state
        theta, weights = rows_of(state)
        return Particles(theta[:n], weights[:n], state.alpha, state.neuron)

    rows = tuple(replace(row, state=cut(row.state)) for row in run.rows)
    return replace(run, rows=rows, final=cut(run.final))


def _method(rtol: float) -> "diffrax.AbstractERK | None":
    """Tsit5, or a method of order 8 where many digits are asked for."""
    import diffrax

    return diffrax.Dopri8() if rtol < 1e-8 else None
