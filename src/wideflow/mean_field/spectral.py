"""The limit by Hermite modes: where it applies, how far modes reach, which nodes of the start are carried."""

import math
from dataclasses import replace

import jax
import numpy as np
from jaxtyping import PyTree

from ..functionals.modes import ByModes, ModesOf, why_not
from ..problems.hermite_modes import UnresolvedError, spread
from ..problems.problem import Problem
from ..run import Run
from ..states.particles import Particles
from .resolution import Resolution, whole

_ROOM = 1.25  # times the longest neuron seen: how far the modes reach
_LIGHT = 0.1  # times the tolerance of the time steps: nodes that weigh less together are left out
_RATE = 0.4  # at which series in ρ̂ fall, at the reach that their order is told for
_SAME = 1e-9  # nodes that are this near are one


class Spectrum:
    """How a limit by modes is computed. `reach` grows with the longest neuron seen; the same solutions in the
    same order make it the same."""

    def __init__(self, problem: Problem, reach: float):
        self.problem, self.reach = problem, reach
        self.odd = [parity.first for parity in self._bound(8, 8).parities] == [1]

    def _bound(self, degree: int, order: int) -> ByModes:
        (way,) = self.expectation(degree, order).bind(self.problem)
        assert isinstance(way, ByModes)
        return way

    def expectation(self, degree: int, order: int) -> ModesOf:
        """Modes with as many Chebyshev polynomials as come as far at this reach as `order` of them do where
        each brings exp(−0.4), as for erf at a reach of 5."""
        rate = math.asinh(math.sqrt(spread(self.reach)) / self.reach)
        return ModesOf(degree, math.ceil(_RATE * order / rate), self.reach)

    def first(self, resolution: Resolution, tol: float) -> Resolution:
        """A first guess of the degree, and the order that a series in ρ̂ needs for `tol`."""
        digits = max(math.log10(1 / tol), 0.0)  # of a risk of order 1; more are found to be needed
        return replace(resolution, x=round(12 + 5 * digits), u=whole((digits + 1) * math.log(10) / _RATE))

    def cost(self, particles: int, resolution: Resolution) -> float:
        """Of a velocity, as evaluations of φ: eight multiplications take as long as one, measured."""
        return particles * resolution.x * resolution.u / (8 if self.odd else 4)

    def holds(self, run: Run) -> bool:
        """Whether no neuron of the run went further than the modes reach; else they reach further now."""
        if run.status != "ok":
            return True
        longest = max(_longest(state) for state in run.states)
        if longest < self.reach:
            return True
        self.reach = max(1.5 * self.reach, _ROOM * longest)
        return False

    def makes_room(self, particles: Particles) -> None:
        """Let the modes reach beyond a start."""
        self.reach = max(self.reach, _ahead(particles))

    def pairs(self, particles: Particles) -> bool:
        """Whether the nodes are symmetric under (a, s, r) → (−a, −s, r), φ being odd."""
        if not self.odd or particles.parts.a is None:
            return False
        theta, weights = rows_of(particles)
        rows = np.column_stack([theta, weights])
        mirrored = rows * np.array([-1.0, -1.0, 1.0, 1.0])
        first, second = (_sorted(v) for v in (rows, mirrored))
        return bool(np.allclose(first, second, rtol=0, atol=_SAME))


def spectrum(problem: Problem, start: Particles) -> Spectrum | None:
    """The modes of a reduced problem, reaching beyond a start; None where it has none."""
    if why_not(problem) is not None:
        return None
    try:
        return Spectrum(problem, _ahead(start))
    except UnresolvedError:
        return None


def carried(nodes: Particles, rtol: float, folded: bool) -> Particles:
    """The nodes of the start that are carried: without those that weigh next to nothing, and if `folded` one
    of each pair (a, s, r), (−a, −s, r), which are the same neuron if φ is odd."""
    theta, weights = rows_of(nodes)
    if folded:
        a, s = theta[:, 0], theta[:, 1]
        middle = np.abs(a) < _SAME
        kept = (a >= _SAME) | (middle & (s > -_SAME))
        alone = middle & (np.abs(s) < _SAME)
        theta, weights = theta[kept], np.where(alone, weights, 2 * weights)[kept]
    influence = weights * (1 + np.sum(theta**2, axis=1))
    order = np.argsort(influence)
    kept = np.sort(order[np.cumsum(influence[order]) >= _LIGHT * rtol])
    return Particles(theta[kept], weights[kept] / weights[kept].sum(), nodes.alpha, nodes.neuron)


def rows_of(particles: Particles) -> tuple[np.ndarray, np.ndarray]:
    """θ (n, D) and the weights, on the host, where nothing is compiled for each number of them."""
    here = jax.device_get(particles)
    return np.asarray(here.theta), np.asarray(here.weights)


def unfolded(run: Run, n: int) -> Run:
    """The run with (−a, −s, r) beside each (a, s, r) of the first n particles, half of its weight for each:
    the law itself."""

    def both(state: PyTree) -> PyTree:
        if not state:
            return state
        theta, weights = rows_of(state)
        theta = np.concatenate([theta, theta[:n] * np.array([-1.0, -1.0, 1.0])])
        return Particles(theta, np.append(weights, weights[:n]) / 2, state.alpha, state.neuron)

    rows = tuple(replace(row, state=both(row.state)) for row in run.rows)
    return replace(run, rows=rows, final=both(run.final))


def _sorted(rows: np.ndarray) -> np.ndarray:
    keys = np.round(rows / _SAME) + 0.0  # no −0
    return rows[np.lexsort(keys.T)]


def _longest(state: PyTree) -> float:
    return float(np.max(np.hypot(*np.asarray(state.parts.w))))


def _ahead(start: Particles) -> float:
    return 1.0 + 1.5 * _longest(start)
