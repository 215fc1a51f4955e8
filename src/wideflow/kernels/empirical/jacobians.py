"""The compiled part of an empirical kernel: one tile of rows against all samples from some column on.

Everything loops inside one program, whose buffers are allocated once: touching fresh memory for each tile
takes longer than the arithmetic."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._tracing import jit
from ..function import Model

_SLICE = 4096  # parameters multiplied at a time, so that both factors stay in cache


def jacobian_rows(model: Model, x: Array) -> list[Array]:
    """∂f_o(x_i)/∂p of a tile of samples: for each leaf an array (k, O, size of the leaf)."""

    def one(x: Array) -> list[Array]:
        value, vjp = jax.vjp(lambda moving: model.row(moving, x), model.moving)
        rows = jax.vmap(lambda unit: jax.tree.leaves(vjp(unit)[0]))(jnp.eye(value.size, dtype=value.dtype))
        return [row.reshape(value.size, -1) for row in rows]

    return jax.vmap(one)(x)


def output_gradient(model: Model, x: Array, output: Array) -> list[Array]:
    """∂f_o(x)/∂p of one sample and one output, leaf by leaf, each in its own shape."""
    value, vjp = jax.vjp(lambda moving: model.row(moving, x), model.moving)
    return jax.tree.leaves(vjp(jax.nn.one_hot(output, value.size, dtype=value.dtype))[0])


def pushed(model: Model, x: Array, tangents: list[Array], leaves: bool) -> list[Array]:
    """J(x)·v for a batch of tangents (q, …) per leaf: (q, k, O), one array per leaf or their sum alone."""
    here, structure = jax.tree.flatten(model.moving)

    def along(which: list[int]) -> Array:
        def fn(*moved: Array) -> Array:
            now = list(here)
            for i, leaf in zip(which, moved, strict=True):
                now[i] = leaf
            return model(jax.tree.unflatten(structure, now), x)

        _, push = jax.linearize(fn, *(here[i] for i in which))
        return jax.vmap(push)(*(tangents[i] for i in which)).astype(model.dtype)

    every = list(range(len(here)))
    return [along([i]) for i in every] if leaves else [along(every)]


def gram(a: Float[Array, "q n"], b: Float[Array, "k n"], dtype) -> Float[Array, "q k"]:
    """a bᵀ over long rows, a slice of them at a time."""

    def product(a: Array, b: Array) -> Array:
        last = (((1,), (1,)), ((), ()))
        return jax.lax.dot_general(a, b, last, precision="highest", preferred_element_type=dtype)

    n = a.shape[1]
    if n <= 2 * _SLICE:
        return product(a, b)

    def add(i: Array, total: Array) -> Array:
        return total + product(*(jax.lax.dynamic_slice_in_dim(v, i * _SLICE, _SLICE, 1) for v in (a, b)))

    whole = n // _SLICE
    total = jax.lax.fori_loop(0, whole, add, jnp.zeros((a.shape[0], b.shape[0]), dtype))
    rest = whole * _SLICE
    return total + product(a[:, rest:], b[:, rest:]) if rest < n else total


def _scaled(leaves: list[Array], rates: Array) -> list[Array]:
    return [leaf * rates[i].astype(leaf.dtype) for i, leaf in enumerate(leaves)]


def _summed(kernels: list[Array], leaves: bool) -> list[Array]:
    return kernels if leaves else [sum(kernels[1:], kernels[0])]


def _over_columns(block: Callable[[Array], list[Array]], columns: Array, first: Array | int) -> list[Array]:
    """block(tile) for all tiles of columns from `first` on, stacked; zeros before it. It has a reverse
    derivative where `first` is an int."""
    shapes = jax.eval_shape(block, columns[0])
    start = [jnp.zeros((columns.shape[0], *s.shape), s.dtype) for s in shapes]

    def fill(j: Array, stacks: list[Array]) -> list[Array]:
        return [s.at[j].set(b) for s, b in zip(stacks, block(columns[j]), strict=True)]

    return jax.lax.fori_loop(first, columns.shape[0], fill, start)


@jit
def contraction_strip(
    model: Model, rates: Array, rows: Array, columns: Array, first: Array | int, trace: bool, leaves: bool
) -> list[Array]:
    """Σ_p rate_p ∂_p f(x_i) ∂_p f(x_j)ᵀ for a tile of rows i and tiles j of columns.

    Full: (tiles, rows·O, k, O). Trace: (tiles, rows, k)."""
    left = _scaled(jacobian_rows(model, rows), rates)

    def block(x: Array) -> list[Array]:
        def product(a: Array, b: Array) -> Array:
            r, k, O = len(a), len(b), model.outputs  # noqa: E741
            if trace:
                return gram(a.reshape(r, -1), b.reshape(k, -1), model.dtype) / O
            return gram(a.reshape(r * O, -1), b.reshape(k * O, -1), model.dtype).reshape(r * O, k, O)

        return _summed([product(a, b) for a, b in zip(left, jacobian_rows(model, x), strict=True)], leaves)

    return _over_columns(block, columns, first)


@jit
def products_strip(
    model: Model,
    rates: Array,
    rows: Array,
    outputs: Array,
    columns: Array,
    first: Array | int,
    trace: bool,
    leaves: bool,
) -> list[Array]:
    """The same for q pairs (x_i, o), each pulled back and pushed forward: (tiles, q, k, O).

    Trace: each pair's own output of it alone, over O: (tiles, q, k)."""
    tangents = _scaled(jax.vmap(lambda x, o: output_gradient(model, x, o))(rows, outputs), rates)

    def block(x: Array) -> list[Array]:
        out = pushed(model, x, tangents, leaves)
        if not trace:
            return out
        own = outputs[:, None, None]
        return [jnp.take_along_axis(k, own, axis=2)[..., 0] / model.outputs for k in out]

    return _over_columns(block, columns, first)


@jit
def contraction_diagonal(model: Model, rates: Array, tiles: Array, leaves: bool) -> list[Array]:
    """K(x_i, x_i) of tiles (n, k, …) of samples: (n, k, O, O)."""

    def block(x: Array) -> list[Array]:
        jacobian = jacobian_rows(model, x)
        pairs = zip(_scaled(jacobian, rates), jacobian, strict=True)
        product = jax.vmap(lambda a, b: gram(a, b, model.dtype))
        return _summed([product(a, b) for a, b in pairs], leaves)

    return jax.lax.map(block, tiles)


@jit
def products_diagonal(model: Model, rates: Array, rows: Array, outputs: Array, leaves: bool) -> list[Array]:
    """Rows o of K(x_i, x_i) for tiles (n, q) of pairs (x_i, o): (n, q, O)."""

    def one(x: Array, output: Array) -> list[Array]:
        tangents = [leaf[None] for leaf in _scaled(output_gradient(model, x, output), rates)]
        return [k[0, 0] for k in pushed(model, x[None], tangents, leaves)]

    return jax.lax.map(lambda tile: jax.vmap(one)(*tile), (rows, outputs))
