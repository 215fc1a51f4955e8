"""Optimisers from optax, on the same time axis as the flow."""

import functools
from typing import Any

from .._checks import positive
from ..functionals.base import AbstractFunctional
from .batches import batches_for
from .descent import Descent
from .rules import OptaxRule, Preconditioned


@functools.lru_cache  # the same optimiser object for the same arguments, so that jit compiles once
def _made(factory: Any, step: float) -> Any:
    return factory(step)


def Optax(  # noqa: N802
    functional: AbstractFunctional,
    optimiser: Any,
    step: float,
    *,
    batch: int | None = None,
    one_pass: bool | None = None,
) -> Descent:
    """Any optax optimiser on the velocity of the functional; time is t = k · step.

    `optimiser` is a factory that takes the step, such as `optax.adam`, or a ready optimiser such as
    `optax.adam(1e-3, b1=0.8)`, for which `step` only sets the time axis."""
    step = positive("step", step)
    ready = hasattr(optimiser, "update") and hasattr(optimiser, "init")
    if not ready and not callable(optimiser):
        raise ValueError(f"Optax(optimiser) must be such as optax.adam, got {optimiser!r}.")
    rule = OptaxRule(optimiser if ready else _made(optimiser, step))
    batches = batches_for(functional, batch, one_pass)
    return Descent(functional, step, batches, rule, "Optax", ("deepmind2020",))


def Adam(  # noqa: N802
    functional: AbstractFunctional,
    step: float,
    *,
    batch: int | None = None,
    one_pass: bool | None = None,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    decay: float = 0.0,
) -> Descent:
    """Adam with learning rate `step`: θ ← θ − η · rate · m̂/(√v̂ + ε) − ηλθ. Decay λ is apart from the moments
    and scales with a network's parametrisation; a penalty R + λ·SecondMoment() would enter the moments."""
    rule = Preconditioned(_adam(b1, b2, eps), positive("decay", decay, zero=True))
    batches = batches_for(functional, batch, one_pass)
    return Descent(functional, step, batches, rule, "Adam", ("kingma2015",))


@functools.lru_cache
def _adam(b1: float, b2: float, eps: float) -> Any:
    import optax

    return optax.scale_by_adam(b1=b1, b2=b2, eps=eps)
