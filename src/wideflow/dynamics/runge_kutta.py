"""Explicit Runge–Kutta steps with the tableaus of diffrax, in programs that contain the velocity once."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from .._typing import DType, Scalar

if TYPE_CHECKING:
    import diffrax

Velocity = Callable[[PyTree], PyTree]
SLOPE, PROBE, READY = 2, 1, 0  # what is known before the first step: nothing; v(y₀); the size of the step


class Stages(eqx.Module):
    """One step from y of size h: k_i = h v(y + Σ_j a_ij k_j), the last slope v(y_s), y₁, and the estimate
    of its error."""

    k: PyTree
    slope: PyTree
    end: PyTree
    error: PyTree


class Explicit(eqx.Module):
    """An explicit method of diffrax by its tableau (a, b, b − b̂) alone. diffrax's own step is general, and
    takes seconds to compile; here all stages are turns of one loop."""

    solver: "diffrax.AbstractERK" = eqx.field(static=True)

    @property
    def tableau(self) -> Any:
        return self.solver.tableau

    @property
    def stages(self) -> int:
        return len(self.tableau.b_sol)

    @property
    def reuses(self) -> bool:
        """Whether the last slope of a step is the first one of the next."""
        return bool(self.tableau.fsal)

    def matrix(self, dtype: DType) -> Float[Array, "s s"]:
        a = np.zeros((self.stages, self.stages))
        for i, row in enumerate(self.tableau.a_lower):
            a[i + 1, : len(row)] = row
        return jnp.asarray(a, dtype)

    def __call__(self, velocity: Velocity, y: PyTree, slope: PyTree, h: Scalar, dtype: DType) -> Stages:
        """A step from y, where the velocity is `slope` if the method reuses it."""
        a, first = self.matrix(dtype), int(self.reuses)
        k = jax.tree.map(lambda s: jnp.zeros((self.stages, *s.shape), s.dtype).at[0].set(h * s), slope)

        def stage(i: Int[Array, ""], now: tuple[PyTree, PyTree, PyTree]) -> tuple[PyTree, PyTree, PyTree]:
            k = now[0]
            at = jax.tree.map(lambda y, k: y + jnp.tensordot(a[i], k, 1), y, k)
            slope = velocity(at)
            return jax.tree.map(lambda k, s: k.at[i].set(h * s), k, slope), slope, at

        k, last, end = jax.lax.fori_loop(first, self.stages, stage, (k, slope, y))
        total = lambda b: jax.tree.map(lambda k: jnp.tensordot(jnp.asarray(b, dtype), k, 1), k)
        if not self.tableau.ssal:
            end = jax.tree.map(jnp.add, y, total(self.tableau.b_sol))
        return Stages(k, last, end, total(self.tableau.b_error))


def first_guess(y: PyTree, slope: PyTree, norm: Callable[[PyTree], Array]) -> Float[Array, ""]:
    """h₀ = |y|/(100|v|), at which the velocity is looked at again (Hairer, Nørsett, Wanner, II.4)."""
    size, speed = norm(y), norm(slope)
    flat = (size < 1e-5) | (speed < 1e-5)
    return jnp.where(flat, 1e-6, 0.01 * size / jnp.where(flat, 1.0, speed))


def first_step(
    guess: Scalar, slope: PyTree, probe: PyTree, norm: Callable[[PyTree], Array], order: float
) -> Float[Array, ""]:
    """(0.01/max(|v|, |v' − v|/h₀))^{1/order}, at most 100h₀: a step whose error is near the tolerance."""
    bend = norm(jax.tree.map(jnp.subtract, probe, slope)) / guess
    most = jnp.maximum(norm(slope), bend)
    calm = most <= 1e-15
    step = jnp.where(
        calm, jnp.maximum(1e-6, 1e-3 * guess), (0.01 / jnp.where(calm, 1.0, most)) ** (1 / order)
    )
    return jnp.minimum(100 * guess, step)
