"""The largest step that plain descent can take."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ..functionals.base import AbstractFunctional
from ..problems.nodes import Nodes
from ..states.trainable import AbstractTrainable

_STREAM = 2**32 - 7  # of the first direction: none that a start, data or noise is drawn from
_ITERATIONS = 40  # power iterations: the eigenvalue is wanted to a few percent, not to digits


def largest_stable_step(
    functional: AbstractFunctional, state: AbstractTrainable, nodes: Nodes | None = None
) -> float:
    """2/|λ|, λ the largest eigenvalue in size of D(velocity) at this state: θ ← θ + ηv(θ) is linearly
    stable for η below it. With batches `nodes` (leading axis), the least over the batches.

    >>> wf.largest_stable_step(R, net) > 0.1
    True"""
    if nodes is None:
        return float(2 / _top_eigenvalue(functional, state))
    tops = [
        _top_eigenvalue(functional.on(jax.tree.map(lambda v, i=i: v[i], nodes)), state)
        for i in range(nodes.weights.shape[0])
    ]
    return float(2 / jnp.max(jnp.stack(tops)))


@eqx.filter_jit
def _top_eigenvalue(functional: AbstractFunctional, state: AbstractTrainable) -> Array:
    drift = lambda parts: functional.drift(state.with_parts(parts))

    def unit(tree: PyTree) -> tuple[PyTree, Array]:
        norm = jnp.sqrt(sum(jnp.sum(v**2) for v in jax.tree.leaves(tree)))
        return jax.tree.map(lambda v: v / jnp.where(norm > 0, norm, 1.0), tree), norm

    def iterate(_, pair):
        direction, _ = pair
        _, image = jax.jvp(drift, (state.parts,), (direction,))
        return unit(image)

    leaves, tree = jax.tree.flatten(state.parts)
    keys = jax.random.split(jax.random.key(_STREAM), len(leaves))
    random = [jax.random.normal(k, v.shape, v.dtype) for k, v in zip(keys, leaves, strict=True)]
    start = unit(jax.tree.unflatten(tree, random))
    return jax.lax.fori_loop(0, _ITERATIONS, iterate, start)[1]
