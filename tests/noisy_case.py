"""Exact case 1 with noise: a linear neuron whose law stays Gaussian under ∂tρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

import wideflow as wf


@dataclass(frozen=True)
class NoisyLinear:
    """σ* = ⟨θ, x⟩, y = ⟨w*, x⟩, start N(m₀, s₀² I): ṁ = w* − (1 + λ)m and
    C(t) = s₀² e^{−2λt} + (1 − e^{−2λt})/(βλ) in every coordinate."""

    w_star: tuple[float, ...] = (0.7,)
    m0: tuple[float, ...] = (-0.5,)
    s0: float = 0.6
    decay: float = 0.3
    beta: float = 4.0

    @property
    def D(self):  # noqa: N802 (theory's name)
        return len(self.w_star)

    @property
    def problem(self):
        return wf.Problem(
            x=wf.Gaussian(self.D),
            target=wf.teacher(np.array([self.w_star]), a=[1.0], link="identity"),
            neuron=wf.Neuron("identity", output="unit"),
        )

    @property
    def risk(self):
        return wf.Risk(self.problem, wf.Quadrature(4))  # exact for quadratic functions of x

    def mean(self, t):
        fixed = np.array(self.w_star) / (1 + self.decay)
        return fixed + (np.array(self.m0) - fixed) * np.exp(-(1 + self.decay) * t)

    def sd(self, t):
        left = np.exp(-2 * self.decay * t)
        noise = 0.0 if np.isinf(self.beta) else (1 - left) / (self.beta * self.decay)
        return np.sqrt(self.s0**2 * left + noise)

    def energy_of(self, mean, variance):
        """F of N(mean, variance · I)."""
        away = 0.5 * np.sum((np.array(self.w_star) - mean) ** 2)
        square = 0.5 * self.decay * (np.sum(mean**2) + self.D * variance)
        entropy = 0.5 * self.D * (np.log(variance) + 1 + np.log(2 * np.pi))
        return away + square - entropy / self.beta

    def energy(self, t):
        return self.energy_of(self.mean(t), self.sd(t) ** 2)

    def least_energy(self):
        return self.energy_of(np.array(self.w_star) / (1 + self.decay), 1 / (self.beta * self.decay))

    def start(self, cells, half=6.0):
        """N(m₀, s₀² I) on a grid, exactly."""
        gaussian = [np.diff(ndtr((np.linspace(-half, half, cells + 1) - m) / self.s0)) for m in self.m0]
        mass = gaussian[0]
        for along in gaussian[1:]:
            mass = np.multiply.outer(mass, along)
        low, high = -half * np.ones(self.D), half * np.ones(self.D)
        return wf.GridDensity(mass / mass.sum(), low, high, neuron=self.problem.neuron)

    def mass(self, t, grid):
        """Exact masses of the cells at time t."""
        total = np.ones(())
        for i, m in enumerate(self.mean(t)):
            total = np.multiply.outer(total, np.diff(ndtr((np.asarray(grid.edges(i)) - m) / self.sd(t))))
        return total

    def error(self, t, grid):
        """Distance in L1 from the exact solution."""
        return float(np.abs(np.asarray(grid.mass) - self.mass(t, grid)).sum())
