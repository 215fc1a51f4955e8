"""Optimisers of optax by name, each with the settings that go by that name in `vocabulary.optimisers`."""

from typing import TYPE_CHECKING

from .._checks import nearest
from .._shown import shown
from ..functionals.base import AbstractFunctional
from ..vocabulary.optimisers import OPTIMISERS
from .descent import Descent
from .optax import Optax

if TYPE_CHECKING:
    import optax


def named(
    functional: AbstractFunctional,
    optimiser: str,
    step: float,
    *,
    batch: int | None = None,
    one_pass: bool | None = None,
) -> Descent:
    """θ ← θ + update(g), g the gradient, by the optimiser of that name (see `wf.Optax` for any other one)."""
    if optimiser not in OPTIMISERS:
        known = ", ".join(OPTIMISERS)
        raise ValueError(
            f"Unknown optimiser {shown(optimiser)}; known: {known}.{nearest(optimiser, OPTIMISERS)}"
        )
    return Optax(functional, OPTIMISERS[optimiser].constructor(), step, batch=batch, one_pass=one_pass)


def sgd(step: float) -> "optax.GradientTransformation":
    """θ ← θ − ηg."""
    import optax

    return optax.sgd(step)


def momentum(step: float) -> "optax.GradientTransformation":
    """m ← 0.9 m + g, θ ← θ − ηm."""
    import optax

    return optax.sgd(step, momentum=0.9)


def nesterov(step: float) -> "optax.GradientTransformation":
    """m ← 0.9 m + g, θ ← θ − η(0.9 m + g)."""
    import optax

    return optax.sgd(step, momentum=0.9, nesterov=True)


def rmsprop(step: float) -> "optax.GradientTransformation":
    """v ← 0.9 v + 0.1 g², θ ← θ − ηg/√(v + ε), ε = 1e-8."""
    import optax

    return optax.rmsprop(step, decay=0.9, eps=1e-8)


def adam(step: float) -> "optax.GradientTransformation":
    """θ ← θ − ηm̂/(√v̂ + ε), with b1 = 0.9, b2 = 0.999, ε = 1e-8."""
    import optax

    return optax.adam(step)


def lion(step: float) -> "optax.GradientTransformation":
    """θ ← θ − η sign(0.9 m + 0.1 g), m ← 0.99 m + 0.01 g."""
    import optax

    return optax.lion(step, b1=0.9, b2=0.99, weight_decay=0.0)
