"""States of the library as models before and after training."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...kernels.parameters import same_tree
from ...kernels.tangent import tangent_kernels
from ...problems.neurons import Neuron
from ...states.linearisation import Linearisation
from ...states.network import Network
from ...states.particles import Particles
from ...states.trainable import AbstractTrainable
from .model import JaxModel


def state_model(before: Any, after: Any, x: Any) -> JaxModel:
    """The model of two states that differ in their parts alone."""
    if not isinstance(before, AbstractTrainable) or type(after) is not type(before):
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
    )


class _Predict(eqx.Module):
    """state(x) as a function of its parts."""

    state: Any

    def __call__(self, parts: Any, x: Any) -> Any:
        return self.state.at_position(parts)(x)


class _Features(eqx.Module):
    """h of the hidden layers as a function of the parts."""

    state: Any

    def __call__(self, parts: Any, x: Any) -> Any:
        state = self.state.at_position(parts)
        if isinstance(state, Network):
            return list(state.features(x))
        h = x.astype(state.dtype) @ parts.w
        return [h if parts.b is None else h + parts.b]


class _Kernels:
    """The state's own kernels, with the rates of its parts."""

    def __init__(self, state: AbstractTrainable):
        self.state = state

    def __call__(self, parts: Any, x: np.ndarray) -> dict[str, np.ndarray]:
        kernels = tangent_kernels(self.state.at_position(parts), jnp.asarray(x), form="trace")
        return {name or "θ": np.asarray(K) for name, K in kernels.items()}


def _has_features(state: Any) -> bool:
    return isinstance(state, Network) or (isinstance(state, Particles) and isinstance(state.neuron, Neuron))


def _names(state: Any) -> list[str]:
    """Of the leaves of parts, as their kernels are called: "layer 1", … of a network; a, w, b of a neuron."""
    at = state.at if isinstance(state, Linearisation) else state
    if isinstance(at, Network):
        return [f"layer {i}" for i, part in enumerate(at.parts, 1) for _ in jax.tree.leaves(part)]
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(at.parts)]
    return [jax.tree_util.keystr(path, simple=True, separator=".") or "θ" for path in paths]
