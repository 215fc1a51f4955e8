"""A function f(params, x) of any library, as one of moving parameters, and checks that it has a kernel."""

import dataclasses
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .._checks import finite, function
from .._typing import DType
from .parameters import split
from .tracing import is_traced

Batch = np.ndarray | Array


class Model(eqx.Module):
    """f with its parameters split into those that move and those that are fixed; `outputs` is O. Where f is
    `traced`, inside jit, grad or vmap, its values cannot be looked at."""

    f: Callable
    moving: PyTree
    fixed: PyTree
    outputs: int
    traced: bool = False

    def __call__(self, moving: PyTree, x: Array) -> Array:
        """f on a batch x (k, …), as (k, O)."""
        return self.f(eqx.combine(moving, self.fixed), x).reshape(x.shape[0], self.outputs)

    def row(self, moving: PyTree, x: Array) -> Array:
        """f at one sample x, as (O,)."""
        return self(moving, x[None])[0]

    @property
    def leaves(self) -> list[Array]:
        return jax.tree.leaves(self.moving)

    @property
    def size(self) -> int:
        """P, the number of moving parameters."""
        return sum(leaf.size for leaf in self.leaves)

    @property
    def dtype(self) -> DType:
        """Of the kernel: that of the parameters, at least float32."""
        return jnp.result_type(*self.leaves, jnp.float32)


def model(f: Callable, params: PyTree, x: Batch) -> Model:
    """f(params, ·) checked on x (m, …): a real output per row and, unless it is traced, no coupling of rows
    and no randomness."""
    wrapped, few = model_by_shape(f, params, x), jnp.asarray(x[:2])
    if is_traced(few, wrapped(wrapped.moving, few)):
        return dataclasses.replace(wrapped, traced=True)
    _check_rows(wrapped, few)
    return wrapped


def model_by_shape(f: Callable, params: PyTree, x: Batch) -> Model:
    """f(params, ·), its shapes alone checked on x: for functions whose rows are known not to mix."""
    _hashable(function("f", f))
    moving, fixed = split(params)
    out = eqx.filter_eval_shape(f, eqx.combine(moving, fixed), x)
    shape, dtype = getattr(out, "shape", None), getattr(out, "dtype", None)
    if dtype is None or not shape or shape[0] != x.shape[0]:
        returned = f"shape {shape}" if dtype is not None else f"{type(out).__name__}"
        raise ValueError(
            f"f(params, x) must return one array with a row for each of the {x.shape[0]} samples, "
            f"(m,) or (m, O), got {returned}. Try jax.vmap over samples, or return the logits alone."
        )
    if not jnp.issubdtype(dtype, jnp.floating):
        raise ValueError(f"f(params, x) must be of a real floating dtype to have a kernel, got {dtype}.")
    return Model(f, moving, fixed, math.prod(shape[1:]))


def _hashable(f: Callable) -> None:
    """Compiled code is kept by f; a tree such as an equinox module is kept by its parts."""
    for leaf in jax.tree.leaves(f):
        if not eqx.is_array(leaf):
            try:
                hash(leaf)
            except TypeError:
                raise ValueError(
                    f"f must be hashable, {type(leaf).__name__} is not. Try a plain function around it."
                ) from None


def _check_rows(model: Model, x: Array) -> None:
    """f twice on the same two samples, and on each alone."""
    first, again = (np.asarray(model(model.moving, x)).astype(float) for _ in range(2))
    eps, size = float(jnp.finfo(model.dtype).eps), np.nanmax(np.abs(first), initial=0.0)
    if not np.allclose(first, again, rtol=0, atol=1e3 * eps * size, equal_nan=True):
        raise ValueError(
            "f(params, x) gave two answers for the same input: it draws random numbers of NumPy or Python, "
            "or changes a state of its own. Give it a fixed mask or key in params, or its inference mode."
        )
    alone = np.concatenate([np.asarray(model(model.moving, x[i : i + 1])) for i in range(len(x))])
    # √eps leaves room for other orders of summation, also after cancellation (a centred model near 0).
    if not np.allclose(first, alone.astype(float), rtol=0, atol=eps**0.5 * (1 + size), equal_nan=True):
        raise ValueError(
            "f(params, x) must act row by row, but a sample has another output next to a second one than "
            "alone: batch normalisation, or dropout with a key that f closes over? Use the inference mode."
        )


def _kind(value: object) -> str:
    """What was given, with the shapes of its parts."""
    parts = value if isinstance(value, tuple | list) else ()
    shapes = ", ".join(
        str(np.shape(part)) if hasattr(part, "shape") else type(part).__name__ for part in parts[:3]
    )
    return f"a {type(value).__name__}" + (f" of {len(parts)} parts ({shapes})" if parts else "")


def _array(name: str, value: object) -> np.ndarray:
    """An array on the host; a pair (x, y) or an object that holds one is refused."""
    try:
        values = np.asarray(value)
    except (TypeError, ValueError):  # parts of different shapes
        values = np.empty(0, object)
    if values.dtype == object:
        pair = "Of a pair pass the first: x, y = problem.x.sample(key, m)."
        hint = "Pass its .x." if hasattr(value, "x") else pair
        raise ValueError(
            f"{name} must be one array (m, …) with a row for each sample, got {_kind(value)}. {hint}"
        )
    return values


def samples(name: str, x: ArrayLike) -> Batch:
    """A batch (m, …), m >= 1: on the host and finite, or as it is where it is traced."""
    traced = is_traced(x)
    values = jnp.asarray(x) if traced else _array(name, x)
    if values.ndim == 0 or values.shape[0] == 0:
        raise ValueError(f"{name} must be a batch (m, …) of at least one sample, got shape {values.shape}.")
    if not traced and values.dtype != jnp.bfloat16:  # which NumPy does not know as a floating type
        finite(name, values)
    return values
