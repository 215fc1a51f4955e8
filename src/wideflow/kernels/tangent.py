"""The kernel of a state of the library, by the fastest way available."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from ..states.network import is_network
from ..states.trainable import AbstractTrainable, is_trainable
from .empirical.layerwise import layerwise_kernels, layerwise_ntk
from .empirical.ntk import empirical_ntk
from .empirical.ridges import fits_ridges, ridge_kernels
from .tracing import is_traced

_ALIKE = ("full", "trace")  # forms that are the same for one output


def _moving(state: object) -> AbstractTrainable:
    """The state whose kernel is wanted; a linearised one has that of its start."""
    if not is_trainable(state):
        hint = " Draw one first: .sample(key, n)." if hasattr(state, "sample") else ""
        raise ValueError(
            f"A tangent kernel needs a network or wf.Particles, got a {type(state).__name__}.{hint} For a "
            "function f(params, x) use wf.empirical_ntk."
        )
    return state.base


def tangent_kernel(
    state: AbstractTrainable, x1: ArrayLike, x2: ArrayLike | None = None, *, form: str = "full"
) -> Array:
    """K(x, x') with which a signal at x' moves f(x), at the state's weights and with its rates: the kernel of
    the residual dynamics ∂t u = −E'[K u], for any α. `form` as in `wf.empirical_ntk`; with replicas one
    kernel each, along a leading axis.

    >>> wf.tangent_kernel(net, jnp.eye(3)).shape
    (3, 3)"""
    at = _moving(state)
    if at.replicas is not None:
        return _mapped(lambda one: tangent_kernel(one, x1, x2, form=form), at)
    if is_network(at):
        return layerwise_ntk(at, x1, x2, form=form)
    if (ridges := _ridges(at, x1, x2, form)) is not None:
        kernels = list(ridges.values())
        return sum(kernels[1:], kernels[0])
    f, params, rates = at.tangent()
    return empirical_ntk(f, params, x1, x2, form=form, rates=rates)


def tangent_kernels(
    state: AbstractTrainable, x1: ArrayLike, x2: ArrayLike | None = None, *, form: str = "full"
) -> dict[str, Array]:
    """The parts of `tangent_kernel` by layer (or by part of θ, for particles): their sum is the kernel."""
    at = _moving(state)
    if at.replicas is not None:
        return _mapped(lambda one: tangent_kernels(one, x1, x2, form=form), at)
    if is_network(at):
        kernels = layerwise_kernels(at, x1, x2, form=form)
        return {f"layer {i + 1}": K for i, K in enumerate(kernels)}
    if (ridges := _ridges(at, x1, x2, form)) is not None:
        return ridges
    f, params, rates = at.tangent()
    by_leaf = empirical_ntk(f, params, x1, x2, form=form, rates=rates, per_leaf=True)
    named = jax.tree_util.tree_leaves_with_path(by_leaf[0])  # the weights of particles do not move
    return {jax.tree_util.keystr(path, simple=True, separator="."): K for path, K in named}


_Kernel = TypeVar("_Kernel")


def _mapped(kernel: Callable[[AbstractTrainable], _Kernel], state: AbstractTrainable) -> _Kernel:
    """Of each replica."""
    return jax.vmap(kernel, in_axes=(state.axes(),))(state)


def _ridges(at: AbstractTrainable, x1: ArrayLike, x2: ArrayLike | None, form: str) -> dict[str, Array] | None:
    """The kernels by the short way of ridge neurons, or None where the general one is to be taken (which
    then objects to bad input)."""
    pair = (x1, x1 if x2 is None else x2)
    rows = [jnp.asarray(x) if is_traced(x) else np.asarray(x) for x in pair]
    plain = form in _ALIKE and all(x.ndim == 2 and jnp.issubdtype(x.dtype, jnp.floating) for x in rows)
    if not (plain and rows[0].shape[1] == rows[1].shape[1] and fits_ridges(at, *(x.shape for x in rows))):
        return None
    traced = is_traced(at, rows)
    if not traced and any(not np.isfinite(x).all() for x in rows):
        return None
    kernels = ridge_kernels(at, *(jnp.asarray(x) for x in rows))  # type: ignore[arg-type]
    return kernels if traced or all(np.isfinite(np.asarray(K)).all() for K in kernels.values()) else None
