"""Gradient flow, by an adaptive Runge–Kutta method from diffrax."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._checks import count, positive
from .._tracing import traced
from ..functionals.base import AbstractFunctional
from ..states.trainable import AbstractTrainable
from .base import AbstractDynamics, Info, check_functional, is_finite, not_trainable

_LEAST = 32  # roundings of θ: an error estimate is itself rounded


def _tolerance(name: str) -> Callable[[Any], float | None]:
    return lambda v: None if v is None else positive(f"GradientFlow({name})", v)


class Carry(eqx.Module):
    """The last accepted step, from t_before to (t, state), with its dense output, and all that the
    next step depends on."""

    t_before: Float[Array, ""]
    t: Float[Array, ""]
    state: AbstractTrainable
    dense: Any
    t_next: Float[Array, ""]
    solver: Any
    controller: Any
    jumped: Bool[Array, ""]
    taken: Int[Array, ""]
    rejected: Int[Array, ""]


class GradientFlow(AbstractDynamics):
    """θ̇_j = −(1/α)∇Ψ(θ_j; ρ_t), the Wasserstein gradient flow of the functional's energy. Where θ has a
    domain (radii of a reduced problem are not negative), a particle that reaches its end is held there.

    Each step keeps its estimated error below (atol + rtol·|θ|)/max(1, α), root mean square over all
    coordinates: θ moves by 1/α for F to move by order 1, so that in float32 digits run out at α ≳ 10³. By
    default rtol is 1e-6 in float64 and 1e-4 in float32, whose rounding would otherwise rule the steps, and
    atol is rtol/100. A velocity that is not smooth (relu on data, a path norm) takes many small steps: ask
    for less there, or take `wf.GradientDescent`.

    The steps do not depend on the saved times: a state between two steps comes from the method's own
    dense output, whose error is of the order of the controlled one. `solver` is a diffrax solver with
    an error estimate, Tsit5 by default; Dopri8 is the better choice below tolerances of 1e-9."""

    functional: AbstractFunctional
    rtol: float | None = eqx.field(default=None, converter=_tolerance("rtol"), kw_only=True)
    atol: float | None = eqx.field(default=None, converter=_tolerance("atol"), kw_only=True)
    solver: Any = eqx.field(default=None, kw_only=True)
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

    def tolerances(self, state: AbstractTrainable) -> tuple[Any, Any]:
        """(rtol, atol) for this state's precision."""
        digits = 1e-6 if jnp.finfo(state.dtype).eps < 1e-10 else 1e-4
        rtol = digits if self.rtol is None else self.rtol
        atol = rtol / 100 if self.atol is None else self.atol
        # F = αf moves by order 1 while θ moves by 1/α, so that an error of θ counts α times; below `least`
        # the rounding of θ would reject every step
        share, least = 1 / jnp.maximum(1.0, jnp.max(state.alpha)), _LEAST * jnp.finfo(state.dtype).eps
        return jnp.maximum(rtol * share, jnp.minimum(rtol, least)), atol * share

    def init(self, state, key):
        if not isinstance(state, AbstractTrainable):
            raise not_trainable(self, state)
        eps, rtol = float(jnp.finfo(state.dtype).eps), self.tolerances(state)[0]
        if rtol < 4 * eps:
            raise ValueError(
                f"GradientFlow(rtol={rtol:g}) is below the rounding of {state.dtype}; allowed "
                f"is {4 * eps:.1e} or more. Use jax_enable_x64 for more digits."
            )
        return _init(traced(self), state)

    def advance(self, carry, t0, t1, budget=2**30):
        dtype = carry.t.dtype
        left = max(0, self.max_steps - int(carry.taken) - int(carry.rejected))
        most = jnp.asarray(min(budget, left), jnp.int32)
        carry, finite, collapsed = _advance(traced(self), carry, jnp.asarray(t1, dtype), most)
        reached = bool(carry.t >= jnp.asarray(t1, dtype))
        spent = int(carry.taken) + int(carry.rejected) >= self.max_steps
        stalled = not reached and (bool(collapsed) or spent)
        return carry, Info(reached, bool(finite), stalled, int(carry.taken), int(carry.rejected))

    def read(self, carry, t):
        t = jnp.asarray(t, carry.t.dtype)
        return carry.state if bool(t == carry.t) else _between(traced(self), carry, t)

    def time(self, carry):
        return float(carry.t)

    def advice(self, state, key):
        return (
            f"The flow needs ever smaller steps (rtol = {self.tolerances(state)[0]:g}, at most "
            f"{self.max_steps} steps): the velocity may have kinks (relu on data, a path norm), be too "
            "stiff, or grow without bound in finite time. Try a larger rtol such as 1e-3, "
            "wf.GradientDescent, a decay (R + 0.1 * wf.SecondMoment()), or a larger max_steps."
        )


def _method(flow: GradientFlow, state: AbstractTrainable) -> tuple[Any, Any, Any]:
    """diffrax's parts: the vector field, the method, the step-size controller."""
    import diffrax

    def velocity(t, parts, _):
        drift = flow.functional.drift(state.with_parts(state.projected(parts)))
        return state.confined(parts, drift)

    solver = diffrax.Tsit5() if flow.solver is None else flow.solver
    rtol, atol = flow.tolerances(state)
    return diffrax.ODETerm(velocity), solver, diffrax.PIDController(rtol=rtol, atol=atol)


@eqx.filter_jit
def _init(flow: GradientFlow, state: AbstractTrainable) -> Carry:
    term, solver, controller = _method(flow, state)
    zero = jnp.zeros((), state.dtype)
    order = solver.error_order(term)
    t_next, control = controller.init(term, zero, zero + 1, state.parts, None, None, solver.func, order)
    solver_state = solver.init(term, zero, t_next, state.parts, None)
    jumped, k = jnp.zeros((), bool), jnp.zeros((), jnp.int32)
    step = lambda: solver.step(term, zero, t_next, state.parts, None, solver_state, jumped)
    dense = jax.tree.map(lambda v: jnp.zeros(v.shape, v.dtype), jax.eval_shape(step)[2])
    control = jax.tree.map(jnp.asarray, control)
    return Carry(zero, zero, state, dense, t_next, solver_state, control, jumped, k, k)


@eqx.filter_jit
def _advance(flow: GradientFlow, carry: Carry, t1: Array, most: Array) -> tuple[Carry, Array, Array]:
    """Accepted and rejected steps until t1 is passed, or `most` of them are done."""
    term, solver, controller = _method(flow, carry.state)
    order, last = solver.error_order(term), carry.taken + carry.rejected + most
    eps = jnp.finfo(carry.t.dtype).eps

    def collapsed(c: Carry) -> Array:  # a NaN step size counts: then no comparison holds
        return ~(c.t_next - c.t > 4 * eps * jnp.abs(c.t))

    def goes_on(c: Carry) -> Array:
        return (c.t < t1) & (c.taken + c.rejected < last) & ~collapsed(c)

    def step(c: Carry) -> Carry:
        parts = c.state.parts
        new, error, dense, solver_state, _ = solver.step(term, c.t, c.t_next, parts, None, c.solver, c.jumped)
        keep, t, t_next, jumped, control, _ = controller.adapt_step_size(
            c.t, c.t_next, parts, new, None, error, order, c.controller
        )
        choose = lambda a, b: jax.tree.map(lambda a, b: jnp.where(keep, a, b), a, b)
        return Carry(
            choose(c.t, c.t_before),
            t,
            c.state.with_parts(choose(c.state.projected(new), parts)),
            choose(dense, c.dense),
            t_next,
            choose(solver_state, c.solver),
            control,
            jnp.asarray(jumped),
            c.taken + keep,
            c.rejected + ~keep,
        )

    carry = jax.lax.while_loop(goes_on, step, carry)
    return carry, is_finite(carry.state), collapsed(carry)


@eqx.filter_jit
def _between(flow: GradientFlow, carry: Carry, t: Array) -> AbstractTrainable:
    """The state at t in [t_before, t], from the dense output of the last step."""
    _, solver, _ = _method(flow, carry.state)
    step = solver.interpolation_cls(t0=carry.t_before, t1=carry.t, **carry.dense)
    return carry.state.with_parts(carry.state.projected(step.evaluate(t)))
