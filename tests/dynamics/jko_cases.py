"""What the tests of minimising movements share."""

import jax
import numpy as np

import wideflow as wf
from wideflow.dynamics.jko.jko import JKO  # noqa: F401 (for those who import it from here)

W_STAR = 1.3


def _linear(x, theta):
    return theta @ x


def _erf(x, theta):
    return jax.lax.erf(theta @ x)


def linear_risk(d=1):
    """Case 1: a linear neuron and the target W_STAR · Σ x_i; polynomials, so that 4 nodes are exact."""
    neuron = wf.CustomNeuron(_linear, d)
    problem = wf.Problem(x=wf.Gaussian(d), target=lambda x: W_STAR * x.sum(), neuron=neuron)
    return wf.Risk(problem, wf.Quadrature(4))


def erf_risk(d=1):
    """A single index to be learned by neurons erf(⟨θ, x⟩) without output weights: D = d."""
    neuron = wf.CustomNeuron(_erf, d)
    problem = wf.Problem(x=wf.Gaussian(d), target=lambda x: jax.lax.erf(2 * x[0]), neuron=neuron)
    return wf.Risk(problem, wf.Quadrature(12))


def moments(state):
    """Mean and standard deviation of a weighted cloud, or of the centres of a grid, along each axis."""
    theta, weights = np.asarray(state.theta), np.asarray(state.weights)
    mean = weights @ theta
    return mean, np.sqrt(weights @ (theta - mean) ** 2)
