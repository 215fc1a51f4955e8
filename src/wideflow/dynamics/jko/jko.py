"""The minimising movement as a dynamics: steps of size τ, each by the scheme that suits the state."""

import math
import warnings
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..._checks import positive
from ..._tracing import traced
from ...functionals.base import AbstractFunctional
from ...functionals.entropy import confining
from ...states.grid import GridDensity
from ...states.particles import Particles
from ..base import AbstractDynamics, Info, check_functional, is_finite
from ..clock import check_steps, steps_to
from ..streams import noise_key
from .assignment import is_optimal
from .entropic import Blur, Entropic, blur_of
from .proximal import Proximal
from .quantiles import Quantiles
from .scheme import AbstractScheme, Moved
from .splitting import Splitting


class Carry(eqx.Module):
    """Step counter k, key and state: all that step k + 1 depends on; and what was noted on the way, the last
    step's residual and how many steps may not have been those of W2."""

    k: Int[Array, ""]
    key: Array
    state: Any
    residual: Float[Array, ""]
    unsure: Int[Array, ""]


class JKO(AbstractDynamics):
    """ρ_{k+1} = argmin F(ρ) + W2²(ρ, ρ_k)/(2τ), F = R/α² + (λ/2)∫|θ|²dρ − S/β, time t = kτ: the minimising
    movement (Jordan, Kinderlehrer, Otto) of the flow ∂tρ = ∇·(ρ∇Ψ_λ) + β⁻¹Δρ, of first order in τ. In the
    first two schemes F never rises, and Σ_k W2²(ρ_{k+1}, ρ_k) ≤ 2τ(F(ρ_0) − F(ρ_K)).

    The state decides the scheme:
    - `wf.Particles` on the line (D = 1) with noise: the particles are quantiles (`law.nodes(n)`, or equal
      weights), W2 is exact and the entropy that of the law behind them. Gaussians are moved exactly.
    - `wf.Particles` without noise (beta=inf): the proximal step θ⁺ = θ + τv(θ⁺). It is checked that no other
      assignment of the particles is shorter, so that the distance is W2; a warning tells if one is.
    - `wf.Particles` in D > 1 with noise: that step, then √(2τ/β)g (Lie splitting, of first order).
    - `wf.GridDensity`: entropic transport. It blurs: each step adds a diffusion ε/(2τ), of which 1/β is made
      part of F's own; the rest is bias. `JKO.blur(density)` gives ε, that diffusion and that bias.

    `tol` is what the inner solve leaves: in θ for particles, in log ρ (mean) on grids; 1e-9 in float64 and
    1e-4 in float32 by default. Where Ψ has kinks (relu on data) the minimum may lie on one, where no gradient
    vanishes: the run then stalls, and says so."""

    functional: AbstractFunctional
    step: float
    beta: float
    epsilon: float | None
    tol: float | None
    name: str = eqx.field(static=True, default="JKO", init=False)
    sources: tuple[str, ...] = eqx.field(static=True, default=("jordan1998", "peyre2015"), init=False)

    def __init__(self, functional, step, *, beta=math.inf, decay=0.0, epsilon=None, tol=None):
        self.functional = functional
        check_functional(self)
        self.step = positive("JKO(step)", step)
        self.beta = positive("JKO(beta)", beta, infinite=True)
        self.functional = confining(functional, beta=self.beta, decay=decay)
        self.epsilon = None if epsilon is None else positive("JKO(epsilon)", epsilon)
        self.tol = None if tol is None else positive("JKO(tol)", tol)

    def scheme(self, state: Any) -> AbstractScheme:
        """How this state is moved."""
        if isinstance(state, GridDensity):
            return Entropic(self.blur(state).epsilon, self.tol)
        if not isinstance(state, Particles):
            hint = " Draw particles first: .sample(key, n)." if hasattr(state, "sample") else ""
            raise ValueError(
                f"JKO moves wf.Particles or a wf.GridDensity, got a {type(state).__name__}.{hint}"
            )
        if self.epsilon is not None:
            raise ValueError(
                "JKO(epsilon) is the blur of a wf.GridDensity; particles have none. Leave it out."
            )
        if math.isinf(self.beta):
            return Proximal(self.tol)
        return Quantiles(self.tol) if state.D == 1 else Splitting(self.tol)

    def blur(self, state: GridDensity) -> Blur:
        """ε on this grid, the diffusion ε/(2τ) that it brings, and its excess over 1/β, which is bias."""
        if not isinstance(state, GridDensity):
            raise ValueError(f"Only a wf.GridDensity is blurred, not a {type(state).__name__}.")
        return blur_of(state, self.step, self.beta, self.epsilon)

    def snap(self, ts):
        return steps_to(ts, self.step) * self.step

    def check(self, ts):
        check_steps(ts, self.step)

    def init(self, state, key):
        self.scheme(state).check(state, self.step, self.beta)
        if isinstance(state, GridDensity) and self.beta < math.inf and self.blur(state).bias > 0:
            blur = self.blur(state)
            warnings.warn(
                f"JKO blurs by epsilon = {blur.epsilon:.3g} a step, a diffusion of {blur.diffusion:.3g}, "
                f"more than 1/beta = {1 / self.beta:.3g}: the result is that of a larger temperature. Use "
                f"cells smaller than {math.sqrt(2 * self.step / self.beta):.3g}, or a larger step.",
                stacklevel=4,
            )
        zero = jnp.zeros((), jnp.int32)
        return Carry(zero, key, state, jnp.zeros((), state.dtype), zero)

    def advance(self, carry, t0, t1, budget=2**30):
        asked = int(steps_to(t1, self.step))
        scheme, G = traced(self.scheme(carry.state)), traced(self.functional)
        step, beta = jnp.asarray(self.step), jnp.asarray(self.beta)
        finite, solved, left = bool(is_finite(carry.state)), True, budget
        while finite and solved and left > 0 and int(carry.k) < asked:
            moved = _move(scheme, G, carry.state, carry.key, carry.k, step, beta)
            finite, solved, left = bool(is_finite(moved.state)), bool(moved.solved), left - 1
            unsure = carry.unsure
            if finite and solved and isinstance(scheme, Proximal):
                unsure = self._checked(unsure, G, carry.state, moved, step)
            carry = Carry(carry.k + 1, carry.key, moved.state, moved.residual, unsure)
        return carry, Info(int(carry.k) >= asked, finite, not solved, int(carry.k), 0, self._noted(carry))

    def _noted(self, carry: Carry) -> dict[str, float]:
        noted = {"residual": float(carry.residual), "unsure_steps": int(carry.unsure)}
        blurred = isinstance(carry.state, GridDensity)
        return noted | ({"blur_bias": float(self.blur(carry.state).bias)} if blurred else {})

    def _checked(self, unsure: Array, G: Any, before: Particles, moved: Moved, step: Array) -> Array:  # noqa: N803
        """The count of steps that may not be those of W2, and a warning at the first."""
        if is_optimal(G, before, moved.state, step, moved.residual):
            return unsure
        if int(unsure) == 0:
            warnings.warn(
                f"A JKO step of {self.step:.3g} moved particles so far that another assignment of them is or "
                "may be shorter: the step lowers F, but its distance is not W2. Use a smaller step.",
                stacklevel=5,
            )
        return unsure + 1

    def read(self, carry, t):
        return carry.state

    def time(self, carry):
        return int(carry.k) * self.step

    def advice(self, state, key):
        return (
            f"The inner solve of a JKO step of {self.step:.6g} did not reach its tolerance: the potential "
            f"may have kinks (relu on data, a path norm), or the step be too large. Try a step of "
            f"{self.step / 4:.2g}, or a larger tol."
        )


@eqx.filter_jit
def _move(
    scheme: AbstractScheme,
    G: AbstractFunctional,  # noqa: N803
    state: Any,
    key: Array,
    k: Array,
    step: Array,
    beta: Array,
) -> Moved:
    return scheme.move(G, state, step, beta, noise_key(key, k))
