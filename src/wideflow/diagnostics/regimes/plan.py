"""What the kernels of a model will cost: how many rows and projections of its outputs are taken, and why."""

import math
from typing import NamedTuple

import numpy as np

from ..._checks import available_memory

ROWS = 256
_FEWEST_ROWS, _FEWEST = 32, 3  # rows, and projections: with fewer, their error could not be told
_GROUPS = 8
MEMORY = 2**32  # bytes of what a pass over the rows keeps, and at most a quarter of what is free
PASSES = 2**30  # bytes of what came back in several passes, at once
_AT_ONCE = 5e10  # operations: a second or two, up to which all outputs are taken
_SECONDS = 5e11  # operations: some ten seconds or two, up to which 256 rows are
# Times the operations of the gradient of the rows, beyond which outputs are projected: with the passes for
# outputs, hidden layers and the linearisation the report is then to take less than 20 gradients.
_GRADIENTS = 12.0
_KEPT = 3.0  # times what enters and leaves the layers: what else a pass keeps of it


Groups = list[np.ndarray]  # of vectors (k, O)


class Layer(NamedTuple):
    """A product with a weight matrix: of T positions a row, fan-in and units."""

    positions: int
    fan: int
    units: int


class KernelPlan(NamedTuple):
    """How both kernels (before and after) are computed: on `rows` rows, at most `batch` at once, by
    `projections` of the `outputs` outputs (as many: all of them, no sketch); `gradients` is the work in units
    of the gradient of those rows; `bytes` is the memory."""

    rows: int
    batch: int
    outputs: int
    projections: int
    gradients: float
    operations: float
    bytes: float

    @property
    def is_sketch(self) -> bool:
        return self.projections < self.outputs


def gradient_operations(layers: list[Layer], m: int) -> float:
    """6 m Σ_l T fan units: forward, back to what enters, and to the weights."""
    return 6.0 * m * sum(t * f * u for t, f, u in layers)


def kernel_operations(layers: list[Layer], m: int, projections: int) -> float:
    """Of one kernel: a pass forward, and for each projection one back and the products of A and B."""
    forward = 2.0 * m * sum(t * f * u for t, f, u in layers)
    products = sum(2.0 * _contraction(m, *layer) for layer in layers)
    return forward + projections * (forward + products)


def _contraction(m: int, t: int, f: int, u: int) -> float:
    if t == 1:
        return m * m * float(f + u)
    return min((float(m) * t) ** 2 * (f + u), (m * m * 0.5 + 3.0 * m * t) * f * u)


def planned(
    layers: list[Layer], itemsize: int, m: int, outputs: int, rows: int | None, projections: int | None
) -> KernelPlan:
    """The plan for m rows, of which `rows` are asked for (None: 256, fewer where that takes long), and
    `projections` of the outputs (None: all, fewer where that takes long)."""
    taken = min(m, ROWS if rows is None else rows)
    while rows is None and taken > _FEWEST_ROWS:
        if _cost(layers, taken, min(outputs, _FEWEST)) <= _SECONDS:
            break
        taken = max(_FEWEST_ROWS, taken // 2)
    kept = _KEPT * itemsize * sum(t * (f + u) for t, f, u in layers)
    most = min(MEMORY, 0.25 * available_memory())
    batch = int(max(2, min(taken, most // max(kept, 1.0))))
    s = _projections(layers, taken, outputs) if projections is None else min(projections, outputs)
    again = 1.0 if batch >= taken else math.ceil(taken / max(1, batch // 2)) - 1.0
    work = again * _cost(layers, taken, s)
    gradient = max(gradient_operations(layers, taken), 1.0)
    passes = min(PASSES, float(s) * batch * itemsize * sum(t * u for t, _, u in layers))
    return KernelPlan(taken, batch, outputs, s, work / gradient, work, kept * batch + passes)


def _cost(layers: list[Layer], m: int, projections: int) -> float:
    return 2.0 * kernel_operations(layers, m, projections)


def _projections(layers: list[Layer], m: int, outputs: int) -> int:
    most = max(_AT_ONCE, _GRADIENTS * gradient_operations(layers, m))
    start = _cost(layers, m, 0)
    each = max(_cost(layers, m, 1) - start, 1.0)
    fitting = int((most - start) / each)
    return outputs if fitting >= outputs else min(outputs, max(_FEWEST, fitting))


def projected(outputs: int, projections: int, seed: int) -> Groups:
    """Vectors v_k (s, O) with Σ_k v_k v_kᵀ = I/O in the mean: the axes over √O where s = O, else s
    orthonormal directions at random over √s, in groups from whose spread an error can be told.
    K = Σ_k (J v_k)(J v_k)ᵀ is the mean over outputs of the kernel."""
    if projections >= outputs:
        return [np.eye(outputs) / math.sqrt(outputs)]
    draw = np.random.default_rng(seed).normal(size=(outputs, projections))
    directions = np.linalg.qr(draw)[0].T / math.sqrt(projections)
    return np.array_split(directions, min(projections, _GROUPS))
