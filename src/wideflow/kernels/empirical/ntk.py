"""The empirical tangent kernel K(x, x') = Σ_p rate_p ∂_p f(x) ∂_p f(x')ᵀ of any JAX function f(params, x)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ..._checks import count, fits, nearest
from ..._shown import shown
from ..function import Batch, Model, model, samples
from ..parameters import check_finite, rates_of
from ..tracing import is_traced
from .jacobians import contraction_diagonal, contraction_strip, products_diagonal, products_strip
from .plan import BUDGET, METHODS, Plan, planned

FORMS = ("full", "trace", "diagonal")


def empirical_ntk(
    f: Callable,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    form: str = "full",
    rates: PyTree = None,
    method: str = "auto",
    memory: int | None = None,
    per_leaf: bool = False,
) -> PyTree:
    """K(x, x') = Σ_p rate_p ∂_p f(x) ∂_p f(x')ᵀ between samples x1 (m1, …) and x2 (m2, …), or x1 itself.

    `f(params, x)` is any JAX function that acts row by row on a batch: (m,), (m, O), or more axes that are
    flattened to O. `params` is a pytree; leaves that are not real floating arrays are held fixed.

    - form "full": (m1, m2, O, O), or (m1, m2) for one output;
      "trace": (m1, m2), the *mean* over outputs of K_oo;
      "diagonal": K(x_i, x_i), (m, O, O), or (m,) for one output.
    - rates: a number or a tree of numbers >= 0 that begins like params; 1 by default.
    - method: "contraction" multiplies Jacobians of tiles of samples; "products" pulls each output of each
      sample back to the parameters and pushes it forward through all samples; "auto" takes the cheaper one
      that fits `memory` (bytes beside the kernel, 512 MiB by default). `plan` says why.
    - per_leaf: a tree like params of kernels, whose sum is the kernel.

    It follows the dtype of params (at least float32), and compiles once for an f and a shape. Inside jit,
    grad and vmap it is planned from shapes alone, all of a symmetric kernel is computed, and only shapes are
    checked.

    >>> wf.empirical_ntk(lambda params, x: x @ params, jnp.ones(3), jnp.eye(3))  # of a linear f: ⟨x, x'⟩
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float64)"""
    task = _task(f, params, x1, x2, form, method, memory, per_leaf)
    rate = rates_of(rates, task.model.moving).astype(task.model.dtype)
    m1, m2, O = len(task.x1), len(task.x2), task.model.outputs  # noqa: E741
    copies = len(task.model.leaves) if per_leaf else 1
    entries = m1 * O * O if form == "diagonal" else m1 * m2 * (1 if form == "trace" else O * O)
    hint = "Try form='trace', fewer samples at a time, or a wf.kernels.KernelOperator, which holds no kernel."
    fits("The kernel", 2.0 * copies * entries * task.model.dtype.itemsize, hint)
    if task.model.traced or is_traced(rate):
        arrays = _traced_diagonal(task, rate) if form == "diagonal" else _traced_matrix(task, rate)
    else:
        kernels = _diagonal(task, rate) if form == "diagonal" else _matrix(task, rate)
        _check_finite(kernels, form, x2 is None)
        arrays = [jnp.asarray(kernel) for kernel in kernels]
    if O == 1 and form != "trace":
        arrays = [kernel[..., 0, 0] for kernel in arrays]
    return jax.tree.unflatten(jax.tree.structure(task.model.moving), arrays) if per_leaf else arrays[0]


def plan(
    f: Callable,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    form: str = "full",
    method: str = "auto",
    memory: int | None = None,
    per_leaf: bool = False,
) -> Plan:
    """How `empirical_ntk` would compute this kernel, and why; nothing of it is computed."""
    return _task(f, params, x1, x2, form, method, memory, per_leaf).plan


class _Task(NamedTuple):
    model: Model
    x1: Batch
    x2: Batch
    symmetric: bool
    form: str
    per_leaf: bool
    plan: Plan


def _task(
    f: Callable,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None,
    form: str,
    method: str,
    memory: int | None,
    per_leaf: bool,
) -> _Task:
    for name, value, known in (("form", form, FORMS), ("method", method, ("auto", *METHODS))):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}, got {shown(value)}.{nearest(value, known)}")
    budget = BUDGET if memory is None else count("memory", memory)
    rows = samples("x1", x1)
    columns = rows if x2 is None else samples("x2", x2)
    if x2 is not None and form == "diagonal":
        raise ValueError("form='diagonal' is K(x_i, x_i) of x1 alone, got an x2. Try form='full' or no x2.")
    if columns.shape[1:] != rows.shape[1:] or columns.dtype != rows.dtype:
        raise ValueError(
            "x1 and x2 must be samples of one kind, got shapes and dtypes "
            f"{rows.shape} {rows.dtype} and {columns.shape} {columns.dtype}."
        )
    check_finite("params", params, "Did training diverge? Take parameters from before it did.")
    wrapped = model(f, params, rows if len(rows) > 1 or x2 is None else _joined(rows, columns[:1]))
    shape = (len(rows), len(columns), x2 is None)
    chosen = planned(wrapped, rows, *shape, form, per_leaf, method, budget)
    return _Task(wrapped, rows, columns, x2 is None, form, per_leaf, chosen)


def _joined(rows: Batch, others: Batch) -> Batch:
    on_host = isinstance(rows, np.ndarray) and isinstance(others, np.ndarray)
    return np.concatenate([rows, others]) if on_host else jnp.concatenate([rows, others])


def _tiles(rows: Batch, size: int) -> Array:
    """Rows in tiles (n, size, …), the last filled up with copies of the last row."""
    last = np.minimum(np.arange(-(-len(rows) // size) * size), len(rows) - 1)
    return jnp.asarray(rows[last]).reshape(-1, size, *rows.shape[1:])


def _padded(rows: np.ndarray, size: int) -> np.ndarray:
    """The same of indices, on the host."""
    n = -(-len(rows) // size)
    return np.pad(rows, [(0, n * size - len(rows))], mode="edge").reshape(n, size)


def _pairs(task: _Task) -> tuple[np.ndarray, np.ndarray]:
    """All (sample, output), samples first, in tiles: indices of samples and of outputs."""
    pair = _padded(np.arange(len(task.x1) * task.model.outputs), task.plan.tile)
    return pair // task.model.outputs, pair % task.model.outputs


def _matrix(task: _Task, rates: Array) -> list[np.ndarray]:
    """Strip by strip of rows; of a symmetric kernel only the columns from the strip's first sample on."""
    (m1, m2), O, plan = (len(task.x1), len(task.x2)), task.model.outputs, task.plan  # noqa: E741
    trace, by_pairs = task.form == "trace", plan.method == "products"
    copies = len(task.model.leaves) if task.per_leaf else 1
    shape = (m1, m2) if trace else (m1 * O, m2, O)
    kernels = [np.zeros(shape, task.model.dtype) for _ in range(copies)]
    columns = _tiles(task.x2, plan.columns)
    which, outputs = _pairs(task) if by_pairs else (_padded(np.arange(m1), plan.tile), None)
    for k, rows in enumerate(which):
        first = int(rows[0]) // plan.columns if task.symmetric else 0
        pairs = () if outputs is None else (jnp.asarray(outputs[k], jnp.int32),)
        strip: PyTree = products_strip if by_pairs else contraction_strip
        tiles = strip(
            task.model,
            rates,
            jnp.asarray(task.x1[rows]),
            *pairs,
            columns,
            jnp.int32(first),
            trace,
            task.per_leaf,
        )
        for kernel, tile in zip(kernels, tiles, strict=True):
            _write(kernel, np.asarray(tile)[first:], k * plan.tile, first * plan.columns, task)
    if not trace:
        kernels = [kernel.reshape(m1, O, m2, O).transpose(0, 2, 1, 3) for kernel in kernels]
    return [_mirrored(kernel) for kernel in kernels] if task.symmetric else kernels


def _write(kernel: np.ndarray, tiles: np.ndarray, row: int, column: int, task: _Task) -> None:
    """A strip (tiles, q, k, …) into its rows, without the copies that filled it up."""
    O = task.model.outputs  # noqa: E741
    strip = np.moveaxis(tiles, 0, 1)
    strip = strip.reshape(strip.shape[0], -1, *strip.shape[3:])[:, : kernel.shape[1] - column]
    if task.form == "trace" and task.plan.method == "products":  # rows are pairs, to be summed by sample
        for pair in range(row, min(row + len(strip), len(kernel) * O)):
            kernel[pair // O, column:] += strip[pair - row]
        return
    rows = row * (O if task.form == "full" and task.plan.method == "contraction" else 1)
    part = kernel[rows : rows + len(strip), column:]
    part[...] = strip[: len(part)]


def _mirrored(kernel: np.ndarray) -> np.ndarray:
    """K(x_j, x_i) = K(x_i, x_j)ᵀ below the diagonal, in place."""
    for i in range(1, len(kernel)):
        kernel[i, :i] = kernel[:i, i] if kernel.ndim == 2 else kernel[:i, i].transpose(0, 2, 1)
    return kernel


def _diagonal(task: _Task, rates: Array) -> list[np.ndarray]:
    return [np.asarray(kernel) for kernel in _traced_diagonal(task, rates)]


def _traced_diagonal(task: _Task, rates: Array) -> list[Array]:
    """In tiles, several of them per call."""
    m, O, plan = len(task.x1), task.model.outputs, task.plan  # noqa: E741
    if plan.method == "contraction":
        out = contraction_diagonal(task.model, rates, _tiles(task.x1, plan.tile), task.per_leaf)
    else:
        which, outputs = _pairs(task)
        rows, of = jnp.asarray(task.x1[which]), jnp.asarray(outputs, jnp.int32)
        out = products_diagonal(task.model, rates, rows, of, task.per_leaf)
    return [kernel.reshape(-1, O)[: m * O].reshape(m, O, O) for kernel in out]


def _traced_matrix(task: _Task, rates: Array) -> list[Array]:
    """All strips in one program, for transformations of JAX."""
    (m1, m2), O, plan = (len(task.x1), len(task.x2)), task.model.outputs, task.plan  # noqa: E741
    trace, columns = task.form == "trace", _tiles(task.x2, plan.columns)

    def by_rows(rows: Array) -> list[Array]:
        return contraction_strip(task.model, rates, rows, columns, 0, trace, task.per_leaf)

    def by_pairs(pairs: tuple[Array, Array]) -> list[Array]:
        return products_strip(task.model, rates, *pairs, columns, 0, trace, task.per_leaf)

    def joined(strips: Array) -> Array:
        """(strips, tiles, q, k, …) as (m1 (· O), m2, …)."""
        kernel = jnp.moveaxis(strips, 1, 2)
        kernel = kernel.reshape(-1, kernel.shape[2] * kernel.shape[3], *kernel.shape[4:])
        rows = m1 if trace and plan.method == "contraction" else m1 * O
        return kernel[:rows, :m2]

    if plan.method == "contraction":
        out = [joined(strips) for strips in jax.lax.map(by_rows, _tiles(task.x1, plan.tile))]
    else:
        which, outputs = _pairs(task)
        tiles = jnp.asarray(task.x1[which]), jnp.asarray(outputs, jnp.int32)
        out = [joined(strips) for strips in jax.lax.map(by_pairs, tiles)]
    if trace:
        return [kernel.reshape(m1, -1, m2).sum(1) for kernel in out]
    return [kernel.reshape(m1, O, m2, O).transpose(0, 2, 1, 3) for kernel in out]


def _check_finite(kernels: list[np.ndarray], form: str, symmetric: bool) -> None:
    """Refuse a kernel that is not finite, and name the first sample that is at fault."""
    for kernel in kernels:
        if np.isfinite(kernel).all():
            continue
        axes = tuple(range(1 if form == "diagonal" else 2, kernel.ndim))
        bad = ~np.isfinite(kernel).all(axis=axes)
        if form == "diagonal":
            name, sample = "x1", int(np.argmax(bad))
        else:
            # A sample at fault spoils its whole row or column.
            rows, columns = bad.all(axis=1), bad.all(axis=0)
            if rows.any() or not columns.any():
                name, sample = "x1", int(np.argmax(rows if rows.any() else bad.any(axis=1)))
            else:
                name, sample = ("x1" if symmetric else "x2"), int(np.argmax(columns))
        raise ValueError(
            f"The kernel must be finite, but {int(bad.sum())} of {bad.size} entries are not; the first "
            f"sample at fault is {name}[{sample}]. Does f have a finite slope there (√ at 0 has none)?"
        )
