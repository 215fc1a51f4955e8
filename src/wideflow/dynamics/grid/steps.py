"""One step of a density on a grid: with noise, and without."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from . import scharfetter_gummel as sg
from . import upwind
from .faces import inflow, limited

Potential = Callable[[Array], Array]  # the masses ↦ Ψ_λ at the centres, of the same shape

# Extrapolation to step 0 from one, two and three sub-steps of implicit Euler.
_COLUMNS = (0.5, -4.0, 4.5)
_LOWER = (0.0, -2.0, 3.0)  # of order 2, from two and three


class Grid(NamedTuple):
    """What a step needs to know of the cells."""

    widths: Float[Array, " D"]
    moves: tuple[bool, ...]


class AbstractStep(eqx.Module):
    """m(t) → m(t + dt), conservative and positive."""

    order: eqx.AbstractClassVar[int]

    @abc.abstractmethod
    def __call__(self, mass: Array, first: Array, potential: Potential, grid: Grid, dt: Array) -> Any:
        """The masses after the step, and an estimate of the error in L1. `first` is potential(mass)."""

    @abc.abstractmethod
    def longest(self, first: Array, grid: Grid) -> Array:
        """The longest step that keeps every mass positive."""


class DriftDiffusion(AbstractStep):
    """∂tρ = ∇·(ρ∇Φ) + β⁻¹Δρ by Scharfetter–Gummel fluxes, implicit Euler along one axis after the other with
    Φ from the start of each sub-step, extrapolated from one, two and three sub-steps: order 3 in dt, and
    stable for any dt. The extrapolation is one of fluxes, limited where it would make a mass negative."""

    beta: Any
    order = 3

    def _column(
        self, mass: Array, first: Array, potential: Potential, grid: Grid, dt: Array, steps: int
    ) -> Any:
        """Masses and total fluxes after so many sub-steps of dt/steps."""
        total: list[Any] = [0.0 if moves else None for moves in grid.moves]
        phi = first
        for k in range(steps):
            phi = potential(mass) if k else first
            for i, moves in enumerate(grid.moves):
                if not moves:
                    continue
                jumps = sg.rates(jnp.moveaxis(phi, i, 0), self.beta, grid.widths[i])
                jumps = sg.Rates(*(dt / steps * v for v in jumps))
                along = sg.implicit_step(jnp.moveaxis(mass, i, 0), jumps)
                mass = jnp.moveaxis(along, 0, i)
                total[i] = total[i] + jnp.moveaxis(sg.flux(along, jumps), 0, i)
        return mass, total

    def __call__(self, mass, first, potential, grid, dt):
        columns = [self._column(mass, first, potential, grid, dt, steps) for steps in (1, 2, 3)]
        finest, base = columns[-1]
        combine = lambda weights, i: sum(w * c[1][i] for w, c in zip(weights, columns, strict=True) if w)
        more, lower = (
            [None if flux is None else combine(weights, i) - flux for i, flux in enumerate(base)]
            for weights in (_COLUMNS, _LOWER)
        )
        new = finest + inflow(limited(finest, more), mass.shape)
        differs = [None if a is None else a - b for a, b in zip(more, lower, strict=True)]
        return new, jnp.sum(jnp.abs(inflow(differs, mass.shape)))

    def longest(self, first, grid):
        return jnp.asarray(jnp.inf, first.dtype)


class Transport(AbstractStep):
    """∂tρ = ∇·(ρ∇Φ) by upwind fluxes with limited slopes and the strong-stability-preserving Runge–Kutta
    method of order 3; the error is the difference from its embedded method of order 2."""

    order = 3

    def _change(self, mass: Array, phi: Array, grid: Grid) -> Array:
        fluxes: list[Array | None] = []
        for i, moves in enumerate(grid.moves):
            along, speed = (
                jnp.moveaxis(mass, i, 0),
                -jnp.diff(jnp.moveaxis(phi, i, 0), axis=0) / grid.widths[i] ** 2,
            )
            fluxes.append(jnp.moveaxis(upwind.flux(along, speed), 0, i) if moves else None)
        return inflow(fluxes, mass.shape)

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
