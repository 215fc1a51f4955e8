"""Which way to compute an empirical kernel costs least within a memory budget."""

import math
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree, PyTreeDef

from ..._typing import DType
from ..function import Batch, Model

BUDGET = 2**29  # bytes: 512 MiB
METHODS = ("contraction", "products")
# Measured on two cores: writing one entry of a Jacobian takes as long as this many operations of a matrix
# product, because its outer products are bound by memory.
_ENTRY = 100
_COLUMNS = 256  # samples to push a tangent through at once: enough for products at the full rate
_PAIRS = 64


class Plan(NamedTuple):
    """How a kernel is computed.

    - `method`: "contraction" (Jacobians of tiles, multiplied) or "products" (pull back, push forward);
    - `tile`: rows at a time, samples for contraction, (sample, output) pairs for products;
    - `columns`: samples of x2 at a time;
    - `flops`: estimated operations, an entry of a Jacobian counted as 100 of them;
    - `bytes`: estimated memory beside the kernel;
    - `why`: the reason in words."""

    method: str
    tile: int
    columns: int
    flops: float
    bytes: float
    why: str


class Costs(NamedTuple):
    """Of one sample: operations of a forward pass, and bytes of its intermediate results."""

    flops: float
    activations: float


def costs(model: Model, x: Batch) -> Costs:
    """From the compiler's own count (nothing is compiled), or 2P operations where it has none, or where f is
    traced and may close over traced values."""
    if model.traced:
        return Costs(2.0 * model.size, 0.0)
    (dynamic, static), structure = _parts(model)
    avals = tuple((leaf.shape, leaf.dtype) for leaf in dynamic)
    return _costs(static, structure, avals, x.shape[1:], x.dtype)


def _parts(model: Model) -> tuple[tuple[list, tuple], PyTreeDef]:
    leaves, structure = jax.tree.flatten(model)
    dynamic = [jnp.asarray(leaf) if eqx.is_array(leaf) else None for leaf in leaves]
    static = tuple(None if eqx.is_array(leaf) else leaf for leaf in leaves)
    return ([leaf for leaf in dynamic if leaf is not None], static), structure


@lru_cache(maxsize=256)
def _costs(static: tuple, structure: PyTreeDef, avals: tuple, shape: tuple, dtype: DType) -> Costs:
    def run(dynamic: list, x: jax.Array) -> jax.Array:
        arrays = iter(dynamic)
        leaves = [next(arrays) if leaf is None else leaf for leaf in static]
        model = jax.tree.unflatten(structure, leaves)
        return model(model.moving, x)

    dynamic = [jax.ShapeDtypeStruct(*aval) for aval in avals]
    counts = []
    for rows in (1, 2):  # the difference is free of what all samples share
        lowered = jax.jit(run).lower(dynamic, jax.ShapeDtypeStruct((rows, *shape), dtype))
        counted: PyTree = lowered.cost_analysis() or {}
        counts.append([float(counted.get(name, 0.0)) for name in ("flops", "bytes accessed")])
    flops, activations = (b - a if b > a else b for a, b in zip(*counts, strict=True))
    size = sum(math.prod(aval[0]) for aval in avals)
    return Costs(flops if flops > 0 else 2.0 * size, activations)


def planned(
    model: Model,
    x: Batch,
    m1: int,
    m2: int,
    symmetric: bool,
    form: str,
    leaves: bool,
    method: str,
    budget: int,
) -> Plan:
    """The cheaper of the two ways, or the one asked for."""
    cost = costs(model, x)
    options = {
        "contraction": _contraction(model, cost, m1, m2, symmetric, form, budget),
        "products": _products(model, cost, m1, m2, symmetric, form, leaves, budget),
    }
    if method != "auto":
        chosen = options[method]
        return chosen._replace(why=f"asked for; {_compared(options)}" + _excess(chosen, budget))
    fitting = {name: option for name, option in options.items() if option.bytes <= budget}
    if len(fitting) == 1:
        ((name, chosen),) = fitting.items()
        return chosen._replace(why=f"{name} alone fits {budget / 2**20:.4g} MiB; {_compared(options)}")
    chosen = min((fitting or options).values(), key=lambda option: option.flops if fitting else option.bytes)
    return chosen._replace(why=f"fewest operations: {_compared(options)}" + _excess(chosen, budget))


def _compared(options: dict[str, Plan]) -> str:
    return ", ".join(
        f"{name} takes {option.flops:.2g} operations and {option.bytes / 2**20:.3g} MiB"
        for name, option in options.items()
    )


def _excess(plan: Plan, budget: int) -> str:
    over = plan.bytes > budget
    return f"; the smallest tile exceeds the budget of {budget / 2**20:.4g} MiB" if over else ""


def even(m: int, most: float) -> int:
    """The size of equal tiles of m, at most `most` and at least 1."""
    return math.ceil(m / math.ceil(m / max(1, min(m, int(most)))))


def _contraction(model, cost: Costs, m1: int, m2: int, symmetric: bool, form: str, budget: int) -> Plan:
    """A tile of rows is kept while tiles of columns pass by: these are computed once per tile of rows."""
    O, P = model.outputs, model.size  # noqa: E741
    sample = O * (P * model.dtype.itemsize + cost.activations)
    if form == "diagonal":
        tile = even(m1, budget / (2 * sample))
        work = m1 * (3 * O * cost.flops + _ENTRY * O * P + 2 * O * O * P)
        return Plan("contraction", tile, tile, work, 2 * tile * sample, "")
    # Of the columns, the leaves of a second copy may be alive while they are multiplied.
    units = budget / sample
    columns = even(m2, max(1, units / 3.5, min(m2, (units - m1) / 2)))
    tile = even(m1, max(1, units - 2 * columns))
    half = (1 + tile / m1) / 2 if symmetric else 1.0
    jacobians = m1 + math.ceil(m1 / tile) * m2 * half
    product = 2 * P * m1 * m2 * half * (O if form == "trace" else O * O)
    work = jacobians * (3 * O * cost.flops + _ENTRY * O * P) + product
    return Plan("contraction", tile, columns, work, (tile + 2 * columns) * sample, "")


def _products(model, cost: Costs, m1, m2, symmetric: bool, form: str, leaves: bool, budget: int) -> Plan:
    """Each (sample, output) is pulled back once and pushed forward through all samples."""
    pairs = m1 * model.outputs
    tangent = 2 * model.size * model.dtype.itemsize  # and its scaled or transposed copy
    times = len(model.leaves) if leaves else 1
    if form == "diagonal":
        tile = even(pairs, min(_PAIRS, budget / (tangent + 2 * cost.activations)))
        work = pairs * ((5 + 2 * times) * cost.flops + _ENTRY * model.size)
        return Plan("products", tile, 1, work, tile * (tangent + 2 * cost.activations), "")
    columns = even(m2, min(_COLUMNS, budget / 2 / (cost.activations + 1)))
    pair = tangent + columns * cost.activations
    tile = even(pairs, min(_PAIRS, (budget - columns * cost.activations) / pair))
    half = (1 + tile / pairs) / 2 if symmetric else 1.0
    back = pairs * (3 * cost.flops + _ENTRY * model.size)
    push = m2 * half * (math.ceil(pairs / tile) + 2 * times * pairs) * cost.flops
    return Plan("products", tile, columns, back + push, tile * pair + columns * cost.activations, "")
