"""The interface of every scheme for a minimising movement."""

import abc
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from ..._typing import DType
from ...functionals.base import AbstractFunctional
from ...states.state import AbstractState


class Moved(NamedTuple):
    """The state after a step, how far from its minimum the inner solve left it, in units of θ (on a grid, of
    log ρ), and whether that is within the tolerance."""

    state: AbstractState
    residual: Float[Array, ""]
    solved: Bool[Array, ""]


class AbstractScheme(eqx.Module):
    """One step of size τ for G − S/β, where G is the functional of the step (R/α² + (λ/2)∫|θ|²dρ)."""

    @abc.abstractmethod
    def check(self, state: AbstractState, step: float, beta: float) -> None:
        """Raise if this state cannot be moved."""

    @abc.abstractmethod
    def move(
        self,
        G: AbstractFunctional,  # noqa: N803
        state: AbstractState,
        step: Array,
        beta: Array,
        key: Array,
    ) -> Moved:
        """The state after one step; `key` is for this step's noise alone."""

    def is_w2(self, G: AbstractFunctional, before: PyTree, moved: Moved, step: Array) -> Bool[Array, ""]:  # noqa: N803
        """Whether the distance of this step is known to be W2."""
        return jnp.ones((), bool)


def tolerance(tol: float | None, dtype: DType) -> float:
    """The tolerance asked for, or one that the precision can keep."""
    if tol is not None:
        return tol
    return 1e-9 if jnp.finfo(dtype).eps < 1e-10 else 1e-4
