"""Noisy gradient descent."""

import math

from .._checks import is_traced
from ..functionals.base import AbstractFunctional
from ..functionals.free_energy import confining, physics_of
from .batches import batches_for
from .coordinates import chosen, names
from .descent import Descent
from .rules import AbstractRule, Euler, Noisy
from .schedules import Annealing, inverse_temperature, is_annealed


def Langevin(  # noqa: N802
    functional: AbstractFunctional,
    step: float,
    *,
    beta: float | Annealing | None = None,
    decay: float = 0.0,
    batch: int | None = None,
    one_pass: bool | None = None,
    noise_on: str | tuple[str, ...] | None = None,
) -> Descent:
    """θ ← (1 − ηλ)θ + (η/α)E[u∇σ*] + √(2η/β) g, g ~ N(0, I): decay λ, inverse temperature β.

    λ and β are those of the functional F = R + λ·SecondMoment − S/β (`wf.FreeEnergy`), or given here.

    Euler–Maruyama for ∂tρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ, of weak order 1 in η. β = inf is no noise. `batch`
    makes it noisy SGD (`one_pass` as in `wf.SGD`); without it the velocity is the full one. On a reduced
    problem the noise is that of the neurons in R^d, with exactly the law of such a step: their radii drift by
    (d_i − 1)/(βr) on average.

    - `beta`: a number, or β(t) as `wf.Annealing(start, end, over)`; step k has the β of t = kη.
    - `noise_on`: coordinates with noise, by their own names (w1) or those of their parts (w), as
      `neuron.coordinates(D)` lists them; all trained ones by default. Radii without noise have no drift.

    >>> F = wf.FreeEnergy(R, beta=100.0, decay=0.1)
    >>> run = wf.evolve(wf.Langevin(F, step=0.01), net, ts, key=key)
    >>> run["risk"].round(3)
    array([0.235, 0.196, 0.183])
    >>> same = wf.Langevin(R, step=0.01, beta=100.0, decay=0.1)
    >>> bool((wf.evolve(same, net, ts, key=key).final.theta == run.final.theta).all())
    True"""
    on = None if noise_on is None else names(noise_on)
    total, beta = physics_of("Langevin", functional, inverse_temperature(beta), decay, schedule=True)
    if beta is None:
        raise ValueError(
            "Langevin needs an inverse temperature: beta=20.0, a functional with an entropy such as "
            "wf.FreeEnergy(R, beta=20.0), or wf.GradientDescent for none."
        )
    batches = batches_for(total, batch, one_pass)
    sources = ("mei2018", "hu2021", *(("chizat2022",) if is_annealed(beta) else ()))
    return Descent(total, step, batches, noise(total, beta, on), "Langevin", sources)


def noise(
    functional: AbstractFunctional, beta: float | Annealing, on: tuple[str, ...] | None = None
) -> AbstractRule:
    """The rule of the noise, with what it does to radii."""
    radii = _radii(functional, on)
    if not is_traced(beta) and beta == math.inf:
        return Euler()
    if radii:
        coldest = beta.coldest if is_annealed(beta) else beta
        confining(functional, beta=coldest)  # refuses d = inf
    return Noisy(beta, on, radii)


def _radii(functional: AbstractFunctional, on: tuple[str, ...] | None) -> bool:
    """Whether noise acts on radii of a reduced problem; raise for names that its neuron does not have."""
    problem = getattr(functional, "problem", None)
    if problem is None:
        return False  # a penalty alone: names are checked against the state
    mask = (True,) * problem.D if on is None else chosen(on, problem.neuron, problem.D)
    return any(m and is_radius for m, is_radius in zip(mask, problem.neuron.radii(problem.D), strict=True))
