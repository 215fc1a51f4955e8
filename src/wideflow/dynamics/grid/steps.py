"""One step of a density on a grid: with noise, and without."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..._typing import Scalar
from . import scharfetter_gummel as sg
from . import upwind
from .faces import inflow, limited

Potential = Callable[[Array], Array]  # the masses ↦ Ψ_λ at the centres, of the same shape

# The sub-steps of three columns, of one, two and three each: whether it is the first of its column, which
# part of the step it is, and how its fluxes count in the extrapolations of order 3 and 2, beyond the last
# column.
_SUBSTEPS = (
    (True, 1 / 1, 0.5, 0.0),
    *((first, 1 / 2, -4.0, -2.0) for first in (True, False)),
    *((first, 1 / 3, 4.5 - 1.0, 3.0 - 1.0) for first in (True, False, False)),
)


class Cells(NamedTuple):
    """What a step needs to know about the cells."""

    widths: Float[Array, " D"]
    moves: tuple[bool, ...]


class AbstractStep(eqx.Module):
    """m(t) → m(t + dt), conservative and positive."""

    order: eqx.AbstractClassVar[int]

    @abc.abstractmethod
    def __call__(self, mass: Array, first: Array, potential: Potential, grid: Cells, dt: Array) -> PyTree:
        """The masses after the step, and an estimate of the error in L1. `first` is potential(mass)."""

    @abc.abstractmethod
    def excess(self, mass: Array, phi: Array, grid: Cells) -> Array:
        """Diffusion that the grid adds where the potential is steep from cell to cell, as a fraction of
        1/β."""

    @abc.abstractmethod
    def longest(self, first: Array, grid: Cells) -> Array:
        """The longest step that keeps every mass positive."""


class DriftDiffusion(AbstractStep):
    """∂tρ = ∇·(ρ∇Φ) + β⁻¹Δρ by Scharfetter–Gummel fluxes, implicit Euler along one axis after the other with
    Φ from the start of each sub-step, extrapolated from one, two and three sub-steps: order 3 in dt, and
    stable for any dt. The extrapolation is one of fluxes, limited where it would make a mass negative."""

    beta: Scalar
    order = 3

    def _substep(self, mass: Array, phi: Array, grid: Cells, dt: Array) -> tuple[Array, list[Array | None]]:
        """Implicit Euler along each axis in turn: the masses, and what crossed the faces."""
        fluxes: list[Array | None] = []
        beta = jnp.asarray(self.beta, mass.dtype)
        for i, moves in enumerate(grid.moves):
            if not moves:
                fluxes.append(None)
                continue
            jumps = sg.rates(jnp.moveaxis(phi, i, 0), beta, grid.widths[i])
            jumps = sg.Rates(*(dt * v for v in jumps))
            along = sg.implicit_step(jnp.moveaxis(mass, i, 0), jumps)
            mass = jnp.moveaxis(along, 0, i)
            fluxes.append(jnp.moveaxis(sg.flux(along, jumps), 0, i))
        return mass, fluxes

    def __call__(self, mass, first, potential, grid, dt):
        def substep(carry, sub):
            now, high, low = carry
            begins, part, in_high, in_low = sub
            phi = jax.lax.cond(begins, lambda _: first, potential, now)
            now, fluxes = self._substep(jnp.where(begins, mass, now), phi, grid, part * dt)
            add = lambda total, weight: jax.tree.map(lambda a, b: a + weight * b, total, fluxes)
            return (now, add(high, in_high), add(low, in_low)), None

        shapes = jax.eval_shape(lambda: self._substep(mass, first, grid, dt)[1])
        zero = jax.tree.map(lambda v: jnp.zeros(v.shape, v.dtype), shapes)
        begins, *numbers = (jnp.asarray(v) for v in zip(*_SUBSTEPS, strict=True))
        subs = (begins, *(v.astype(mass.dtype) for v in numbers))
        (finest, high, low), _ = jax.lax.scan(substep, (mass, zero, zero), subs)
        new = finest + inflow(limited(finest, high), mass)
        difference = [None if a is None else a - b for a, b in zip(high, low, strict=True)]
        return new, jnp.sum(jnp.abs(inflow(difference, mass)))

    def excess(self, mass, phi, grid):
        """Scharfetter–Gummel fluxes are centred ones with the diffusion x coth x / β, x = β|ΔΦ|/2: mean of
        x coth x − 1 over ρ, on the axis where it is largest."""
        excesses = [jnp.zeros((), mass.dtype)]
        for i, moves in enumerate(grid.moves):
            if moves:
                x = jnp.abs(jnp.diff(jnp.moveaxis(phi, i, 0), axis=0)) * self.beta / 2
                along = jnp.moveaxis(mass, i, 0)
                excess = jnp.where(x > 1e-3, x / jnp.tanh(jnp.maximum(x, 1e-3)) - 1, x**2 / 3)
                excesses.append(jnp.sum(excess * (along[1:] + along[:-1]) / 2))
        return jnp.max(jnp.stack(excesses)).astype(mass.dtype)

    def longest(self, first, grid):
        return jnp.asarray(jnp.inf, first.dtype)


class Transport(AbstractStep):
    """∂tρ = ∇·(ρ∇Φ) by upwind fluxes with limited slopes and the strong-stability-preserving Runge–Kutta
    method of order 3; the error is the difference from its embedded method of order 2."""

    order = 3

    def _change(self, mass: Array, phi: Array, grid: Cells) -> Array:
        fluxes: list[Array | None] = []
        for i, moves in enumerate(grid.moves):
            speed = -jnp.diff(jnp.moveaxis(phi, i, 0), axis=0) / grid.widths[i] ** 2
            flux = upwind.flux(jnp.moveaxis(mass, i, 0), speed)
            fluxes.append(jnp.moveaxis(flux, 0, i) if moves else None)
        return inflow(fluxes, mass)

    def excess(self, mass, phi, grid):
        return jnp.zeros((), mass.dtype)

    def __call__(self, mass, first, potential, grid, dt):
        change = lambda m, phi: dt * self._change(m, phi, grid)
        one = mass + change(mass, first)
        two = one + change(one, potential(one))
        heun, two = (mass + two) / 2, (3 * mass + two) / 4
        new = (mass + 2 * (two + change(two, potential(two)))) / 3
        return new, jnp.sum(jnp.abs(new - heun))

    def longest(self, first, grid):
        """No cell loses more than its mass: the faces' values are at most twice the cell's."""
        total = jnp.zeros_like(first)
        for i, moves in enumerate(grid.moves):
            if moves:
                speed = jnp.abs(jnp.diff(jnp.moveaxis(first, i, 0), axis=0)) / grid.widths[i] ** 2
                none = jnp.zeros_like(speed[:1])
                both = jnp.concatenate([none, speed]) + jnp.concatenate([speed, none])
                total = total + jnp.moveaxis(both, 0, i)
        return 0.4 / jnp.maximum(jnp.max(total), jnp.finfo(first.dtype).tiny)
