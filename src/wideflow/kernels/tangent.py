"""The kernel of a state of the library, by the fastest way that there is for it."""

from typing import Any

import jax
from jaxtyping import Array

from ..states.linearisation import Linearisation
from ..states.network import Network
from ..states.trainable import AbstractTrainable
from .empirical.layerwise import layerwise_kernels, layerwise_ntk
from .empirical.ntk import empirical_ntk


def _moving(state: Any) -> AbstractTrainable:
    """The state whose kernel is asked for; a linearised one has that of its start."""
    if not isinstance(state, AbstractTrainable):
        hint = " Draw one first: .sample(key, n)." if hasattr(state, "sample") else ""
        raise ValueError(
            f"A tangent kernel needs a network or wf.Particles, got a {type(state).__name__}.{hint} For a "
            "function f(params, x) use wf.empirical_ntk."
        )
    return state.at if isinstance(state, Linearisation) else state


def tangent_kernel(
    state: AbstractTrainable, x1: Array, x2: Array | None = None, *, form: str = "full"
) -> Array:
    """K(x, x') with which a signal at x' moves f(x), at the state's weights and with its rates: the kernel of
    the residual dynamics ∂t u = −E'[K u], for any α. `form` as in `wf.empirical_ntk`."""
    at = _moving(state)
    if isinstance(at, Network):
        return layerwise_ntk(at, x1, x2, form=form)
    f, params, rates = at.tangent()
    return empirical_ntk(f, params, x1, x2, form=form, rates=rates)


def tangent_kernels(
    state: AbstractTrainable, x1: Array, x2: Array | None = None, *, form: str = "full"
) -> dict[str, Array]:
    """The parts of `tangent_kernel` by layer (or by part of θ, for particles): their sum is the kernel."""
    at = _moving(state)
    if isinstance(at, Network):
        kernels = layerwise_kernels(at, x1, x2, form=form)
        return {f"layer {i + 1}": K for i, K in enumerate(kernels)}
    f, params, rates = at.tangent()
    by_leaf = empirical_ntk(f, params, x1, x2, form=form, rates=rates, per_leaf=True)
    named = jax.tree_util.tree_leaves_with_path(by_leaf[0])  # the weights of particles do not move
    return {jax.tree_util.keystr(path, simple=True, separator="."): K for path, K in named}
