"""Noisy gradient descent."""

import math
from typing import Any

from ..functionals.base import AbstractFunctional
from ..functionals.entropy import confining
from .batches import batches_for
from .coordinates import chosen, names
from .descent import Descent
from .rules import AbstractRule, Euler, Noisy
from .schedules import Annealing, inverse_temperature


def Langevin(  # noqa: N802
    functional: AbstractFunctional,
    step: float,
    *,
    beta: float | Annealing,
    decay: float = 0.0,
    batch: int | None = None,
    one_pass: bool | None = None,
    noise_on: str | tuple[str, ...] | None = None,
) -> Descent:
    """θ ← (1 − ηλ)θ + (η/α)E[u∇σ*] + √(2η/β) g, g ~ N(0, I): decay λ, inverse temperature β.

    Euler–Maruyama for ∂tρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ, of weak order 1 in η. β = inf is no noise. `batch`
    makes it noisy SGD; without it the velocity is the full one. On a reduced problem the noise is that
    of the neurons in R^d, in the very law of such a step: their radii drift by (d_i − 1)/(βr) in the mean.

    - `beta`: a number, or β(t) as `wf.Annealing(start, end, over)`; step k has the β of t = kη.
    - `noise_on`: coordinates with noise, by their own names (w1) or those of their parts (w), as
      `neuron.coordinates(D)` lists them; all trained ones by default. Radii without noise have no drift."""
    beta = inverse_temperature(beta)
    on = None if noise_on is None else names(noise_on)
    total = confining(functional, beta=math.inf, decay=decay)
    batches = batches_for(functional, batch, one_pass)
    sources = ("mei2018", "hu2021", *(("chizat2022",) if isinstance(beta, Annealing) else ()))
    return Descent(total, step, batches, noise(functional, beta, on), "Langevin", sources)


def noise(functional: Any, beta: float | Annealing, on: tuple[str, ...] | None = None) -> AbstractRule:
    """The rule of the noise, with what it does to radii."""
    radii = _radii(functional, on)
    if beta == math.inf:
        return Euler()
    if radii:
        coldest = max(beta.start, beta.end) if isinstance(beta, Annealing) else beta
        confining(functional, beta=coldest, decay=0.0)  # refuses d = inf
    return Noisy(beta, on, radii)


def _radii(functional: Any, on: tuple[str, ...] | None) -> bool:
    """Whether noise acts on radii of a reduced problem; raise for names that its neuron has not."""
    problem = getattr(functional, "problem", None)
    if problem is None:
        return False  # a penalty alone: names are checked against the state
    mask = (True,) * problem.D if on is None else chosen(on, problem.neuron, problem.D)
    return any(m and is_radius for m, is_radius in zip(mask, problem.neuron.radii(problem.D), strict=True))
