"""Gradient flow, by an adaptive Runge–Kutta method from diffrax."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from .._checks import count, positive
from .._tracing import traced
from .._typing import Scalar
from ..functionals.base import AbstractFunctional
from ..states.trainable import AbstractTrainable, is_trainable
from .adaptive import AbstractAdaptive, AdaptiveCarry, Attempt
from .base import check_functional, is_finite, not_trainable

if TYPE_CHECKING:
    import diffrax

_LEAST = 32  # roundings of θ: an error estimate is itself rounded


def _tolerance(name: str) -> Callable[[object], float | None]:
    return lambda v: None if v is None else positive(f"GradientFlow({name})", v)


class FlowMemory(eqx.Module):
    """The dense output of the last accepted step, which began at t_before, and what the next depends on."""

    t_before: Float[Array, ""]
    dense: PyTree
    t_next: Float[Array, ""]
    solver: PyTree
    controller: PyTree
    jumped: Bool[Array, ""]


class GradientFlow(AbstractAdaptive):
    """θ̇_j = −(1/α)∇Ψ(θ_j; ρ_t), the Wasserstein gradient flow of the functional's energy. Where θ has a
    domain (radii of a reduced problem are not negative), a particle that reaches its end is held there.

    Each step keeps its estimated error below (atol + rtol·|θ|)/max(1, α), root mean square over all
    coordinates: θ moves by 1/α for F to move by order 1, so that in float32 digits run out at α ≳ 10³. By
    default rtol is 1e-6 in float64 and 1e-4 in float32, whose rounding would otherwise dictate the steps, and
    atol is rtol/100. A velocity that is not smooth (relu on data, a path norm) takes many small steps: ask
    for less there, or take `wf.GradientDescent`.

    The steps do not depend on the saved times: a state between two steps comes from the method's own
    dense output, whose error is of the order of the controlled one. `solver` is a diffrax solver with
    an error estimate, Tsit5 by default; Dopri8 is the better choice below tolerances of 1e-9. A run that
    needs more than `max_steps` steps stalls.

    >>> run = wf.evolve(wf.GradientFlow(R, rtol=1e-8), net, ts)
    >>> run["risk"].round(3)
    array([0.235, 0.211, 0.191])"""

    functional: AbstractFunctional
    rtol: float | None = eqx.field(default=None, converter=_tolerance("rtol"), kw_only=True)
    atol: float | None = eqx.field(default=None, converter=_tolerance("atol"), kw_only=True)
    solver: "diffrax.AbstractSolver | None" = eqx.field(default=None, kw_only=True)
    max_steps: int = eqx.field(
        static=True, default=20_000, converter=lambda v: count("max_steps", v), kw_only=True
    )
    name: str = eqx.field(static=True, default="GradientFlow", init=False)

    def __check_init__(self):
        check_functional(self)
        if self.solver is not None and not hasattr(self.solver, "error_order"):
            raise ValueError(
                "GradientFlow(solver) must be a diffrax solver with an error estimate, such as "
                f"diffrax.Dopri8(), got {self.solver!r}."
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
        term, solver, controller = self._method(state)
        zero = jnp.zeros((), state.dtype)
        order = solver.error_order(term)
        t_next, control = controller.init(term, zero, zero + 1, state.parts, None, None, solver.func, order)
        solver_state = solver.init(term, zero, t_next, state.parts, None)
        jumped, k = jnp.zeros((), bool), jnp.zeros((), jnp.int32)
        step = lambda: solver.step(term, zero, t_next, state.parts, None, solver_state, jumped)
        dense = jax.tree.map(lambda v: jnp.zeros(v.shape, v.dtype), jax.eval_shape(step)[2])
        control = jax.tree.map(jnp.asarray, control)
        return Attempt(
            zero, state.parts, FlowMemory(zero, dense, t_next, solver_state, control, jumped), k, k
        )

    def step_size(self, now):
        return now.memory.t_next - now.t

    def passed(self, now, t1):
        return now.t >= t1

    def with_value(self, state, value):
        return state.with_parts(value)

    def is_finite(self, carry):
        return is_finite(carry.state)

    def attempted(self, state, now, t1, clip):
        term, solver, controller = self._method(state)
        parts, memory, order = now.value, now.memory, solver.error_order(term)
        new, error, dense, solver_state, _ = solver.step(
            term, now.t, memory.t_next, parts, None, memory.solver, memory.jumped
        )
        keep, t, t_next, jumped, control, _ = controller.adapt_step_size(
            now.t, memory.t_next, parts, new, None, error, order, memory.controller
        )
        choose = lambda a, b: jax.tree.map(lambda a, b: jnp.where(keep, a, b), a, b)
        memory = FlowMemory(
            choose(now.t, memory.t_before),
            choose(dense, memory.dense),
            t_next,
            choose(solver_state, memory.solver),
            control,
            jnp.asarray(jumped),
        )
        value = choose(state.projected(new), parts)
        return Attempt(t, value, memory, now.taken + keep, now.rejected + ~keep)

    def _method(self, state: AbstractTrainable) -> tuple:
        """diffrax's parts: the vector field, the method, the step-size controller."""
        import diffrax

        def velocity(t, parts, _):
            drift = self.functional.drift(state.with_parts(state.projected(parts)))
            return state.confined(parts, drift)

        solver = diffrax.Tsit5() if self.solver is None else self.solver
        rtol, atol = self.tolerances(state)
        return diffrax.ODETerm(velocity), solver, diffrax.PIDController(rtol=rtol, atol=atol)

    def read(self, carry, t):
        return _between(traced(self), carry, self.target(t))

    def advice(self, state, key):
        return (
            f"The flow needs ever smaller steps (rtol = {self.tolerances(state)[0]:g}, at most "
            f"{self.max_steps} steps): the velocity may have kinks (relu on data, a path norm), be too "
            "stiff, or grow without bound in finite time. Try a larger rtol such as 1e-3, "
            "wf.GradientDescent, a decay (R + 0.1 * wf.SecondMoment()), or a larger max_steps."
        )


@eqx.filter_jit
def _between(flow: GradientFlow, carry: AdaptiveCarry, t: Array) -> AbstractTrainable:
    """The state at t in [t_before, t_after], from the dense output of the last step."""
    _, solver, _ = flow._method(carry.state)
    memory, t = carry.attempt.memory, t.astype(carry.t.dtype)
    step = solver.interpolation_cls(t0=memory.t_before, t1=carry.t, **memory.dense)
    inside = carry.state.projected(step.evaluate(t))
    at_end = jax.tree.map(lambda end, at: jnp.where(t == carry.t, end, at), carry.state.parts, inside)
    return carry.state.with_parts(at_end)
