"""Optimisers from optax, on the same time axis as the flow."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from .._checks import positive
from .._shown import shown
from ..functionals.base import AbstractFunctional
from .batches import batches_for
from .descent import Descent
from .rules import OptaxRule, Preconditioned

if TYPE_CHECKING:
    import optax


@functools.lru_cache  # the same optimiser object for the same arguments, so that jit compiles once
def _optimiser(factory: Callable, step: float) -> "optax.GradientTransformation":
    return factory(step)


def Optax(  # noqa: N802
    functional: AbstractFunctional,
    optimiser: Callable,
    step: float,
    *,
    batch: int | None = None,
    one_pass: bool | None = None,
) -> Descent:
    """Any optax optimiser on the velocity of the functional; time is t = k · step.

    `optimiser` is a factory that takes the step, such as `optax.adam`, or a ready optimiser such as
    `optax.adam(1e-3, b1=0.8)`, for which `step` only sets the time axis.
    `batch` and `one_pass` are those of `wf.SGD`; without a batch the velocity is the full one.

    >>> import optax
    >>> run = wf.evolve(wf.Optax(R, optax.rmsprop, step=0.01), net, ts)
    >>> run["risk"].round(3)
    array([0.235, 0.137, 0.089])"""
    step = positive("step", step)
    ready = hasattr(optimiser, "update") and hasattr(optimiser, "init")
    if not ready and not callable(optimiser):
        raise ValueError(f"Optax(optimiser) must be such as optax.adam, got {shown(optimiser)}.")
    rule = OptaxRule(optimiser) if ready else OptaxRule(_optimiser(optimiser, step), optimiser)
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
    and scales with a network's parametrisation; a penalty R + λ·SecondMoment() would enter the moments.
    - `functional`: a risk, with penalties if any.
    - `batch`, `one_pass`: as in `wf.SGD`; without a batch the velocity is the full one.
    - `b1`, `b2`, `eps`: the decay of the two moments m and v, and ε.

    >>> run = wf.evolve(wf.Adam(R, step=0.01, decay=0.1), net, ts)
    >>> run["risk"].round(3)
    array([0.235, 0.177, 0.127])"""
    rule = Preconditioned(_adam(b1, b2, eps), positive("decay", decay, zero=True))
    batches = batches_for(functional, batch, one_pass)
    return Descent(functional, step, batches, rule, "Adam", ("kingma2015",))


@functools.lru_cache
def _adam(b1: float, b2: float, eps: float) -> "optax.GradientTransformation":
    import optax

    return optax.scale_by_adam(b1=b1, b2=b2, eps=eps)
