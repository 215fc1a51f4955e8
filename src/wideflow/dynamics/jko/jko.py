"""The minimising movement as a dynamics: steps of size τ, each by the scheme that suits the state."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._checks import is_traced, positive
from ..._data import Data
from ..._tracing import traced
from ...functionals.base import AbstractFunctional
from ...functionals.free_energy import confining, physics_of
from ...states.grid import GridDensity, is_grid
from ...states.particles import is_cloud
from ...states.state import AbstractState
from ..base import AbstractCarry, AbstractDynamics, Info, is_finite
from ..clock import check_steps, step_number, steps_to
from ..streams import noise_key
from .entropic import Blur, Entropic, blur_of
from .proximal import Proximal
from .quantiles import Quantiles
from .scheme import AbstractScheme
from .splitting import Splitting


class JKOCarry(AbstractCarry):
    """Step counter k, key and state: all that step k + 1 depends on; and what was noted on the way: the last
    step's residual and how many steps may not have been steps of W2."""

    k: Int[Array, ""]
    key: Array
    state: AbstractState
    residual: Float[Array, ""]
    unsure: Int[Array, ""]


class JKO(AbstractDynamics):
    """ρ_{k+1} = argmin F(ρ) + W2²(ρ, ρ_k)/(2τ), F = R/α² + (λ/2)∫|θ|²dρ − S/β, time t = kτ: the minimising
    movement (Jordan, Kinderlehrer, Otto) of the flow ∂tρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ, of first order in τ. In the
    first two schemes F never rises, and Σ_k W2²(ρ_{k+1}, ρ_k) ≤ 2τ(F(ρ_0) − F(ρ_K)).

    `step` is τ; λ and β are those of the functional, a `wf.FreeEnergy`, or given here.

    The state decides the scheme:
    - `wf.Particles` on the line (D = 1) with noise: the particles are quantiles (`law.nodes(n)`, or equal
      weights), W2 is exact and the entropy that of the law behind them. Gaussians are moved exactly.
    - `wf.Particles` without noise (beta=inf): the proximal step θ⁺ = θ + τv(θ⁺). It is checked that no other
      assignment of the particles is shorter, so that the distance is W2, with a warning if one is.
    - `wf.Particles` in D > 1 with noise: that step, then √(2τ/β)g (Lie splitting, of first order).
    - `wf.GridDensity`: entropic transport. It blurs: each step adds a diffusion ε/(2τ), of which up to
      1/β counts as the noise of F; the rest is bias. `epsilon` sets ε; `JKO.blur(density)` returns all three.

    `tol` is the residual that the inner solve may leave: in θ for particles, in log ρ (mean) on grids; 1e-9
    in float64 and 1e-4 in float32 by default. Where Ψ has kinks (relu on data) the minimum may lie on one,
    where no gradient vanishes: the run then stalls and reports it.

    >>> run = wf.evolve(wf.JKO(F, step=0.1), wf.init(line, theta=1.0).nodes(8), ts)
    >>> run.status
    'ok'"""

    functional: AbstractFunctional
    step: float
    beta: float
    noisy: bool = eqx.field(static=True)
    epsilon: float | None
    tol: float | None
    name: str = eqx.field(static=True, default="JKO", init=False)
    sources: tuple[str, ...] = eqx.field(static=True, default=("jordan1998", "peyre2015"), init=False)

    def __init__(
        self,
        functional: AbstractFunctional,
        step: float,
        *,
        beta: float | None = None,
        decay: float = 0.0,
        epsilon: float | None = None,
        tol: float | None = None,
    ):
        plain, beta = physics_of("JKO", functional, beta, decay)
        self.beta = math.inf if beta is None else beta
        self.noisy = is_traced(beta) or self.beta < math.inf
        self.step = positive("JKO(step)", step)
        self.functional = confining(plain, beta=self.beta)
        self.epsilon = None if epsilon is None else positive("JKO(epsilon)", epsilon)
        self.tol = None if tol is None else positive("JKO(tol)", tol)

    def scheme(self, state: AbstractState) -> AbstractScheme:
        """How this state is moved."""
        if is_grid(state):
            return Entropic(blur_of(state, self.step, self.beta, self.epsilon).epsilon, self.tol)
        if not is_cloud(state):
            hint = " Draw particles first: .sample(key, n)." if hasattr(state, "sample") else ""
            raise ValueError(
                f"JKO moves wf.Particles or a wf.GridDensity, got a {type(state).__name__}.{hint}"
            )
        if self.epsilon is not None:
            raise ValueError(
                "JKO(epsilon) is the blur of a wf.GridDensity; particles have none. Leave it out."
            )
        if not self.noisy:
            return Proximal(self.tol)
        return Quantiles(self.tol) if state.D == 1 else Splitting(self.tol)

    def blur(self, state: GridDensity) -> Blur:
        """ε on this grid, the diffusion ε/(2τ) that it brings, and its excess over 1/β, which is bias."""
        if not is_grid(state):
            raise ValueError(f"Only a wf.GridDensity is blurred, not a {type(state).__name__}.")
        return Blur(*(float(v) for v in blur_of(state, self.step, self.beta, self.epsilon)))

    def snap(self, ts):
        return steps_to(ts, self.step) * self.step

    def check_times(self, ts):
        check_steps(ts, self.step)

    def check_state(self, state):
        systems = getattr(state, "replicas", None)
        for one in [state] if systems is None else [state.replica(r) for r in range(systems)]:
            self.scheme(one).check(one, self.step, self.beta)

    def init(self, state, key, ts=None):
        zero = jnp.zeros((), jnp.int32)
        return JKOCarry(zero, key, state, jnp.zeros((), state.dtype), zero)

    def target(self, t):
        return step_number(t, self.step)

    def advance_to(self, carry, target, budget):
        scheme = traced(self.scheme(carry.state))
        carry, finite, solved = _advance(
            scheme,
            traced(self.functional),
            carry,
            jnp.asarray(target, jnp.int32),
            jnp.asarray(budget, jnp.int32),
            jnp.asarray(self.step),
            jnp.asarray(self.beta),
        )
        noted = {"residual": carry.residual, "unsure_steps": carry.unsure} | self._blurred(carry.state)
        return carry, Info(carry.k >= target, finite, ~solved, carry.k, jnp.zeros((), jnp.int32), noted)

    def _blurred(self, state: AbstractState) -> dict[str, Array]:
        if not is_grid(state):
            return {}
        blur = blur_of(state, self.step, self.beta, self.epsilon)
        return {"blur": jnp.asarray(blur.epsilon), "blur_bias": jnp.asarray(blur.bias)}

    def cautions(self, noted):
        messages = {}
        if "blur" in noted and self.noisy and float(np.max(noted["blur_bias"])) > 0:
            epsilon = float(np.max(noted["blur"]))
            diffusion = epsilon / (2 * self.step)
            messages["blur"] = (
                f"JKO blurs by epsilon = {epsilon:.3g} a step, a diffusion of {diffusion:.3g}, "
                f"more than 1/beta = {1 / self.beta:.3g}: the result is that of a larger temperature. Use "
                f"cells smaller than {math.sqrt(2 * self.step / self.beta):.3g}, or a larger step."
            )
        if int(np.max(noted["unsure_steps"])):
            messages["unsure"] = (
                f"A JKO step of {self.step:.3g} moved particles so far that another assignment of them is or "
                "may be shorter: the step lowers F, but its distance is not W2. Use a smaller step."
            )
        return messages

    def read(self, carry, t):
        return carry.state

    def time(self, carry):
        return carry.k * self.step

    def advice(self, state, key):
        return (
            f"The inner solve of a JKO step of {self.step:.6g} did not reach its tolerance: the potential "
            f"may have kinks (relu on data, a path norm), or the step be too large. Try a step of "
            f"{self.step / 4:.2g}, or a larger tol."
        )


class _Moving(NamedTuple):
    """A carry on its way, as the numbers in it that change, and the steps left."""

    k: Array
    own: Data
    residual: Array
    unsure: Array
    finite: Array
    solved: Array
    left: Array


@eqx.filter_jit
def _advance(
    scheme: AbstractScheme,
    G: AbstractFunctional,  # noqa: N803
    carry: JKOCarry,
    stop: Array,
    budget: Array,
    step: Array,
    beta: Array,
) -> tuple[JKOCarry, Array, Array]:
    """Minimising movements until step `stop`, the end of the budget, or one that could not be solved."""

    def unfinished(now: _Moving) -> Array:
        return now.finite & now.solved & (now.left > 0) & (now.k < stop)

    def move(now: _Moving) -> _Moving:
        state = carry.state._with(**now.own)
        moved = scheme.move(G, state, step, beta, noise_key(carry.key, now.k))
        finite = is_finite(moved.state)
        sure = scheme.is_w2(G, state, moved, step) | ~finite | ~moved.solved
        own, left = moved.state.own(), now.left - 1
        return _Moving(now.k + 1, own, moved.residual, now.unsure + ~sure, finite, moved.solved, left)

    yes, own = jnp.ones((), bool), carry.state.own()
    first = _Moving(carry.k, own, carry.residual, carry.unsure, is_finite(carry.state), yes, budget)
    last = jax.lax.while_loop(unfinished, move, first)
    state = carry.state._with(**last.own)
    return JKOCarry(last.k, carry.key, state, last.residual, last.unsure), last.finite, last.solved
