"""The points x that networks are looked at on, and the streams that they are drawn from."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._tracing import on_device
from ..problems.laws import is_dataset
from ..problems.problem import Problem
from ..states.state import AbstractState

# Apart from each other, and from all seeds (< 2³¹ + number of seeds) that starts and batches are drawn from.
TEST, KERNEL, VERDICT, DIRECTIONS = (2**32 - k for k in (2, 3, 4, 5))


_FEWEST = 1024  # draws, as many as cost nothing


def points(problem: Problem, m: int, stream: int) -> Array | None:
    """m points of a problem that is not reduced; None for none, and in d = ∞, where there are none."""
    pair = labelled(problem, m, stream)
    return None if pair is None else pair[0]


def labelled(problem: Problem, m: int, stream: int) -> tuple[Array, Array] | None:
    """The same with their labels: rows of a data set evenly, else draws of a stream of their own."""
    if m == 0 or math.isinf(problem.d):
        return None
    if is_dataset(problem.x):
        data = problem.x
        rows = np.unique(np.linspace(0, data.m - 1, min(m, data.m)).astype(int))
        return data.x[rows], data.y[rows]
    # Draw i depends on i alone: few lengths are drawn, for few programs, and cut on the host.
    length = max(_FEWEST, 1 << (m - 1).bit_length())
    drawn = jax.device_get(problem.fixed_sample(length, jax.random.key(stream)))
    return on_device(drawn.x[:m]), on_device(drawn.y[:m])


def in_coordinates_of(state: AbstractState, x: Array, problem: Problem) -> Array:
    """The same points for a state that may be of the reduced problem, and linearised."""
    reduced = state.base.is_reduced
    return problem.symmetry().rows(jnp.asarray(x)) if reduced else x
