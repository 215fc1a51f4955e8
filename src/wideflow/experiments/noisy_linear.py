"""The linear neuron with noise whose law stays Gaussian: the problem, and what is known of it."""

import math
from typing import Any, NamedTuple

import numpy as np

from ..functionals.expectations import Quadrature
from ..functionals.risk import Risk
from ..problems.laws import Gaussian
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..problems.targets import teacher
from ..states.grid import GridDensity
from ..states.marginals import Normal
from ..states.starts import Law, init

W_STAR, M0, S0 = (0.7, -0.4), -0.5, 0.6  # of D coordinates the first ones
DECAY, BETA = 0.3, 4.0


class Moments(NamedTuple):
    """Of one law, or with a first axis of time: mean (…, D), covariance (…, D, D), free energy (…)."""

    mean: Any
    covariance: Any
    energy: Any


def risk_of(D: int) -> Risk:  # noqa: N803
    target = teacher(np.array([W_STAR[:D]]), a=[1.0], link="identity")
    problem = Problem(x=Gaussian(D), target=target, neuron=Neuron("identity", output="unit"))
    return Risk(problem, Quadrature(4))  # exact for quadratic functions of x


def law_of(risk: Risk) -> Law:
    return init(risk.problem, w=Normal(M0, S0))


def gaussian(mean: Any, variance: Any) -> Moments:
    """N(mean, variance · I) and its F."""
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    D = mean.shape[-1]
    risk = 0.5 * np.sum((np.array(W_STAR[:D]) - mean) ** 2, axis=-1)
    square = 0.5 * DECAY * (np.sum(mean**2, axis=-1) + D * variance)
    entropy = 0.5 * D * (np.log(variance) + 1 + math.log(2 * math.pi))
    return Moments(mean, variance[..., None, None] * np.eye(D), risk + square - entropy / BETA)


def exact(ts: Any, D: int) -> Moments:  # noqa: N803
    """The solution at times ts."""
    t, fixed = np.asarray(ts, float), np.array(W_STAR[:D]) / (1 + DECAY)
    mean = fixed + (M0 - fixed) * np.exp(-(1 + DECAY) * t)[..., None]
    left = np.exp(-2 * DECAY * t)
    return gaussian(mean, S0**2 * left + (1 - left) / (BETA * DECAY))


def exact_mass(t: float, grid: GridDensity) -> np.ndarray:
    """Masses of the cells at time t."""
    from scipy.special import ndtr

    law, total = exact(t, grid.D), np.ones(())
    for i, m in enumerate(law.mean):
        ends = (np.asarray(grid.edges(i)) - m) / math.sqrt(law.covariance[i, i])
        total = np.multiply.outer(total, np.diff(ndtr(ends)))
    return total


def gaussian_step(step: float, count: int = 1) -> Moments:
    """So many minimising movements of the Gaussian start, D = 1, in closed form."""
    m, s = np.array([M0]), S0
    for _ in range(count):
        m = (m + step * W_STAR[0]) / (1 + step * (1 + DECAY))
        a = 1 + step * DECAY
        s = (s + math.sqrt(s**2 + 4 * a * step / BETA)) / (2 * a)
    return gaussian(m, s**2)


def distances(moments: Moments, truth: Moments) -> np.ndarray:
    """Distances from the truth in mean, standard deviation (the largest over coordinates) and F, one row
    each."""
    sd = lambda v: np.sqrt(np.einsum("...ii->...i", v.covariance))
    apart = np.abs(moments.mean - truth.mean).max(axis=-1), np.abs(sd(moments) - sd(truth)).max(axis=-1)
    return np.array([*apart, np.abs(moments.energy - truth.energy)])
