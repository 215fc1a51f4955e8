"""The free energy F = R/α² + (λ/2)∫|θ|²dρ − S/β, and what noisy dynamics take from it."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .._checks import is_traced, positive
from .._shown import shown
from .._typing import Scalar
from .base import AbstractFunctional, is_functional
from .entropy import CoordinateEntropy
from .penalties import AbstractPenalty, ReferencePotential, SecondMoment


class FreeEnergy(AbstractFunctional):
    """F = R/α² + (λ/2)∫|θ|²dρ − S/β as its `energy`: what noisy dynamics at inverse temperature β with decay
    λ lower, the same as `R + decay * wf.SecondMoment() - wf.Entropy() / beta`. On a reduced problem S is that
    of the neurons in R^d. `neighbours` as in `wf.Entropy`, for particles.

    >>> Q = wf.Risk(line, wf.Quadrature(8))
    >>> by_hand = Q + 0.1 * wf.SecondMoment() - wf.Entropy() / 5.0
    >>> float(by_hand.energy(density)) == float(wf.FreeEnergy(Q, beta=5.0, decay=0.1).energy(density))
    True"""

    plain: AbstractFunctional  # R/α² + (λ/2)∫|θ|²dρ
    confining: AbstractFunctional  # F without the entropy of the coordinates
    entropic: AbstractFunctional | None
    beta: float

    def __init__(
        self,
        functional: AbstractFunctional,
        *,
        beta: float | None = None,
        decay: float = 0.0,
        neighbours: int | None = None,
    ):
        physics = physics_of("FreeEnergy", functional, beta, decay)
        if physics.beta is None:
            raise ValueError("FreeEnergy needs an inverse temperature: beta=20.0, or beta=math.inf for none.")
        self.beta, self.plain = physics.beta, physics.plain
        self.confining = confining(self.plain, beta=self.beta)
        entropy = (-1 / self.beta) * CoordinateEntropy(neighbours) if self.is_noisy else None
        neuron = getattr(self.plain.problem, "neuron", None)
        if entropy is not None and neuron is not None and not neuron.is_flat:
            entropy = entropy + (-1 / self.beta) * Offset(neuron.log_area)
        self.entropic = entropy

    @property
    def is_noisy(self) -> bool:
        """Whether β < ∞; a traced β counts as such."""
        return is_traced(self.beta) or self.beta < math.inf

    def _both(self, of: Callable[[AbstractFunctional], PyTree]) -> PyTree:
        return of(self.confining) if self.entropic is None else of(self.confining) + of(self.entropic)

    def value(self, state):
        return self._both(lambda term: term.value(state))

    def energy(self, particles):
        return self._both(lambda term: term.energy(particles))

    def potential(self, theta, particles):
        return self._both(lambda term: term.potential(theta, particles))

    def drift(self, state, scale=1.0):
        if self.entropic is not None:
            self.entropic.drift(state, scale)  # says why there is none
        return self.confining.drift(state, scale)

    def on(self, nodes):
        parts = lambda free: (free.plain, free.confining)
        return eqx.tree_at(parts, self, tuple(term.on(nodes) for term in parts(self)))

    def on_cells(self, state):
        return eqx.tree_at(lambda free: free.confining, self, self.confining.on_cells(state))

    @property
    def problem(self):  # type: ignore[override]
        return self.confining.problem

    @property
    def sample(self):  # type: ignore[override]
        return self.confining.sample

    def info(self, state):
        return self.confining.info(state)

    def observed(self, state):
        """The risk, with decay the energy without entropy, and F where it is known: on a grid."""
        known = self.entropic is None or state.has_density
        return self.plain.observed(state) | ({"free_energy": self.energy(state)} if known else {})

    def risks(self):
        return self.confining.risks()

    def summands(self):
        return self.confining.summands() + (() if self.entropic is None else self.entropic.summands())

    def points(self, state):
        return self.confining.points(state)

    def entropic_split(self):
        return self.plain, -1 / self.beta

    def decay_split(self):
        rest, decay = self.plain.decay_split()
        return FreeEnergy(rest, beta=self.beta) if rest is not None else None, decay


class Physics(NamedTuple):
    """What a noisy dynamics lowers: G = R + λ·SecondMoment, and −S/β beside it (β is None where none was
    given)."""

    plain: AbstractFunctional
    beta: Any  # a number, or a schedule, which lives with the dynamics


def physics_of(
    name: str, functional: object, beta: Any = None, decay: Scalar = 0.0, *, schedule: bool = False
) -> Physics:
    """G and β of a functional F = G − S/β, or as `beta` and `decay` say; giving one of them twice is an
    error."""
    if not is_functional(functional):
        kind = type(functional).__name__
        raise ValueError(f"{name} needs a functional such as wf.Risk(problem), got a {kind}.")
    plain, entropy = functional.entropic_split()
    decay = positive("decay", decay, zero=True)
    if plain is None:
        raise ValueError(f"{name} needs a functional to descend beside the entropy: R - wf.Entropy() / beta.")
    if not is_traced(entropy) and entropy > 0:
        raise ValueError(
            f"{name} lowers its functional, and this one grows with the entropy ({entropy:+.3g} S): its flow "
            "would be a heat equation backwards. Use R - wf.Entropy() / beta."
        )
    if not is_traced(entropy) and entropy == 0:
        temperature = beta  # that of the argument, which may be None
    elif beta is not None:
        raise ValueError(
            f"{name} got an inverse temperature twice: the functional holds -S/beta already, and beta = "
            f"{shown(beta)} beside it. Say it once."
        )
    else:
        temperature = -1 / entropy
    if is_traced(decay) or decay:
        if functional.has_decay():
            raise ValueError(
                f"{name} got a decay twice: the functional holds wf.SecondMoment() already, and decay = "
                f"{shown(decay)} beside it. Say it once."
            )
        plain = plain + decay * SecondMoment()
    return Physics(plain, None if temperature is None else _inverse_temperature(temperature, schedule))


def _inverse_temperature(beta: PyTree, schedule: bool) -> PyTree:
    """β as a number > 0 or inf; a schedule as it is, where one is allowed."""
    return beta if schedule and hasattr(beta, "coldest") else positive("beta", beta, infinite=True)


def confining(functional: AbstractFunctional, *, beta: Scalar, decay: Scalar = 0.0) -> AbstractFunctional:
    """F without −S(ρ̄)/β: the functional whose first variation is Ψ_λ, on a reduced problem with the
    −Σ_i (d_i − 1)/β log r_i that noise brings."""
    decay = positive("decay", decay, zero=True)
    total = functional + decay * SecondMoment() if decay else functional
    neuron = getattr(functional.problem, "neuron", None)
    if neuron is None or neuron.is_flat or not (is_traced(beta) or beta < math.inf):
        return total
    if not math.isfinite(neuron.log_area):
        raise ValueError(
            f"beta = {beta:g} in d = inf would blow every radius up at once: the noise of d coordinates "
            "needs beta in proportion to d. Take a finite d."
        )
    return total + (1 / beta) * ReferencePotential()


class Offset(AbstractPenalty):
    """A number that does not depend on ρ."""

    number: Scalar

    def value(self, state):
        return jnp.asarray(self.number, state.dtype)

    def energy(self, particles):
        return self.value(particles)

    def potential(self, theta, particles):
        return jnp.full(len(theta), self.number, particles.dtype)

    def drift(self, state, scale=1.0):
        return jax.tree.map(jnp.zeros_like, state.parts)
