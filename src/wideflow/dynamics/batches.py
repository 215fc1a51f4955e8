"""Which data a step sees: all of it, a fresh batch, a resampled batch, or each row once."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._checks import count
from .._typing import Abstract
from ..functionals.base import AbstractFunctional, is_functional
from ..problems.laws import is_dataset
from ..problems.nodes import Nodes, uniform
from ..problems.problem import Problem
from .streams import data_key, order_key

# Numbers drawn at a time, ahead of the steps that use them: enough to pay for a call of the generator, few to
# draw again where a run is cut into pieces.
_AHEAD = 2**14


class AbstractBatches(eqx.Module):
    """The batch of step k is a function of (key, k) alone, however many are drawn ahead."""

    batch: Abstract[int]

    @abc.abstractmethod
    def draw(self, key: Array, steps: Int[Array, " b"]) -> Nodes | None:
        """The batches of the given steps, along a leading axis."""

    @property
    @abc.abstractmethod
    def block(self) -> int:
        """How many steps' batches to draw ahead."""

    def most_steps(self) -> float:
        """Number of steps after which the data is used up."""
        return np.inf


def _ahead(batch: int, d: int) -> int:
    return 4 * int(np.clip(_AHEAD // (4 * batch * (d + 1)), 1, 256))


class FullBatch(AbstractBatches):
    """Every step takes the functional's own expectation."""

    batch: int = eqx.field(static=True, default=0)

    def draw(self, key, steps):
        return None

    @property
    def block(self):
        return 1024


class Fresh(AbstractBatches):
    """One pass over endless data: a new sample each step."""

    problem: Problem
    batch: int = eqx.field(static=True)

    def draw(self, key, steps):
        one = lambda k: self.problem.sample(data_key(key, k), self.batch)
        return jax.vmap(one)(steps)

    @property
    def block(self):
        return _ahead(self.batch, self.problem.d)


class WithReplacement(AbstractBatches):
    """Many passes over finite data: each step draws rows with replacement, by their weights."""

    nodes: Nodes
    equal: bool = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def draw(self, key, steps):
        m = self.nodes.m

        def one(k):
            if self.equal:
                rows = jax.random.randint(data_key(key, k), (self.batch,), 0, m)
            else:
                p = self.nodes.weights
                rows = jax.random.choice(data_key(key, k), m, (self.batch,), p=p)
            return uniform(self.nodes.x[rows], self.nodes.y[rows])

        return jax.vmap(one)(steps)

    @property
    def block(self):
        return _ahead(self.batch, self.nodes.x.shape[1])


class Once(AbstractBatches):
    """One pass over finite data: every row once, in an order drawn from the key."""

    nodes: Nodes
    batch: int = eqx.field(static=True)

    def draw(self, key, steps):
        order = jax.random.permutation(order_key(key), self.nodes.m)
        rows = order[(steps[:, None] * self.batch + jnp.arange(self.batch)) % self.nodes.m]
        return jax.vmap(uniform)(self.nodes.x[rows], self.nodes.y[rows])

    @property
    def block(self):
        return _ahead(self.batch, self.nodes.x.shape[1])

    def most_steps(self):
        return self.nodes.m // self.batch


def batches_for(functional: AbstractFunctional, batch: int | None, one_pass: bool | None):
    """The batches of a functional: all data without a batch size; else one pass over endless data,
    many passes over a data set, or as `one_pass` says."""
    if batch is None or not is_functional(functional):
        if one_pass is not None:
            raise ValueError("one_pass needs a batch size: set batch=1 or more.")
        return FullBatch()
    batch, problem = count("batch", batch), functional.problem
    if problem is None:
        raise ValueError("A penalty alone has no data to draw batches from: add a wf.Risk.")
    if functional.risks() > 1:
        raise ValueError(
            "A batch is drawn for one risk, and this functional is a sum of several: use full batches "
            "(batch=None, wf.GradientDescent or wf.GradientFlow), or one risk on the joined data."
        )
    finite = is_dataset(problem.x)
    one_pass = not finite if one_pass is None else one_pass
    if one_pass and not finite:
        return Fresh(problem, batch)
    nodes = functional.sample
    if nodes is None:
        raise ValueError(
            "Many passes need a finite sample to pass over: use "
            "wf.Risk(problem, expectation=wf.Sample(m)), or one_pass=True."
        )
    if batch > nodes.m:
        raise ValueError(f"batch = {batch} is larger than the data set of {nodes.m} rows.")
    equal = problem.x.equal if is_dataset(problem.x) else True
    if not one_pass:
        return WithReplacement(nodes, equal, batch)
    if not equal:
        raise ValueError("One pass over weighted data would drop the weights: use one_pass=False.")
    return Once(nodes, batch)
