"""Parameter trees: which leaves move, their rates, and whether two trees are alike."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._checks import positive


def split(params: Any) -> tuple[Any, Any]:
    """(moving, held): leaves of real floating dtype move; integers, functions and the like are held."""
    arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf) if isinstance(leaf, float) else leaf, params)
    moving, held = eqx.partition(arrays, eqx.is_inexact_array)
    leaves = jax.tree.leaves(moving)
    if not leaves:
        raise ValueError(
            f"params must hold at least one array of real numbers to differentiate in, got {_kinds(params)}."
        )
    if any(jnp.iscomplexobj(leaf) for leaf in leaves):
        raise ValueError("params must be real, got complex leaves. Try their real and imaginary parts.")
    # with the dtype named, a weakly typed leaf such as jnp.asarray(1.0) keeps its precision among others
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), moving), held


def _kinds(params: Any) -> str:
    kinds = sorted({str(getattr(leaf, "dtype", type(leaf).__name__)) for leaf in jax.tree.leaves(params)})
    return "leaves of " + ", ".join(kinds) if kinds else "an empty tree"


def rates_of(rates: Any, moving: Any) -> Array:
    """One rate >= 0 a moving leaf, in the order of jax.tree.leaves, from a pytree prefix of floats."""
    n = len(jax.tree.leaves(moving))
    if rates is None:
        return jnp.ones(n)
    try:
        # A prefix may also speak of leaves that are held, where `moving` has None.
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
    return jnp.asarray([positive("a rate", np.asarray(rate)[()], zero=True) for rate in values])


def same_tree(name1: str, tree1: Any, name2: str, tree2: Any) -> None:
    """Refuse two parameter trees that differ in a path or in the shape or dtype of a leaf; name the first."""
    leaves1, leaves2 = (_described(tree) for tree in (tree1, tree2))
    for path in [*leaves1, *(path for path in leaves2 if path not in leaves1)]:
        here, there = (leaves.get(path, "missing") for leaves in (leaves1, leaves2))
        if here != there:
            raise ValueError(
                f"{name1} and {name2} must be trees of the same structure, but at {path or 'the root'} "
                f"{name1} has {here} and {name2} has {there}. Are they of one model?"
            )
    structures: list[Any] = [jax.tree.structure(tree) for tree in (tree1, tree2)]
    if structures[0] != structures[1]:
        raise ValueError(
            f"{name1} and {name2} must be trees of the same structure, got {structures[0]} and "
            f"{structures[1]}. Are they of one model?"
        )


def _described(tree: Any) -> dict[str, str]:
    """Path → what is there: `float32 (3, 4)`, or the type of what is no array."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): _description(leaf) for path, leaf in leaves}


def _description(leaf: Any) -> str:
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    return type(leaf).__name__ if dtype is None else f"{dtype} {shape}"
