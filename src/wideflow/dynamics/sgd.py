"""Stochastic gradient descent."""

from ..functionals.base import AbstractFunctional
from .batches import batches_for
from .descent import Descent
from .rules import Euler


def SGD(  # noqa: N802
    functional: AbstractFunctional, step: float, batch: int = 1, one_pass: bool | None = None
) -> Descent:
    """θ_j ← θ_j + (η/α) · batch mean of u ∇σ*(x; θ_j).

    `one_pass=True` draws fresh data each step (the default for a law of x; a data set is then read
    once, in random order, and no further); `one_pass=False` draws rows of a finite sample with
    replacement (the default for a data set).
    - `functional`: a `wf.Risk`, with penalties if any, R + 0.1 * wf.SecondMoment().
    - `step`: η; time is t = kη after k steps.
    - `batch`: samples per step.

    >>> run = wf.evolve(wf.SGD(R, step=0.01, batch=8), net, ts, key=key)
    >>> run["risk"].round(3)
    array([0.235, 0.214, 0.196])"""
    batches = batches_for(functional, batch, one_pass)
    return Descent(functional, step, batches, Euler(), "SGD", ("robbins1951", "mei2018", "mei2019"))
