"""The kernel of a state of the library, by the fastest way that there is for it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..states.linearisation import Linearisation
from ..states.network import Network
from ..states.trainable import AbstractTrainable
from .empirical.layerwise import layerwise_kernels, layerwise_ntk
from .empirical.ntk import empirical_ntk
from .empirical.ridges import are_ridges, ridge_kernels

_ALIKE = ("full", "trace")  # forms that are the same for one output


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
    if (ridges := _ridges(at, x1, x2, form)) is not None:
        return sum(ridges.values())  # type: ignore[return-value]
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
    if (ridges := _ridges(at, x1, x2, form)) is not None:
        return ridges
    f, params, rates = at.tangent()
    by_leaf = empirical_ntk(f, params, x1, x2, form=form, rates=rates, per_leaf=True)
    named = jax.tree_util.tree_leaves_with_path(by_leaf[0])  # the weights of particles do not move
    return {jax.tree_util.keystr(path, simple=True, separator="."): K for path, K in named}


def _ridges(at: AbstractTrainable, x1: Any, x2: Any, form: str) -> dict[str, Array] | None:
    """The kernels by the short way of ridge neurons, or None where the general one is to be taken (and to
    object to what it is given)."""
    rows = [np.asarray(x) for x in (x1, x1 if x2 is None else x2)]
    plain = form in _ALIKE and all(x.ndim == 2 and x.dtype.kind == "f" for x in rows)
    if not (plain and are_ridges(at, *(len(x) for x in rows)) and rows[0].shape[1] == rows[1].shape[1]):
        return None
    if any(not np.isfinite(x).all() for x in rows) or at.neuron.size(rows[0].shape[1]) != at.D:  # type: ignore[attr-defined]
        return None
    kernels = ridge_kernels(at, *(jnp.asarray(x) for x in rows))  # type: ignore[arg-type]
    return kernels if all(bool(jnp.isfinite(K).all()) for K in kernels.values()) else None
