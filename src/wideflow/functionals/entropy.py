"""Entropy S(ρ) = −∫ρ log ρ."""

import equinox as eqx
import jax.numpy as jnp

from .._checks import count
from ..states.measure import AbstractMeasure, EntropyEstimate, is_measure
from .penalties import AbstractPenalty


class CoordinateEntropy(AbstractPenalty):
    """S(ρ) = −∫ρ log ρ dθ with respect to the coordinates alone."""

    neighbours: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.neighbours is not None:
            count("Entropy(neighbours)", self.neighbours)

    def value(self, state):
        return _measure(state).coordinate_entropy(self.neighbours)

    def energy(self, particles):
        return self.value(particles)

    def potential(self, theta, particles):
        """−(log ρ + 1), the first variation of S, at points of a grid."""
        return -(_measure(particles).log_density(theta) + 1)

    def drift(self, state, scale=1.0):
        raise ValueError(
            "The entropy moves no particle by a velocity: its flow is noise. Use wf.Langevin(F, step) on "
            "particles, or wf.GridFlow(F) on a grid, F = R - wf.Entropy() / beta."
        )


class Entropy(AbstractPenalty):
    """S(ρ) = −∫ρ log(ρ/m), m the reference measure of the coordinates: dθ, or for reduced particles, which
    stand for spheres of neurons in R^d, Π_i |S^{d_i−1}| r_i^{d_i−1} dθ̄, so that S is that of the neurons.

    On a `wf.GridDensity` it is the entropy of the density that is constant on cells, exactly. A cloud of
    particles has no density: its entropy is −∞, and that of the law behind it can only be
    estimated, from the distances to the k-th nearest neighbours, `Entropy(neighbours=k)`
    (Kozachenko–Leonenko): S ≈ ψ(n) − ψ(k) + log c_D + (D/n) Σ_j log ε_j. `estimate(particles)` gives it with
    its error.

    `R + 0.1 * wf.SecondMoment() - wf.Entropy() / beta` is the free energy at inverse temperature β: given to
    `wf.Langevin`, `wf.GridFlow`, `wf.JKO`, …, its entropy becomes their noise.

    >>> flat = wf.GridDensity([0.5, 0.5], 0.0, 2.0, neuron=unit)
    >>> float(wf.Entropy().value(flat).round(4))  # log 2
    0.6931"""

    neighbours: int | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.neighbours is not None:
            count("Entropy(neighbours)", self.neighbours)

    @property
    def _coordinates(self) -> CoordinateEntropy:
        return CoordinateEntropy(self.neighbours)

    def value(self, state):
        entropy = self._coordinates.value(state)
        return entropy if state.neuron.is_flat else entropy + state.log_reference()

    def estimate(self, state: AbstractMeasure) -> EntropyEstimate:
        """The entropy with one standard error: 0 on a grid; on particles the spread of log ε_j, and the bias
        that twice as many neighbours show. Equal weights are needed."""
        value, error = _measure(state).entropy_estimate(self.neighbours)
        return EntropyEstimate(value + (0.0 if state.neuron.is_flat else float(state.log_reference())), error)

    def energy(self, particles):
        return self.value(particles)

    def potential(self, theta, particles):
        """−(log(ρ/m) + 1), the first variation of S, at points of a grid."""
        change, neuron = self._coordinates.potential(theta, particles), particles.neuron
        if neuron.is_flat:
            return change
        return change + neuron.log_reference(neuron.unpack(jnp.asarray(theta))) + neuron.log_area

    def drift(self, state, scale=1.0):
        return self._coordinates.drift(state, scale)

    def entropic_split(self):
        return None, 1.0


def _measure(state: object) -> AbstractMeasure:
    if not is_measure(state):
        raise ValueError(f"Entropy is that of a measure of neurons, got a {type(state).__name__}.")
    return state
