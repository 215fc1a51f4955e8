"""Parameter trees: which leaves move, their rates, and whether two trees are alike."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from .._checks import positive
from .._typing import Scalar
from .tracing import is_traced


def split(params: PyTree) -> tuple[PyTree, PyTree]:
    """(moving, fixed): leaves of real floating dtype move; integers, functions and the like are fixed, and so
    are bare numbers inside modules of Equinox, which are settings (the rate of a dropout)."""
    array = lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf
    arrays = jax.tree.map(array, params, is_leaf=lambda node: isinstance(node, eqx.Module))
    moving, fixed = eqx.partition(arrays, eqx.is_inexact_array)
    leaves = jax.tree.leaves(moving)
    if not leaves:
        raise ValueError(
            f"params must hold at least one array of real numbers to differentiate in, got {_kinds(params)}."
        )
    if any(jnp.iscomplexobj(leaf) for leaf in leaves):
        raise ValueError("params must be real, got complex leaves. Try their real and imaginary parts.")
    # with the dtype named, a weakly typed leaf such as jnp.asarray(1.0) keeps its precision among others
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), moving), fixed


def _kinds(params: PyTree) -> str:
    kinds = sorted({str(getattr(leaf, "dtype", type(leaf).__name__)) for leaf in jax.tree.leaves(params)})
    return "leaves of " + ", ".join(kinds) if kinds else "an empty tree"


def check_finite(name: str, params: PyTree, hint: str) -> None:
    """Refuse parameters of which one is NaN or inf, and name the first leaf that holds one."""
    moving = split(params)[0]
    for path, leaf in jax.tree_util.tree_leaves_with_path(() if is_traced(moving) else moving):
        bad = ~np.isfinite(np.asarray(leaf, float))
        if bad.any():
            where, number = jax.tree_util.keystr(path) or "the leaf", int(bad.sum())
            raise ValueError(
                f"{name} must be finite, but {where} has {number} of {bad.size} entries that are not. {hint}"
            )


def rates_of(rates: PyTree, moving: PyTree) -> Array:
    """One rate >= 0 per moving leaf, in the order of jax.tree.leaves, from a pytree prefix of floats."""
    n = len(jax.tree.leaves(moving))
    if rates is None:
        return jnp.ones(n)
    try:
        # A prefix may also cover leaves that are held fixed, where `moving` has None.
        spread = jax.tree.map(
            lambda rate, part: jax.tree.map(lambda _: rate, part), rates, moving, is_leaf=lambda r: r is None
        )
    except ValueError as error:
        raise ValueError(
            "rates must be a number, or a tree of numbers that begins like params (one number may stand "
            f"for a whole branch): {error}"
        ) from None
    values = jax.tree.leaves(spread)
    if len(values) != n:
        raise ValueError(
            f"rates must give every one of the {n} moving leaves a number, {len(values)} have one."
        )
    if is_traced(values):
        return jnp.stack([_scalar(rate) for rate in values])
    return jnp.asarray([positive("a rate", np.asarray(rate)[()], zero=True) for rate in values])


def _scalar(rate: Scalar) -> Array:
    if jnp.shape(rate):
        raise ValueError(f"a rate must be a number >= 0, got an array of shape {jnp.shape(rate)}.")
    return jnp.asarray(rate, float)


def same_tree(name1: str, tree1: PyTree, name2: str, tree2: PyTree) -> None:
    """Refuse two parameter trees that differ in a path or in the shape or dtype of a leaf; name the first."""
    leaves1, leaves2 = (_described(tree) for tree in (tree1, tree2))
    for path in [*leaves1, *(path for path in leaves2 if path not in leaves1)]:
        here, there = (leaves.get(path, "missing") for leaves in (leaves1, leaves2))
        if here != there:
            raise ValueError(
                f"{name1} and {name2} must be trees of the same structure, but at {path or 'the root'} "
                f"{name1} has {here} and {name2} has {there}. Are they of one model?"
            )
    structures: list[PyTree] = [jax.tree.structure(tree) for tree in (tree1, tree2)]
    if structures[0] != structures[1]:
        raise ValueError(
            f"{name1} and {name2} must be trees of the same structure, got {structures[0]} and "
            f"{structures[1]}. Are they of one model?"
        )


def _described(tree: PyTree) -> dict[str, str]:
    """Path → what is there: `float32 (3, 4)`, or the type of what is not an array."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): _description(leaf) for path, leaf in leaves}


def _description(leaf: object) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    return type(leaf).__name__ if dtype is None else f"{dtype} {shape}"
