"""Kernels and data of the tests of kernel machines.

`EXACT` is for well-conditioned systems (condition below 1e5 in every such case), whose errors are 1e-11 at
most; a wrong weight or factor misses it by far.
"""

import jax.numpy as jnp
import numpy as np

EXACT = dict(rtol=0, atol=1e-9)


def gaussian(x, y):
    return jnp.exp(-jnp.sum((x[:, None] - y[None]) ** 2, axis=-1))


def linear(x, y):
    return x @ y.T


def laplace(x, y):
    """Of condition about 100 on scattered points; by NumPy, which compiles nothing for another shape."""
    return np.exp(-np.sum(np.abs(np.asarray(x)[:, None] - np.asarray(y)[None]), axis=-1))


def hilbert(x, y):
    return 1 / (1 + x[:, None, 0] + y[None, :, 0])


def data(m, d=2, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(m, d))
    noise = rng.normal(size=(m,) if outputs is None else (m, outputs))
    weights = rng.uniform(0.5, 2, m)
    return x, noise, weights / weights.sum()


def matrix(kernel, x, y=None):
    return np.array(kernel(jnp.asarray(x), jnp.asarray(x if y is None else y)))
