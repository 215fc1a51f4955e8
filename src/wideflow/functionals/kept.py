"""E over weighted data for measures whose points do not move, such as densities on a grid: their features are
taken once and kept."""

import math
import weakref

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._checks import is_traced
from .._tracing import jit
from ..problems.neurons import AbstractNeuron
from ..states.chunks import chunk_rows, map_rows
from ..states.grid import GridDensity, is_grid
from ..states.measure import AbstractMeasure
from .expectations import AbstractByNodes, AbstractExpectation

MOST_KEPT = 2**28  # bytes of features; beyond, they are taken anew each time


class OnCells(AbstractExpectation):
    """E over weighted data of densities on one grid, by σ*(x_i; θ_c) of all rows and cells: the risk costs a
    product with this matrix and Ψ at the cells two, whatever the neuron costs. Other grids and other points
    are left to `by`; inside compiled code, where numbers cannot be compared, those of as many are taken for
    the grid's own."""

    by: AbstractByNodes
    features: Float[Array, "n m *outputs"]
    centres: PyTree

    @property
    def sample(self):  # type: ignore[override]
        return self.by.sample

    def _outputs(self, density: AbstractMeasure) -> Array:
        """f on all rows."""
        return density.alpha * jnp.tensordot(density.weights, self.features, axes=1)

    def _has(self, parts: PyTree) -> bool:
        """Whether these are the centres of the cells."""
        pairs = list(zip(jax.tree.leaves(parts), jax.tree.leaves(self.centres), strict=True))
        if any(one.shape != other.shape for one, other in pairs):
            return False
        return any(map(is_traced, jax.tree.leaves(pairs))) or all(
            np.array_equal(one, other) for one, other in pairs
        )

    def risk(self, state):
        if not self._has(state.parts):
            return self.by.risk(state)
        nodes = self.by.nodes.astype(self.features.dtype)
        loss = self.by.problem.loss(self._outputs(state), nodes.y)
        return jnp.sum(nodes.weights * loss) + self.by.least

    def potential(self, parts, particles):
        """Ψ at the cells, or by `by` elsewhere."""
        if not (self._has(parts) and self._has(particles.parts)):
            return self.by.potential(parts, particles)
        nodes = self.by.nodes.astype(self.features.dtype)
        u = self.by.problem.loss.signal(self._outputs(particles), nodes.y)
        return -jnp.tensordot(self.features, (u.T * nodes.weights).T, axes=self.features.ndim - 1)

    def drift(self, particles, scale=1.0):
        return self.by.drift(particles, scale)

    def v(self, parts):
        return self.by.v(parts)

    def u(self, parts, others):
        return self.by.u(parts, others)

    def handles(self, state):
        return self.by.handles(state)

    def error(self, state):
        return self.by.error(state)

    def points(self):
        return self.by.points()

    @property
    def way(self):
        return self.by.way


def on_cells(by: AbstractExpectation, state: AbstractMeasure) -> AbstractExpectation:
    """E for densities on the grid of `state`: with kept features where these cost a mean each and take at
    most `MOST_KEPT` bytes, else as it is."""
    if not (isinstance(by, AbstractByNodes) and is_grid(state)) or state.neuron.fan == 1:
        return by
    numbers = math.prod(state.mass.shape[-state.D :]) * by.nodes.m * state.neuron.outputs
    if numbers * state.dtype.itemsize > MOST_KEPT:
        return by
    return OnCells(by, _kept(by, state), state.parts)


_known: dict[int, tuple] = {}  # of the last grid that was asked for, by the rows; they go when these go


def _kept(by: AbstractByNodes, state: GridDensity) -> Array:
    x, grid = by.nodes.x, (state.low, state.high)
    if is_traced(x) or any(map(is_traced, grid)):
        return _features(state.neuron, state.parts, x.astype(state.dtype))
    place = state.neuron, state.mass.shape, state.dtype, *(tuple(end.tolist()) for end in grid)
    found = _known.get(id(x))
    if found is None or found[0] != place:
        if found is None:
            weakref.finalize(x, _known.pop, id(x), None)
        found = _known[id(x)] = place, _features(state.neuron, state.parts, x.astype(state.dtype))
    return found[1]


@jit
def _features(neuron: AbstractNeuron, parts: PyTree, x: Array) -> Array:
    """σ*(x_i; θ_c), a chunk of rows at a time."""
    n = jax.tree.leaves(parts)[0].shape[-1]
    rows = chunk_rows(len(x), n * neuron.outputs * neuron.fan, x.shape[1], x.dtype)
    by_row = map_rows(lambda x: jnp.swapaxes(neuron.features(parts, x), 0, 1), x, rows)
    return jnp.swapaxes(by_row, 0, 1)
