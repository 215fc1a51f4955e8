"""What flows through a network at n = ∞: tables of covariances, and what a layer may ask of the recursion.

Σ holds Cov(h(x, p), h(x', p')) of the Gaussian h, Θ the tangent kernel of h, for samples x, x' and, in
images, positions p, p'. Axes: the samples, (m1, m2) for all pairs or (m,) for a sample with itself; then
none for a vector, (height, width) where only p = p' is needed, (height, width, height, width) for all
pairs of positions."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ...problems.activations import Activation


class Tables(NamedTuple):
    """Σ and Θ, of one shape."""

    sigma: Array
    theta: Array


class Randomness(NamedTuple):
    """Of a value at n = ∞: whether it is Gaussian, and whether it is independent, with mean 0, of what
    entered the innermost block."""

    gaussian: bool
    fresh: bool


class AbstractRecursion(abc.ABC):
    """One layer's view of the recursion; `lead` axes of its tables are of samples."""

    lead: int

    @abc.abstractmethod
    def affine(self, tables: Tables, mean: Callable[[Array], Array]) -> Tables:
        """A weight layer whose sum over inputs is, at n = ∞, the `mean` of a table:

            Σ ← g² mean Σ + σ_b²,    Θ ← g² mean(Θ + own Σ) + own_b,

        with own = 1 where the layer has a part in the limit of the kernel."""

    @abc.abstractmethod
    def activated(self, phi: Activation, tables: Tables) -> Tables:
        """Σ ← E φ(u)φ(v), Θ ← Θ ∘ E φ'(u)φ'(v), (u, v) ~ N(0, Σ on {x, x'})."""


def diagonal(table: Array) -> Array:
    """The entries p = p' of a table (…, height, width, height, width)."""
    return jnp.einsum("...hwhw->...hw", table)
