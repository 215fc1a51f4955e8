"""Entropy S(ρ) = −∫ρ log ρ and the free energy that noise adds it to."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._checks import count, positive
from ..problems.radial import RadialNeuron
from ..states.grid import GridDensity
from ..states.particles import Particles
from .base import AbstractFunctional
from .penalties import AbstractPenalty, RadialEntropy, SecondMoment

_TINY = 1e-300


class Estimate(NamedTuple):
    """A number and one standard error of it."""

    value: float
    error: float


class Entropy(AbstractPenalty):
    """S(ρ) = −∫ρ log ρ dθ.

    On a `wf.GridDensity` it is the entropy of the density that is constant on cells, exactly. A cloud of
    particles has no density: its entropy is −∞, and only an estimate of that of the law behind it can be
    had, from the distances to the k-th nearest neighbours, `Entropy(neighbours=k)` (Kozachenko–Leonenko):
    S ≈ ψ(n) − ψ(k) + log c_D + (D/n) Σ_j log ε_j. `estimate(particles)` gives it with its error."""

    neighbours: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.neighbours is not None:
            count("Entropy(neighbours)", self.neighbours)

    def value(self, state):
        if isinstance(state, GridDensity):
            return -jnp.sum(state.mass * _log(state.density))
        if not isinstance(state, Particles):
            raise ValueError(f"Entropy is that of a measure of neurons, got a {type(state).__name__}.")
        if self.neighbours is None:
            raise ValueError(
                f"{state.n} particles have no density, so that their entropy is -inf; exact is that of a "
                "wf.GridDensity (wf.on_grid). For an estimate with an error bar ask for "
                "wf.Entropy(neighbours=4).estimate(particles)."
            )
        if isinstance(state.weights, jax.core.Tracer):
            spec = jax.ShapeDtypeStruct((), state.dtype)
            return jax.pure_callback(lambda s: np.asarray(self.estimate(s).value, s.dtype), spec, state)
        return jnp.asarray(self.estimate(state).value, state.dtype)

    def estimate(self, state: Any) -> Estimate:
        """The entropy with one standard error: 0 on a grid; on particles the spread of log ε_j, and the bias
        that twice as many neighbours show. Equal weights are needed."""
        if isinstance(state, GridDensity):
            return Estimate(float(self.value(state)), 0.0)
        k = self.neighbours or 4
        theta = np.asarray(state.theta)
        if len(theta) <= 2 * k:
            raise ValueError(f"Entropy(neighbours={k}) needs more than {2 * k} particles, got {len(theta)}.")
        if not state.has_equal_weights():
            raise ValueError(
                "The estimate by neighbours needs particles of equal weight; put weighted ones on a grid, "
                "wf.on_grid(particles, low, high, cells)."
            )
        (here, spread), (wider, _) = (_by_neighbours(theta, j) for j in (k, 2 * k))
        # the bias grows like (k/n)^{2/D}, at an edge like (k/n)^{1/D}, by which twice as many tell it
        bias = (wider - here) / (2 ** (1 / theta.shape[1]) - 1)
        return Estimate(here, math.hypot(spread, bias))

    def energy(self, particles):
        return self.value(particles)

    def potential(self, theta, particles):
        """−(log ρ + 1), the first variation of S, at points of the grid."""
        if not isinstance(particles, GridDensity):
            raise ValueError("The first variation of the entropy, -(log ρ + 1), needs a wf.GridDensity.")
        places = jnp.floor((jnp.asarray(theta) - particles.low) / particles.widths).astype(int)
        cells = tuple(jnp.clip(places[:, i], 0, n - 1) for i, n in enumerate(particles.mass.shape))
        return -(_log(particles.density[cells]) + 1)

    def drift(self, state, scale=1.0):
        raise ValueError(
            "The entropy moves no particle by a velocity: its flow is noise. Use wf.Langevin(R, step, beta=…)"
            " on particles, or wf.GridFlow(R, beta=…) on a grid."
        )


def _log(density: Array) -> Array:
    return jnp.log(jnp.maximum(density, _TINY if density.dtype == jnp.float64 else 1e-37))


def _whitened(theta: np.ndarray) -> tuple[np.ndarray, float]:
    """The cloud with covariance I, as neighbours want it, and log det of the map back (one in a subspace: as
    it is)."""
    centred = theta - theta.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(theta))
    if not values[0] > 1e-12 * values[-1]:
        return theta, 0.0
    return centred @ vectors / np.sqrt(values), 0.5 * float(np.log(values).sum())


def _by_neighbours(theta: np.ndarray, k: int) -> tuple[float, float]:
    """The estimate by k-th neighbours and one standard error of it."""
    from scipy.spatial import cKDTree
    from scipy.special import digamma, gammaln

    n, D = theta.shape
    theta, scale = _whitened(theta)
    distance = cKDTree(theta).query(theta, k + 1)[0][:, -1]
    if (distance == 0).any():
        raise ValueError(
            f"{int((distance == 0).sum())} particles have {k} others at the very same place: their law has "
            "no density. Entropy is for noisy particles."
        )
    unit_ball = 0.5 * D * math.log(math.pi) - float(gammaln(0.5 * D + 1))
    each = D * np.log(distance)
    value = float(digamma(n) - digamma(k)) + unit_ball + float(each.mean()) + scale
    return value, float(each.std(ddof=1)) / math.sqrt(n)


class FreeEnergy(AbstractFunctional):
    """F = R/α² + (λ/2)∫|θ|²dρ − S/β as its `energy`: what noisy dynamics at inverse temperature β with decay
    λ lower. On a reduced problem it has the entropy of the neurons in R^d, S(ρ̄) + E log Π_i |S^{d_i−1}|
    r_i^{d_i−1} over its blocks of dimension d_i. `neighbours` as in `wf.Entropy`, for particles."""

    plain: AbstractFunctional  # R/α² + (λ/2)∫|θ|²dρ
    confining: AbstractFunctional  # F without −S(ρ̄)/β
    entropic: AbstractFunctional | None

    def __init__(
        self,
        functional: AbstractFunctional,
        *,
        beta: float,
        decay: float = 0.0,
        neighbours: int | None = None,
    ):
        beta = positive("beta", beta, infinite=True)
        self.plain = confining(functional, beta=math.inf, decay=decay)
        self.confining = confining(functional, beta=beta, decay=decay)
        entropy = (-1 / beta) * Entropy(neighbours) if beta < math.inf else None
        neuron = getattr(functional.problem, "neuron", None)
        if entropy is not None and isinstance(neuron, RadialNeuron):
            entropy = entropy + (-1 / beta) * Offset(_log_areas(neuron))
        self.entropic = entropy

    def _both(self, of: Callable[[AbstractFunctional], Any]) -> Any:
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

    @property
    def problem(self):
        return self.confining.problem

    @property
    def sample(self):
        return self.confining.sample

    def info(self, state):
        return self.confining.info(state)

    def observed(self, state):
        """The risk, with decay the energy without entropy, and F where it is known: on a grid."""
        known = self.entropic is None or isinstance(state, GridDensity)
        return self.plain.observed(state) | ({"free_energy": self.energy(state)} if known else {})

    def risks(self):
        return self.confining.risks()


def confining(functional: AbstractFunctional, *, beta: float, decay: float) -> AbstractFunctional:
    """F without −S(ρ̄)/β: the functional whose first variation is Ψ_λ, on a reduced problem with the
    −Σ_i (d_i − 1)/β log r_i that noise brings."""
    decay = positive("decay", decay, zero=True)
    total = functional + decay * SecondMoment() if decay else functional
    neuron = getattr(functional.problem, "neuron", None)
    if not (beta < math.inf and isinstance(neuron, RadialNeuron)):
        return total
    if any(math.isinf(dim) for dim in neuron.blocks):
        raise ValueError(
            f"beta = {beta:g} in d = inf would blow every radius up at once: the noise of d coordinates "
            "needs beta in proportion to d. Take a finite d."
        )
    return total + (1 / beta) * RadialEntropy()


def _log_areas(neuron: RadialNeuron) -> float:
    """Σ log |S^{d_i − 1}|, d_i the dimension of block i."""
    half = [0.5 * dim for dim in neuron.blocks]
    return sum(math.log(2) + h * math.log(math.pi) - math.lgamma(h) for h in half)


class Offset(AbstractPenalty):
    """A number that does not depend on ρ."""

    number: Any

    def value(self, state):
        return jnp.asarray(self.number, state.dtype)

    def energy(self, particles):
        return self.value(particles)

    def potential(self, theta, particles):
        return jnp.full(len(theta), self.number, particles.dtype)

    def drift(self, state, scale=1.0):
        return jax.tree.map(jnp.zeros_like, state.parts)
