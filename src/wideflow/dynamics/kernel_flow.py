"""The flow with a frozen kernel on data: exact for the squared loss, by an ODE for others."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from .._checks import fits
from .._typing import DType
from ..functionals.risk import Risk
from ..kernels.tangent import tangent_kernel
from ..problems.nodes import Nodes
from ..states.kernel_function import KernelFunction, is_kernel_function
from ..states.linearisation import linearised
from ..states.state import AbstractState
from ..states.trainable import AbstractTrainable, chunked_vjp, is_trainable
from .base import AbstractCarry, AbstractDynamics, Info, is_finite
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
    def dtype(self) -> DType:  # type: ignore[override]
        return self.gram.dtype

    def __call__(self, x):
        return self.f0 + (self.gram @ self.parts.reshape(-1)).reshape(self.f0.shape)

    def vjp(self, x, signal):
        return signal

    def tangent(self):
        raise ValueError("The kernel of a frozen kernel is that kernel.")

    def normal(self, key):
        raise ValueError("A flow with a frozen kernel has no noise.")

    def second_moment(self):
        """½cᵀKc, half the square of the norm of f − f₀ in the space of the kernel."""
        return 0.5 * jnp.vdot(self.parts.reshape(-1), self.gram @ self.parts.reshape(-1))


class KernelCarry(AbstractCarry):
    """Time, start, and the start's residual in the eigenvectors of √Ω K √Ω (exact), or the ODE's carry."""

    t: Float[Array, ""]
    state: AbstractState  # the start
    eigenvalues: Array
    vectors: Array
    residual: Array
    ode: PyTree


class KernelFlow(AbstractDynamics):
    """u̇ = −K diag(ω) u on the data, K frozen at the start: f_t = f₀ + K c_t, ċ = ω u (u = −ℓ'(f, y)).

    For the squared loss u_t = exp(−KΩt)u₀, from one eigendecomposition and without time steps (directions
    whose eigenvalue is below the rounding of K are not learned: late times need float64); for other losses
    by an adaptive ODE method to `rtol`. It starts from a network or particles, whose own kernel is then
    frozen (the states of the run are `wf.kernels.Linearisation`), or from a `wf.kernels.KernelFunction`
    such as that of an infinite-width kernel. The `functional` is a risk on data, wf.Data() or wf.Sample(m).

    >>> data = wf.Risk(problem, wf.Sample(8))
    >>> run = wf.evolve(wf.KernelFlow(data), net, ts)
    >>> run["risk"].round(3)
    array([0.3  , 0.268, 0.24 ])"""

    functional: Risk
    rtol: float | None = eqx.field(default=None, kw_only=True)
    name: str = eqx.field(static=True, default="KernelFlow", init=False)

    def __check_init__(self):
        if not isinstance(self.functional, Risk):
            kind = type(self.functional).__name__
            raise ValueError(f"KernelFlow needs a wf.Risk alone (a penalty would move K), got a {kind}.")
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

    def check_state(self, state):
        single = state if getattr(state, "replicas", None) is None else state.replica(0)
        jax.eval_shape(lambda: self._gram(single))  # raises for what has no kernel on these data
        self.functional.problem.loss.check(self._data.y, self.functional.problem.neuron.outputs)

    def init(self, state, key, ts=None):
        gram, f0 = self._gram(state)
        data, zero = self._data, jnp.zeros((), gram.dtype)
        c = jnp.zeros(f0.shape, gram.dtype)
        if not self.functional.problem.loss.is_squared:
            ode = self._flow.init(OnNodes(c, f0, gram), key, ts)
            return KernelCarry(zero, state, zero, zero, zero, ode)
        root = _each_output(jnp.sqrt(data.weights.astype(gram.dtype)), f0)
        values, vectors = _eigh(root[:, None] * gram * root)
        u = (data.y.astype(gram.dtype) - f0).reshape(-1)
        return KernelCarry(zero, state, values, vectors, vectors.T @ (root * u), None)

    @property
    def _flow(self) -> GradientFlow:
        return GradientFlow(self.functional.on(self._data), rtol=self.rtol)

    def _gram(self, state: AbstractState) -> tuple[Array, Array]:
        """K over (rows × outputs) and f₀ on the data."""
        x, outputs = self._data.x, self.functional.problem.neuron.outputs
        size = self._data.m * outputs
        hint = "Use fewer rows, or wf.Linearised(R), which holds no kernel."
        fits(f"The kernel of {size} values", 3 * 8.0 * size**2, hint)
        if is_kernel_function(state):
            K, f0 = jnp.asarray(state.kernel(x, x)), state(x)
            if K.shape != (len(x), len(x)):
                raise ValueError(f"The kernel must give shape {(len(x), len(x))} on the data, got {K.shape}.")
            K = jnp.kron(K, jnp.eye(outputs, dtype=K.dtype)) if outputs > 1 else K
        elif is_trainable(state):
            K, f0 = tangent_kernel(state, x), state(x)
            if f0.size != size:  # more classes than the labels show
                raise ValueError(f"KernelFlow needs wf.Problem(…, outputs={f0.size // len(x)}) here.")
            K = jnp.moveaxis(K, 1, 2).reshape(size, size) if outputs > 1 else K
        else:
            raise ValueError(
                "KernelFlow starts from a network, wf.Particles or wf.kernels.KernelFunction(kernel), got a "
                f"{type(state).__name__}."
            )
        return K, f0.astype(K.dtype)

    def target(self, t):
        return self._flow.target(t)

    def advance_to(self, carry, target, budget):
        if carry.ode is not None:
            ode, info = self._flow.advance_to(carry.ode, target, budget)
            return carry._with(ode=ode), info
        yes, none = jnp.ones((), bool), jnp.zeros((), jnp.int32)
        moved = carry._with(t=target.astype(carry.t.dtype))
        return moved, Info(yes, is_finite(carry.residual), ~yes, none, none)

    def read(self, carry, t):
        if carry.ode is None:
            c = _coefficients(carry, self.target(t).astype(carry.residual.dtype), self._data.weights)
            outputs = self.functional.problem.neuron.outputs
            c = c if outputs == 1 else c.reshape(-1, outputs)
        else:
            c = self._flow.read(carry.ode, t).parts
        return _with_coefficients(carry.state, self._data.x, c)

    def time(self, carry):
        return carry.t if carry.ode is None else self._flow.time(carry.ode)

    def advice(self, state, key):
        return (
            "The kernel or the start is not finite on the data (look at x and the weights), or the loss is "
            "too steep for it."
        )

    def largest_stable_step(self, state: AbstractState) -> float:
        """2/λ, λ the largest eigenvalue of KΩ: descent of the squared loss with this kernel is stable for η
        below it."""
        gram, f0 = self._gram(state)
        root = _each_output(jnp.sqrt(self._data.weights.astype(gram.dtype)), f0)
        return float(2 / jnp.linalg.eigvalsh(root[:, None] * gram * root)[-1])


def _eigh(matrix: Float[Array, "k k"]) -> tuple[Float[Array, " k"], Float[Array, "k k"]]:
    """Eigenvalues and vectors of a symmetric matrix, computed in float64 whatever its precision. An
    eigenvalue below the rounding of the matrix counts as 0."""

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not np.isfinite(matrix).all():
            return np.full(matrix.shape[:-1], np.nan, matrix.dtype), np.full_like(matrix, np.nan)
        values, vectors = np.linalg.eigh(np.asarray(matrix, np.float64))
        rounding = values.shape[-1] * np.finfo(matrix.dtype).eps * values[..., -1:]
        return np.where(values > rounding, values, 0.0).astype(matrix.dtype), vectors.astype(matrix.dtype)

    shapes = [jax.ShapeDtypeStruct(shape, matrix.dtype) for shape in (matrix.shape[:1], matrix.shape)]
    values, vectors = jax.pure_callback(decompose, shapes, matrix, vmap_method="broadcast_all")
    return values, vectors


def _each_output(weights: Array, f: Array) -> Array:
    return weights if f.ndim == 1 else jnp.repeat(weights, f.shape[1])


@eqx.filter_jit
def _coefficients(carry: KernelCarry, t: Array, weights: Array) -> Array:
    """c_t = √Ω Q (1 − e^{−Λt})/Λ Qᵀ√Ω u₀; where Λ = 0 nothing is learned, and c is left at 0 there."""
    decay, learned = carry.eigenvalues * t, carry.eigenvalues > 0
    small = decay < jnp.finfo(decay.dtype).eps
    factor = jnp.where(small, t, -jnp.expm1(-decay) / jnp.where(learned, carry.eigenvalues, 1.0))
    factor = jnp.where(learned, factor, 0.0)
    root = jnp.sqrt(weights.astype(decay.dtype))
    root = jnp.repeat(root, decay.size // root.size)
    return root * (carry.vectors @ (factor * carry.residual))


def _with_coefficients(start: PyTree, x: Array, c: Array) -> AbstractState:
    if is_kernel_function(start):
        before = start if start.x is not None else start.start
        return KernelFunction(start.kernel, start.outputs, before, x, c)
    return linearised(start).moved(chunked_vjp(start.base, x, c))
