"""Gradient flow, by an adaptive Runge–Kutta method with the tableaus and the step control of diffrax."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from .._checks import count, positive
from .._shown import shown
from .._tracing import jit_once, traced
from .._typing import Scalar
from ..functionals.base import AbstractFunctional
from ..states.trainable import AbstractTrainable, is_trainable
from .adaptive import AbstractAdaptive, AdaptiveCarry, Attempt
from .base import check_functional, is_finite, not_trainable
from .runge_kutta import PROBE, READY, SLOPE, Explicit, first_guess, first_step

if TYPE_CHECKING:
    import diffrax

_LEAST = 32  # roundings of θ: an error estimate is itself rounded


def _tolerance(name: str) -> Callable[[object], float | None]:
    return lambda v: None if v is None else positive(f"GradientFlow({name})", v)


class FlowMemory(eqx.Module):
    """The dense output of the last accepted step, which began at t_before, and what the next depends on: the
    velocity here, and in how many evaluations the size of the first step is known (`SLOPE`, `PROBE`)."""

    t_before: Float[Array, ""]
    dense: PyTree
    t_next: Float[Array, ""]
    slope: PyTree
    controller: PyTree
    unknown: Int[Array, ""]


class GradientFlow(AbstractAdaptive):
    """θ̇_j = −(1/α)∇Ψ(θ_j; ρ_t), the Wasserstein gradient flow of the functional's energy. Where θ has a
    domain (radii of a reduced problem are not negative), a particle that reaches its end is held there.

    Each step keeps its estimated error below (atol + rtol·|θ|)/max(1, α), root mean square over all
    coordinates: θ moves by 1/α for F to move by order 1, so that in float32 digits run out at α ≳ 10³. By
    default rtol is 1e-6 in float64 and 1e-4 in float32, whose rounding would otherwise dictate the steps, and
    atol is rtol/100. A velocity that is not smooth (relu on data, a path norm) takes many small steps: ask
    for less there, or take `wf.GradientDescent`.

    The steps do not depend on the saved times: a state between two steps comes from the method's own
    dense output, whose error is of the order of the controlled one. `solver` is an explicit Runge–Kutta
    method of diffrax with an error estimate, Tsit5 by default; Dopri8 is the better choice below tolerances
    of 1e-9. A run that needs more than `max_steps` steps stalls.

    >>> run = wf.evolve(wf.GradientFlow(R, rtol=1e-8), net, ts)
    >>> run["risk"].round(3)
    array([0.235, 0.211, 0.191])"""

    functional: AbstractFunctional
    rtol: float | None = eqx.field(default=None, converter=_tolerance("rtol"), kw_only=True)
    atol: float | None = eqx.field(default=None, converter=_tolerance("atol"), kw_only=True)
    solver: "diffrax.AbstractERK | None" = eqx.field(default=None, kw_only=True)
    max_steps: int = eqx.field(
        static=True, default=20_000, converter=lambda v: count("max_steps", v), kw_only=True
    )
    name: str = eqx.field(static=True, default="GradientFlow", init=False)

    def __check_init__(self):
        check_functional(self)
        if self.solver is not None and not _is_explicit(self.solver):
            raise ValueError(
                "GradientFlow(solver) must be an explicit Runge–Kutta method of diffrax with an error "
                f"estimate, such as diffrax.Dopri8(), got {shown(self.solver)}."
            )

    @property
    def sources(self) -> tuple[str, ...]:  # type: ignore[override]
        method = type(self.solver).__name__ if self.solver is not None else "Tsit5"
        papers = {"Tsit5": ("tsitouras2011",), "Dopri5": ("dormand1980",), "Dopri8": ("dormand1980",)}
        return ("chizat2018", "kidger2021", *papers.get(method, ()))

    def tolerances(self, state: AbstractTrainable) -> tuple[Scalar, Scalar]:
        """(rtol, atol) for this state's precision."""
        digits = 1e-6 if jnp.finfo(state.dtype).eps < 1e-10 else 1e-4
        rtol = digits if self.rtol is None else self.rtol
        atol = rtol / 100 if self.atol is None else self.atol
        # F = αf moves by order 1 while θ moves by 1/α, so that an error of θ counts α times; below `least`
        # the rounding of θ would reject every step
        share, least = 1 / jnp.maximum(1.0, jnp.max(state.alpha)), _LEAST * jnp.finfo(state.dtype).eps
        return jnp.maximum(rtol * share, jnp.minimum(rtol, least)), atol * share

    def check_state(self, state):
        if not is_trainable(state):
            raise not_trainable(self, state)
        eps, rtol = float(jnp.finfo(state.dtype).eps), self.tolerances(state)[0]
        if rtol < 4 * eps:
            raise ValueError(
                f"GradientFlow(rtol={rtol:g}) is below the rounding of {state.dtype}; allowed "
                f"is {4 * eps:.1e} or more. Use jax_enable_x64 for more digits."
            )

    def begin(self, state):
        method, controller, order = self._method(state)
        zero, k = jnp.zeros((), state.dtype), jnp.zeros((), jnp.int32)
        control = controller.init(None, zero, zero + 1, state.parts, zero + 1, None, None, order)[1]
        still = jax.tree.map(jnp.zeros_like, state.parts)
        memory = FlowMemory(
            zero,
            {
                "y0": state.parts,
                "y1": state.parts,
                "k": jax.tree.map(lambda v: jnp.zeros((method.stages, *v.shape), v.dtype), still),
            },
            zero + 1,
            still,
            jax.tree.map(jnp.asarray, control),
            k + SLOPE,
        )
        return Attempt(zero, state.parts, memory, k, k)

    def step_size(self, now):
        return now.memory.t_next - now.t

    def passed(self, now, t1):
        return now.t >= t1

    def with_value(self, state, value):
        return state.with_parts(value)

    def is_finite(self, carry):
        return is_finite(carry.state)

    def attempted(self, state, now, t1, clip):
        """A step; before the first one, its size is found from v(y) and, a little ahead, v(y + h₀v). These
        are two steps of size 0, of as many evaluations as any, so that the program contains the velocity
        once; they count neither as taken nor as rejected."""
        method, controller, order = self._method(state)
        y, memory = now.value, now.memory
        ready, probing = memory.unknown == READY, memory.unknown == PROBE
        ahead = jnp.where(probing, memory.t_next - now.t, 0.0)
        at = jax.tree.map(lambda y, v: y + ahead * v, y, memory.slope)
        size = jnp.where(ready, memory.t_next - now.t, 0.0)
        step = method(self._velocity(state), at, memory.slope, size, state.dtype)

        t_end = jnp.where(ready, memory.t_next, now.t + 1)  # a step of size 0 has no control: any later time
        keep, t, t_next, _, control, _ = controller.adapt_step_size(
            now.t, t_end, y, step.end, None, step.error, order, memory.controller
        )
        keep = keep & ready
        choose = lambda on, a, b: jax.tree.map(lambda a, b: jnp.where(on, a, b), a, b)
        scale = jax.tree.map(lambda y: controller.atol + controller.rtol * jnp.abs(y), y)
        norm = lambda v: controller.norm(jax.tree.map(jnp.divide, v, scale))
        guess = jnp.where(
            probing,
            first_step(ahead, memory.slope, step.slope, norm, order),
            first_guess(y, step.slope, norm),
        )
        memory = FlowMemory(
            choose(keep, now.t, memory.t_before),
            choose(keep, {"y0": y, "y1": step.end, "k": step.k}, memory.dense),
            jnp.where(ready, t_next, now.t + guess.astype(now.t.dtype)),
            choose(keep | (memory.unknown == SLOPE), step.slope, memory.slope),
            choose(ready, control, memory.controller),
            jnp.maximum(memory.unknown - 1, READY),
        )
        value = choose(keep, state.projected(step.end), y)
        return Attempt(
            jnp.where(ready, t, now.t), value, memory, now.taken + keep, now.rejected + (ready & ~keep)
        )

    def _velocity(self, state: AbstractTrainable) -> Callable[[PyTree], PyTree]:
        def velocity(parts: PyTree) -> PyTree:
            drift = self.functional.drift(state.with_parts(state.projected(parts)))
            return state.confined(parts, drift)

        return velocity

    def _method(self, state: AbstractTrainable) -> tuple:
        """The method, diffrax's step-size controller, and the order of the error estimate."""
        import diffrax

        solver = diffrax.Tsit5() if self.solver is None else self.solver
        rtol, atol = self.tolerances(state)
        return Explicit(solver), diffrax.PIDController(rtol=rtol, atol=atol), solver.order(None)

    def read(self, carry, t):
        return _between(traced(self), carry, self.target(t))

    def advice(self, state, key):
        return (
            f"The flow needs ever smaller steps (rtol = {self.tolerances(state)[0]:g}, at most "
            f"{self.max_steps} steps): the velocity may have kinks (relu on data, a path norm), be too "
            "stiff, or grow without bound in finite time. Try a larger rtol such as 1e-3, "
            "wf.GradientDescent, a decay (R + 0.1 * wf.SecondMoment()), or a larger max_steps."
        )


@jit_once
def _between(flow: GradientFlow, carry: AdaptiveCarry, t: Array) -> AbstractTrainable:
    """The state at t in [t_before, t_after], from the dense output of the last step."""
    method, _, _ = flow._method(carry.state)
    memory, t = carry.attempt.memory, t.astype(carry.t.dtype)
    step = method.solver.interpolation_cls(t0=memory.t_before, t1=carry.t, **memory.dense)
    inside = carry.state.projected(step.evaluate(t))
    at_end = jax.tree.map(lambda end, at: jnp.where(t == carry.t, end, at), carry.state.parts, inside)
    return carry.state.with_parts(at_end)


def _is_explicit(solver: object) -> bool:
    import diffrax

    return isinstance(solver, diffrax.AbstractERK) and isinstance(solver, diffrax.AbstractAdaptiveSolver)
