"""The self-consistent Boltzmann equation ρ = exp(−βΨ_λ(θ; ρ))/Z on a grid, by Newton's method."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._tracing import jit
from .._typing import Scalar
from ..functionals.base import AbstractFunctional
from ..states.grid import GridDensity
from ..states.measure import AbstractMeasure

_HALVINGS = 60  # of a Newton step, before it is given up
_KRYLOV = 500  # steps of conjugate gradients for one Newton step
_ARMIJO = 1e-4


class Iterate(NamedTuple):
    """A potential φ on the cells with what is known of ρ = exp(−βφ)/Z."""

    phi: Float[Array, "..."]
    residual: Float[Array, ""]  # √∫(log ρ + βΨ_λ + log Z)², over max(ρ, e^{−βΨ_λ}/Z)
    largest: Float[Array, ""]  # the largest |log ρ + βΨ_λ + log Z| over the cells
    free_energy: Float[Array, ""]
    taken: Float[Array, ""]  # length of the Newton step that led here, 0 if none lowered F


class Boltzmann(eqx.Module):
    """Unknown is φ with ρ = exp(−βφ)/Z; solved is G(φ) = φ − Ψ_λ(·; ρ) = 0 (up to constants). Its Jacobian
    is I + βUC, U = ∂Ψ_λ/∂ρ ≥ 0 and C = diag ρ − ρρᵀ = SᵀS, S = diag √ρ (I − 1ρᵀ). So

        (I + βSUSᵀ)v = −SG,   δ = −G − βUSᵀv

    is Newton's step: a symmetric system whose eigenvalues are ≥ 1 and cluster there, for conjugate gradients;
    U is only ever applied, through the nodes. F falls along δ, as dF(δ) = −β(SG)ᵀ(I + βSUSᵀ)⁻¹SG, so
    halving the step until F falls enough leads to ρ* from everywhere. Near ρ* the error in ρ, in the norm of
    L²(ρ) of log ρ, is at most the residual (eigenvalues ≥ 1). Coordinates that are not trained keep their
    law: there 1ρᵀ is the mean over the trained ones."""

    functional: AbstractFunctional  # whose first variation is Ψ_λ
    grid: GridDensity
    beta: Scalar
    moving: tuple[int, ...] = eqx.field(static=True)  # axes that are trained

    def density(self, phi: Float[Array, "..."]) -> GridDensity:
        """exp(−βφ)/Z, with the given law of the coordinates that are not trained."""
        share = jax.nn.softmax(-self.beta * phi, axis=self.moving)
        return self.grid.with_mass(share * self._sum(self.grid.mass))

    def potential(self, rho: AbstractMeasure) -> Float[Array, "..."]:
        """Ψ_λ on the cells."""
        return self.functional.potential(self.grid.theta, rho).reshape(self.grid.mass.shape)

    def free_energy(self, rho: GridDensity) -> Float[Array, ""]:
        """F up to what does not depend on the law of the trained coordinates."""
        mass = rho.mass
        entropy = -jnp.sum(jnp.where(mass > 0, mass * jnp.log(jnp.where(mass > 0, rho.density, 1.0)), 0.0))
        return self.functional.energy(rho) - entropy / self.beta

    def iterate(self, phi: Array, taken: Scalar = 1.0) -> Iterate:
        """φ with its residual and free energy."""
        rho = self.density(phi)
        psi = self.potential(rho)
        gap = self.beta * self._centred(rho.mass, phi - psi)
        # a ρ that sits in one wrong cell has no gap there: its image elsewhere has
        both = jnp.maximum(rho.mass, self.density(psi).mass)
        residual = jnp.sqrt(jnp.sum(both * gap**2))
        return Iterate(
            phi, residual, jnp.max(jnp.abs(gap)), self.free_energy(rho), jnp.asarray(taken, phi.dtype)
        )

    def direction(self, phi: Array, residual: Array) -> tuple[Array, Array]:
        """Newton's δ, and the slope of F along it."""
        rho = self.density(phi)
        mass, root = rho.mass, jnp.sqrt(rho.mass)
        psi, push = jax.linearize(lambda m: self.potential(rho.with_mass(m)), mass)
        gap = phi - psi
        project = lambda v: root * self._centred(mass, v)  # S
        spread = lambda v: self._uncentred(mass, root * v)  # Sᵀ
        system = lambda v: v + self.beta * project(push(spread(v)))
        right = -project(gap)
        close = jnp.clip(residual, 1e-10, 0.1)  # inexact while far away: superlinear all the same
        v = jax.scipy.sparse.linalg.cg(system, right, tol=close, maxiter=_KRYLOV)[0]
        return -gap - self.beta * push(spread(v)), -self.beta * jnp.sum(right * v)

    def _centred(self, mass: Array, v: Array) -> Array:
        """v less its mean under ρ (at each value of the coordinates that are not trained)."""
        return v - self._sum(mass * v) / self._total(mass)

    def _uncentred(self, mass: Array, v: Array) -> Array:
        """The adjoint of `_centred`."""
        return v - mass * self._sum(v) / self._total(mass)

    def _sum(self, v: Array) -> Array:
        return jnp.sum(v, axis=self.moving, keepdims=True)

    def _total(self, mass: Array) -> Array:
        total = self._sum(mass)
        return jnp.where(total > 0, total, 1.0)


@jit
def warmth(equation: Boltzmann, log_density: Array) -> Array:
    """A β at which the landscape of the density that is given by its logarithm is almost flat."""
    rho = equation.density(-log_density / equation.beta)
    return 1 / jnp.maximum(jnp.std(equation.potential(rho)), 1 / equation.beta)


@jit
def at(equation: Boltzmann, phi: Array) -> Iterate:
    """The iterate of a potential."""
    return equation.iterate(phi)


@jit
def advance(equation: Boltzmann, now: Iterate) -> Iterate:
    """One Newton step, halved until F falls by a share of what its slope promises. Where F is flat to
    rounding, the residual has to fall instead."""
    delta, slope = equation.direction(now.phi, now.residual)
    rounding = 64 * jnp.finfo(now.phi.dtype).eps * (1 + jnp.abs(now.free_energy))

    def good(after):
        falls = after.free_energy <= now.free_energy + _ARMIJO * after.taken * slope - rounding
        flat = jnp.abs(after.free_energy - now.free_energy) <= rounding
        return falls | (flat & (after.residual < now.residual))

    def shorten(carry):
        tries, size, _ = carry
        return tries + 1, 0.5 * size, equation.iterate(now.phi + size * delta, size)

    def again(carry):
        tries, _, after = carry
        return (tries == 0) | ((tries < _HALVINGS) & ~good(after))

    none = now._replace(taken=jnp.zeros((), now.phi.dtype))
    after = jax.lax.while_loop(again, shorten, (0, jnp.ones((), now.phi.dtype), none))[2]
    return jax.tree.map(lambda new, old: jnp.where(good(after), new, old), after, none)
