"""What every scheme of a minimising movement answers."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ...functionals.base import AbstractFunctional


class Moved(NamedTuple):
    """The state after a step, how far from its minimum the inner solve left it, in units of θ (on a grid, of
    log ρ), and whether that is within the tolerance."""

    state: Any
    residual: Float[Array, ""]
    solved: Bool[Array, ""]


class AbstractScheme(eqx.Module):
    """One step of size τ for G − S/β, where G is the functional of the step (R/α² + (λ/2)∫|θ|²dρ)."""

    @abc.abstractmethod
    def check(self, state: Any, step: float, beta: float) -> None:
        """Raise if this state cannot be moved."""

    @abc.abstractmethod
    def move(self, G: AbstractFunctional, state: Any, step: Array, beta: Array, key: Array) -> Moved:  # noqa: N803
        """The state after one step; `key` is for this step's noise alone."""


def tolerance(tol: float | None, dtype: Any) -> float:
    """The tolerance asked for, or one that the precision can keep."""
    if tol is not None:
        return tol
    return 1e-9 if jnp.finfo(dtype).eps < 1e-10 else 1e-4
