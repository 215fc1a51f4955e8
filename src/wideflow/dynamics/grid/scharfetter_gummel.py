"""Drift and diffusion on a grid: Scharfetter–Gummel fluxes, implicit Euler along one axis at a time.

Two neighbouring cells have mass m₋, m₊, potential Φ₋, Φ₊ and distance h, and δ = β(Φ₊ − Φ₋). The mass that
flows to the right in unit time is (B(δ)m₋ − B(−δ)m₊)/(βh²), B(z) = z/(e^z − 1). It is 0 iff m ∝ e^{−βΦ}, so
that equilibria are kept exactly, on every face and by every axis alone. Of second order in h while |δ| ≲ 1;
where β|∇Φ|h is large it becomes the upwind flux, of first order."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_SMALL = 1e-4  # below, the series of B is exact to rounding


class Rates(NamedTuple):
    """Jumps per step between neighbours along the first axis: `right[i]` from cell i to i + 1, `left[i]` from
    i + 1 to i."""

    right: Float[Array, "N-1 ..."]
    left: Float[Array, "N-1 ..."]


def bernoulli(z: Array) -> Array:
    """B(z) = z/(e^z − 1)."""
    small = jnp.abs(z) < _SMALL
    safe = jnp.where(small, 1.0, z)
    return jnp.where(small, 1 - z / 2 + z**2 / 12, safe / jnp.expm1(safe))


def rates(potential: Float[Array, "N ..."], beta: Array, h: Array) -> Rates:
    """Jump rates in unit time, along the first axis."""
    delta, scale = beta * jnp.diff(potential, axis=0), 1 / (beta * h**2)
    return Rates(scale * bernoulli(delta), scale * bernoulli(-delta))


def implicit_step(mass: Float[Array, "N ..."], rates: Rates) -> Float[Array, "N ..."]:
    """Solve (I − A)m⁺ = m for the jump process with these rates per step, whatever their size.

    Elimination without a single subtraction, as mass moves between neighbours only: m⁺ > 0 and Σm⁺ = Σm hold
    to rounding, the far tails have all their digits."""
    none = jnp.zeros_like(mass[:1])
    left, right = jnp.concatenate([none, rates.left]), jnp.concatenate([rates.right, none])

    def forward(before, cell):
        stays, pushed = before  # e/b and R·d/b of the cell before
        m, to_left, to_right = cell
        kept = 1 + to_left * stays
        pivot = kept + to_right
        flowing = (m + pushed) / pivot
        return (kept / pivot, to_right * flowing), (flowing, to_left, pivot)

    def back(after, cell):
        flowing, to_left, pivot = cell
        value = flowing + after / pivot
        return to_left * value, value

    zero = none[0]
    _, cells = jax.lax.scan(forward, (zero, zero), (mass, left, right))
    return jax.lax.scan(back, zero, cells, reverse=True)[1]


def flux(mass: Float[Array, "N ..."], rates: Rates) -> Float[Array, "N-1 ..."]:
    """Mass that moves to the right across each inner face in one step."""
    return rates.right * mass[:-1] - rates.left * mass[1:]
