"""A kernel as an operator v ↦ K v, for what does not fit as a matrix: products, systems, eigenvalues."""

import math
from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from .._checks import count, finite, positive
from .._tracing import jit
from .._typing import Abstract, DType
from ..states.chunks import chunked
from .empirical.plan import BUDGET, costs
from .function import Batch, Model, model, samples
from .krylov import Solved, Spectrum, conjugate_gradients, lanczos
from .parameters import rates_of


class AbstractOperator(eqx.Module):
    """A symmetric positive semi-definite kernel between m samples with O outputs, of shape (mO, mO)."""

    m: Abstract[int]
    outputs: Abstract[int]
    dtype: Abstract[DType]

    @abstractmethod
    def multiply(self, v: Float[Array, " mO"]) -> Float[Array, " mO"]:
        """K v, to be traced."""

    @property
    def shape(self) -> tuple[int, int]:
        n = self.m * self.outputs
        return (n, n)

    def __matmul__(self, v: ArrayLike) -> Array:
        """K v for v of shape (mO,) or (m, O), in the same shape."""
        vector = self._vector("v", v)
        return _multiplied(self, vector).reshape(np.shape(v))

    def solve(self, y: ArrayLike, ridge: float = 0.0, tol: float = 1e-6, steps: int | None = None) -> Solved:
        """(K + ridge·I) v = y by conjugate gradients, until |y − (K + ridge·I)v| ≤ tol |y|.

        `steps` is the most products K v to take, ten times mO by default. A failure to converge is
        reported in the result, which says what to change."""
        ridge, tol = positive("solve(ridge)", ridge, zero=True), positive("solve(tol)", tol)
        most = 10 * self.shape[0] if steps is None else count("solve(steps)", steps)
        solved = conjugate_gradients(self, self._vector("y", y), ridge, tol, most)
        return solved._replace(solution=solved.solution.reshape(np.shape(y)))

    def eigenvalues(
        self, k: int, tol: float | None = None, steps: int | None = None, seed: int = 0
    ) -> Spectrum:
        """The k largest eigenvalues by Lanczos with full reorthogonalisation, each with a bound on its error.

        It goes on until all bounds are ≤ tol times the largest eigenvalue (√eps of the dtype by default),
        or for `steps` products, max(10k, 200) by default; mO × steps numbers are kept. A bound says that an
        eigenvalue lies that close; copies of a multiple one can be missed until all mO steps are made."""
        n = self.shape[0]
        if count("eigenvalues(k)", k) > n:
            raise ValueError(f"eigenvalues(k) must be at most {n}, the size of the kernel, got {k}.")
        eps = float(jnp.finfo(self.dtype).eps)
        tol = math.sqrt(eps) if tol is None else positive("eigenvalues(tol)", tol)
        most = max(10 * k, 200) if steps is None else count("eigenvalues(steps)", steps, least=k)

        def multiply(v: np.ndarray) -> np.ndarray:
            return np.asarray(_multiplied(self, jnp.asarray(v, self.dtype)))

        return lanczos(multiply, n, k, tol, most, eps, seed)

    def _vector(self, name: str, v: ArrayLike) -> Array:
        values, n = finite(name, v), self.shape[0]
        if values.shape not in ((n,), (self.m, self.outputs)):
            raise ValueError(
                f"{name} must have shape ({n},) or ({self.m}, {self.outputs}), m samples with O outputs, "
                f"got {values.shape}."
            )
        return jnp.asarray(values.ravel(), self.dtype)


@jit
def _multiplied(operator: AbstractOperator, v: Array) -> Array:
    return operator.multiply(v)


class MatrixOperator(AbstractOperator):
    """An explicit kernel, (m, m) or blocks (m, m, O, O)."""

    matrix: Float[Array, "mO mO"]
    m: int
    outputs: int

    def __init__(self, kernel: ArrayLike):
        values = finite("kernel", kernel)
        shape = values.shape
        if len(shape) not in (2, 4) or shape[0] != shape[1] or shape[2:3] != shape[3:]:
            raise ValueError(f"kernel must have shape (m, m) or (m, m, O, O), got {shape}.")
        self.m, self.outputs = shape[0], shape[2] if len(shape) == 4 else 1
        n = self.m * self.outputs
        blocks = values if len(shape) == 2 else values.transpose(0, 2, 1, 3).reshape(n, n)
        self.matrix = jnp.asarray(blocks, None if blocks.dtype.kind == "f" else float)

    @property
    def dtype(self):  # type: ignore[override]
        return self.matrix.dtype

    def multiply(self, v):
        return self.matrix @ v


class KernelOperator(AbstractOperator):
    """K = J diag(rate) Jᵀ of f(params, x) on samples x (m, …), J the derivative in all parameters.

    v is pulled back to the parameters and pushed forward again, over chunks of samples: beside two vectors
    like params only the activations of a chunk are held (within `memory` bytes, 512 MiB by default)."""

    model: Model
    rates: Array
    chunks: Array
    m: int
    outputs: int

    def __init__(
        self, f: Callable, params: PyTree, x: Batch, rates: PyTree = None, memory: int | None = None
    ):
        budget = BUDGET if memory is None else count("memory", memory)
        rows = samples("x", x)
        self.model = model(f, params, rows)
        self.rates = rates_of(rates, self.model.moving)
        self.m, self.outputs = len(rows), self.model.outputs
        # A pass back holds the activations, their derivatives and what it is made of.
        most = max(1, int(budget / (4 * costs(self.model, rows).activations + 1)))
        self.chunks = chunked(jnp.asarray(rows), math.ceil(self.m / math.ceil(self.m / most)))

    @property
    def dtype(self):  # type: ignore[override]
        return self.model.dtype

    def multiply(self, v):
        chunks, model, moving = self.chunks, self.model, self.model.moving
        signals = chunked(v.reshape(self.m, self.outputs), chunks.shape[1], pad="constant")

        def vjp(total: PyTree, chunk: tuple[Array, Array]) -> tuple[PyTree, None]:
            x, signal = chunk
            value, back = jax.vjp(lambda moving: model(moving, x), moving)
            return jax.tree.map(jnp.add, total, back(signal.astype(value.dtype))[0]), None

        total, _ = jax.lax.scan(vjp, jax.tree.map(jnp.zeros_like, moving), (chunks, signals))
        leaves, structure = jax.tree.flatten(total)
        scaled = [leaf * rate.astype(leaf.dtype) for leaf, rate in zip(leaves, self.rates, strict=True)]
        tangent = jax.tree.unflatten(structure, scaled)

        def push(x: Array) -> Array:
            return jax.jvp(lambda moving: model(moving, x), (moving,), (tangent,))[1]

        out = jax.lax.map(push, chunks).reshape(-1, self.outputs)[: self.m]
        return out.ravel().astype(self.dtype)
