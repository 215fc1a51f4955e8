"""What is observed of a state at a saved time."""

import inspect
from collections.abc import Callable, Iterable, Mapping

import jax
import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ._shown import shown
from ._tracing import jit, traced
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


_observed = jit(lambda functional, state: functional.observed(state))
_observed_replicas = jit(
    lambda functional, state: jax.vmap(functional.observed, in_axes=(state.axes(),))(state)
)


def to_host(value: object) -> np.ndarray:
    """An observation as a NumPy array."""
    array = np.asarray(jax.device_get(value))
    if array.dtype.kind not in "fiub":
        raise ValueError(f"An observer must return numbers, got dtype {array.dtype}.")
    return array


def observers_by_name(observe: object) -> dict[str, Observer]:
    """Observers as a dictionary, each checked to be a function of (t, state)."""
    observe = [observe] if callable(observe) else observe
    if isinstance(observe, str) or not isinstance(observe, Iterable):
        raise ValueError(
            f"observe must be functions of (t, state) by name, {{'name': fn}}, got {shown(observe)}."
        )
    if not isinstance(observe, Mapping):
        listed = [(getattr(fn, "__name__", None), fn) for fn in observe]
        twice = [name for i, (name, _) in enumerate(listed) if name in [n for n, _ in listed[:i]]]
        if twice:
            raise ValueError(
                f"Two observers are called {shown(twice[0])}; name them: observe={{'name': fn}}."
            )
        observe = dict(listed)
    for name, fn in observe.items():
        if not callable(fn):
            raise ValueError(f"observe[{shown(name)}] must be a function of (t, state), got {shown(fn)}.")
        if not isinstance(name, str):
            raise ValueError(
                f"Observers have names: observe={{'name': fn}}; {shown(name)} is none, for {shown(fn)}."
            )
        try:
            inspect.signature(fn).bind(0.0, None)
        except TypeError:
            raise ValueError(f"observe[{shown(name)}] must take two arguments, (t, state).") from None
        except ValueError:  # a function without a signature, such as one of NumPy's
            pass
        if name in ("risk", "fresh_risk", "fresh_risk_error", "energy", "free_energy"):
            raise ValueError(f"The name {shown(name)} is taken; give this observer another one.")
    return dict(observe)
