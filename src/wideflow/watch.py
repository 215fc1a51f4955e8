"""What is observed of a state at a saved time."""

from collections.abc import Callable, Mapping

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ._tracing import traced
from .functionals.base import AbstractFunctional
from .states.state import AbstractState

Observer = Callable[..., ArrayLike]  # (t, state) ↦ a number or an array

# What a function of numbers rather than arrays raises when it is traced.
_NOT_TRACEABLE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


class Watcher:
    """(t, state) ↦ observations by name: those of the functional, and the user's observers fn(t, state). With
    replicas each is mapped over them; an observer that cannot be traced sees one replica after the other."""

    def __init__(
        self, functional: AbstractFunctional, observers: Mapping[str, Observer], replicas: int | None
    ):
        self.functional, self.observers, self.replicas = functional, observers, replicas
        self.one_by_one: set[str] = set()

    def __call__(self, t: float, state: AbstractState) -> dict[str, np.ndarray]:
        if self.replicas is None:
            observed = _observed(traced(self.functional), state)
            observed |= {name: fn(t, state) for name, fn in self.observers.items()}
        else:
            observed = _observed_replicas(traced(self.functional), state)
            observed |= {name: self._mapped(name, fn, t, state) for name, fn in self.observers.items()}
        names = sorted(observed, key=lambda name: name != "risk")  # the risk first, else as they come
        return {name: to_host(observed[name]) for name in names}

    def _mapped(self, name: str, fn: Observer, t: float, state: AbstractState) -> PyTree:
        if getattr(fn, "sees_all_replicas", False):
            return fn(t, state)
        if name not in self.one_by_one:
            try:
                return jax.vmap(lambda one: fn(t, one), in_axes=(state.axes(),))(state)
            except _NOT_TRACEABLE:
                self.one_by_one.add(name)
        return np.stack([to_host(fn(t, state.replica(r))) for r in range(self.replicas or 0)])


_observed = eqx.filter_jit(lambda functional, state: functional.observed(state))
_observed_replicas = eqx.filter_jit(
    lambda functional, state: jax.vmap(functional.observed, in_axes=(state.axes(),))(state)
)


def to_host(value: object) -> np.ndarray:
    """An observation as a NumPy array."""
    array = np.asarray(jax.device_get(value))
    if array.dtype.kind not in "fiub":
        raise ValueError(f"An observer must return numbers, got dtype {array.dtype}.")
    return array
