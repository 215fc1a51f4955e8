"""The flow with a frozen kernel on data: exact for the squared loss, by an ODE for others."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import fits
from ..functionals.risk import Risk
from ..kernels.tangent import tangent_kernel
from ..problems.losses import Squared
from ..problems.nodes import Nodes
from ..states.kernel_function import KernelFunction
from ..states.linearisation import Linearisation
from ..states.trainable import AbstractTrainable, pulled
from .base import AbstractDynamics, Info, is_finite
from .flow import GradientFlow


class OnNodes(AbstractTrainable):
    """f on the data, f = f₀ + Kc with `parts` c: a signal on the data moves c by itself."""

    parts: Array
    f0: Array
    gram: Float[Array, "k k"]

    @property
    def alpha(self) -> Array:  # type: ignore[override]
        return jnp.ones((), self.gram.dtype)

    @property
    def dtype(self) -> Any:
        return self.gram.dtype

    def __call__(self, x):
        return self.f0 + (self.gram @ self.parts.reshape(-1)).reshape(self.f0.shape)

    def pull(self, x, signal):
        return signal

    def tangent(self):
        raise ValueError("The kernel of a frozen kernel is that kernel.")

    def normal(self, key):
        raise ValueError("A flow with a frozen kernel has no noise.")

    def second_moment(self):
        """½cᵀKc, half the square of the norm of f − f₀ in the space of the kernel."""
        return 0.5 * jnp.vdot(self.parts.reshape(-1), self.gram @ self.parts.reshape(-1))


class Carry(eqx.Module):
    """Time, start, and the start's residual in the eigenvectors of √Ω K √Ω (exact), or the ODE's carry."""

    t: Float[Array, ""]
    start: Any
    eigenvalues: Array
    vectors: Array
    residual: Array
    ode: Any


class KernelFlow(AbstractDynamics):
    """u̇ = −K diag(ω) u on the data, K frozen at the start: f_t = f₀ + K c_t, ċ = ω u (u = −ℓ'(f, y)).

    For the squared loss u_t = exp(−KΩt)u₀, from one eigendecomposition and without time steps (directions
    whose eigenvalue is below the rounding of K are not learned: late times want float64); for other losses
    by an adaptive ODE method to `rtol`. It starts from a network or particles, whose own kernel is then
    frozen (the states of the run are `wf.Linearisation`), or from a `wf.KernelFunction` such as that of an
    infinite-width kernel. It needs a risk on data, wf.Data() or wf.Sample(m)."""

    functional: Risk
    rtol: float | None = eqx.field(default=None, kw_only=True)
    name: str = eqx.field(static=True, default="KernelFlow", init=False)

    def __check_init__(self):
        if not isinstance(self.functional, Risk):
            given = type(self.functional).__name__
            raise ValueError(f"KernelFlow needs a wf.Risk alone (a penalty would move K), got a {given}.")
        if self.functional.sample is None:
            raise ValueError(
                "KernelFlow needs a risk on data: wf.Risk of a problem with x=wf.Dataset(X, y), or "
                "wf.Risk(problem, expectation=wf.Sample(m))."
            )

    @property
    def sources(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("jacot2018", "lee2019")

    @property
    def _data(self) -> Nodes:
        assert self.functional.sample is not None
        return self.functional.sample

    def init(self, state, key):
        gram, f0 = self._gram(state)
        data, zero = self._data, jnp.zeros((), gram.dtype)
        c = jnp.zeros(f0.shape, gram.dtype)
        if not isinstance(self.functional.problem.loss, Squared):
            ode = self._flow.init(OnNodes(c, f0, gram), key)
            return Carry(zero, state, zero, zero, zero, ode)
        root = _each_output(jnp.sqrt(data.weights.astype(gram.dtype)), f0)
        values, vectors = np.linalg.eigh(np.asarray(root[:, None] * gram * root, np.float64))
        # an eigenvalue below the rounding of K is none: its direction of u is not learned
        rounding = len(values) * jnp.finfo(gram.dtype).eps * values[-1]
        values = jnp.asarray(np.where(values > rounding, values, 0.0), gram.dtype)
        u, vectors = (data.y.astype(gram.dtype) - f0).reshape(-1), jnp.asarray(vectors, gram.dtype)
        return Carry(zero, state, values, vectors, vectors.T @ (root * u), None)

    @property
    def _flow(self) -> GradientFlow:
        return GradientFlow(self.functional.on(self._data), rtol=self.rtol)

    def _gram(self, state: Any) -> tuple[Array, Array]:
        """K over (rows × outputs) and f₀ on the data."""
        x, outputs = self._data.x, self.functional.problem.neuron.outputs
        size = self._data.m * outputs
        hint = "Use fewer rows, or wf.Linearised(R), which holds no kernel."
        fits(f"The kernel of {size} values", 3 * 8.0 * size**2, hint)
        if isinstance(state, KernelFunction):
            K, f0 = jnp.asarray(state.kernel(x, x)), state(x)
            if K.shape != (len(x), len(x)):
                raise ValueError(f"The kernel must give shape {(len(x), len(x))} on the data, got {K.shape}.")
            K = jnp.kron(K, jnp.eye(outputs, dtype=K.dtype)) if outputs > 1 else K
        elif isinstance(state, AbstractTrainable):
            K, f0 = tangent_kernel(state, x), state(x)
            K = jnp.moveaxis(K, 1, 2).reshape(size, size) if outputs > 1 else K
        else:
            raise ValueError(
                "KernelFlow starts from a network, wf.Particles or wf.KernelFunction(kernel), got a "
                f"{type(state).__name__}."
            )
        if not np.isfinite(np.asarray(K)).all():
            raise ValueError("The kernel of the start is not finite on the data: look at x and the weights.")
        self.functional.problem.loss.check(self._data.y, outputs)
        return K, f0.astype(K.dtype)

    def advance(self, carry, t0, t1, budget=2**30):
        if carry.ode is None:
            moved = eqx.tree_at(lambda c: c.t, carry, jnp.asarray(t1, carry.t.dtype))
            return moved, Info(True, bool(is_finite(carry.residual)), False, 0, 0)
        ode, info = self._flow.advance(carry.ode, t0, t1, budget)
        return eqx.tree_at(lambda c: c.ode, carry, ode, is_leaf=lambda v: v is None), info

    def read(self, carry, t):
        if carry.ode is None:
            c = _coefficients(carry, jnp.asarray(t, carry.residual.dtype), self._data.weights)
            outputs = self.functional.problem.neuron.outputs
            c = c if outputs == 1 else c.reshape(-1, outputs)
        else:
            c = self._flow.read(carry.ode, t).parts
        return _with_coefficients(carry.start, self._data.x, c)

    def time(self, carry):
        return float(carry.t) if carry.ode is None else self._flow.time(carry.ode)

    def advice(self, state, key):
        return "The kernel or the start is not finite on the data, or the loss is too steep for it."

    def largest_stable_step(self, state: Any) -> float:
        """2/λ, λ the largest eigenvalue of KΩ: descent of the squared loss with this kernel is stable for η
        below it."""
        gram, f0 = self._gram(state)
        root = _each_output(jnp.sqrt(self._data.weights.astype(gram.dtype)), f0)
        return float(2 / jnp.linalg.eigvalsh(root[:, None] * gram * root)[-1])


def _each_output(weights: Array, f: Array) -> Array:
    return weights if f.ndim == 1 else jnp.repeat(weights, f.shape[1])


@eqx.filter_jit
def _coefficients(carry: Carry, t: Array, weights: Array) -> Array:
    """c_t = √Ω Q (1 − e^{−Λt})/Λ Qᵀ√Ω u₀; where Λ = 0 nothing is learned, and c is left at 0 there."""
    decay, learned = carry.eigenvalues * t, carry.eigenvalues > 0
    small = decay < jnp.finfo(decay.dtype).eps
    factor = jnp.where(small, t, -jnp.expm1(-decay) / jnp.where(learned, carry.eigenvalues, 1.0))
    factor = jnp.where(learned, factor, 0.0)
    root = jnp.sqrt(weights.astype(decay.dtype))
    root = jnp.repeat(root, decay.size // root.size)
    return root * (carry.vectors @ (factor * carry.residual))


def _with_coefficients(start: Any, x: Array, c: Array) -> Any:
    if isinstance(start, KernelFunction):
        before = start if start.x is not None else start.start
        return KernelFunction(start.kernel, start.outputs, before, x, c)
    at = start.at if isinstance(start, Linearisation) else start
    begun = start if isinstance(start, Linearisation) else Linearisation(start)
    return begun.moved(pulled(at, x, c))
