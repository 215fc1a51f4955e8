"""States of the library as models before and after training."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from numpy.typing import ArrayLike

from ...kernels.parameters import same_tree
from ...kernels.tangent import tangent_kernels
from ...problems.neurons import is_ridge
from ...states.network import is_network
from ...states.particles import is_cloud
from ...states.state import AbstractState
from ...states.trainable import AbstractTrainable, is_trainable
from .model import JaxModel


def state_model(before: PyTree, after: PyTree, x: ArrayLike) -> JaxModel:
    """The model of two states that differ in their parts alone."""
    if not is_trainable(before) or type(after) is not type(before):
        raise ValueError(
            "regime(before, after, x) takes two states of one kind, such as run.states[0] and run.final, got "
            f"a {type(before).__name__} and a {type(after).__name__}."
        )
    same_tree("before", before, "after", after)
    without = [state.with_parts(None) for state in (before, after)]
    if not eqx.tree_equal(*without):
        raise ValueError(
            "regime(before, after, x) takes two states that differ in their weights alone; these also differ "
            "in α, centre, particle weights or parametrisation. Are they of one run?"
        )
    features = _Features(without[0]) if _has_features(before) else None
    names, kernels = _names(before), _Kernels(before)
    return JaxModel(
        _Predict(without[0]),
        before.position(),
        after.position(),
        x,
        features=features,
        names=names,
        kernels=kernels,
        kept=_with_mass(before),
    )


def _with_mass(state: Any) -> np.ndarray | None:
    """Which particles are part of the measure: those of weight 0 move, but no measurement depends on
    them. None if all are."""
    cloud = state.base.cloud
    kept = None if cloud is None else np.asarray(cloud.weights) > 0
    return None if kept is None or kept.all() else kept


class _Predict(eqx.Module):
    """state(x) as a function of its parts."""

    state: AbstractTrainable

    def __call__(self, parts: PyTree, x: Array) -> PyTree:
        return self.state.at_position(parts)(x)


class _Features(eqx.Module):
    """h of the hidden layers as a function of the parts."""

    state: AbstractTrainable

    def __call__(self, parts: PyTree, x: Array) -> PyTree:
        state = self.state.at_position(parts)
        if is_network(state):
            return list(state.features(x))
        h = x.astype(state.dtype) @ parts.w
        return [h if parts.b is None else h + parts.b]


class _Kernels:
    """The state's own kernels, with the rates of its parts."""

    def __init__(self, state: AbstractTrainable):
        self.state = state

    def __call__(self, parts: PyTree, x: np.ndarray) -> dict[str, np.ndarray]:
        kernels = tangent_kernels(self.state.at_position(parts), jnp.asarray(x), form="trace")
        return {name or "θ": np.asarray(K) for name, K in kernels.items()}


def _has_features(state: AbstractState) -> bool:
    return is_network(state) or (is_cloud(state) and is_ridge(state.neuron))


def _names(state: AbstractTrainable) -> list[str]:
    """Of the leaves of parts, as their kernels are called: "layer 1", … of a network; a, w, b of a neuron."""
    at = state.base
    if is_network(at):
        return [f"layer {i}" for i, part in enumerate(at.parts, 1) for _ in jax.tree.leaves(part)]
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(at.parts)]
    return [jax.tree_util.keystr(path, simple=True, separator=".") or "θ" for path in paths]
