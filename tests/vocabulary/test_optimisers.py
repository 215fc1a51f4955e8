"""Optimisers by name do what their formulas say: some steps by hand in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.vocabulary.optimisers import OPTIMISERS

STEP = 0.1
GRADIENTS = [np.array([1.0, -2.0]), np.array([0.5, 1.0]), np.array([-3.0, 0.1])]


def sgd(theta, g, memory, k):
    return theta - STEP * g, memory


def momentum(theta, g, memory, k):
    m = 0.9 * memory.get("m", 0.0) + g
    return theta - STEP * m, {"m": m}


def nesterov(theta, g, memory, k):
    m = 0.9 * memory.get("m", 0.0) + g
    return theta - STEP * (0.9 * m + g), {"m": m}


def rmsprop(theta, g, memory, k):
    v = 0.9 * memory.get("v", 0.0) + 0.1 * g**2
    return theta - STEP * g / np.sqrt(v + 1e-8), {"v": v}


def adam(theta, g, memory, k):
    m = 0.9 * memory.get("m", 0.0) + 0.1 * g
    v = 0.999 * memory.get("v", 0.0) + 0.001 * g**2
    hat = m / (1 - 0.9**k), v / (1 - 0.999**k)
    return theta - STEP * hat[0] / (np.sqrt(hat[1]) + 1e-8), {"m": m, "v": v}


def lion(theta, g, memory, k):
    m = memory.get("m", 0.0)
    return theta - STEP * np.sign(0.9 * m + 0.1 * g), {"m": 0.99 * m + 0.01 * g}


BY_HAND = {fn.__name__: fn for fn in (sgd, momentum, nesterov, rmsprop, adam, lion)}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_steps_are_those_of_the_formula(name):
    optimiser = OPTIMISERS[name].constructor()(STEP)
    theta, expected, memory = jnp.zeros(2), np.zeros(2), {}
    state = optimiser.init(theta)
    for k, g in enumerate(GRADIENTS, 1):
        update, state = optimiser.update(jnp.asarray(g), state, theta)
        theta = theta + update
        expected, memory = BY_HAND[name](expected, g, memory, k)
        np.testing.assert_allclose(theta, expected, rtol=1e-10, err_msg=f"step {k}")  # a few roundings
