"""Targets y = f*(x)."""

import abc
import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from .._checks import count, finite, function
from .._tracing import on_device
from .activations import Activation, activation
from .laws import _cast


class AbstractTarget(eqx.Module):
    """A function of x; `target(x)` maps rows (m, d) to y of shape (m,) or (m, outputs)."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "m d"]) -> Array:
        """y = f*(x) of every row."""

    def check(self, d: int) -> None:
        """Raise if this target is not a function on R^d."""
        try:
            shape = jax.eval_shape(self, jax.ShapeDtypeStruct((3, d), jnp.result_type(float))).shape
        except Exception as error:
            raise ValueError(f"Problem(target) cannot be evaluated on one x in R^{d}: {error}") from error
        if shape[:1] != (3,) or len(shape) > 2:
            raise ValueError(
                f"Problem(target) must map x of shape (3, {d}) to (3,) or (3, outputs), got {shape}."
            )


class Ridges(AbstractTarget):
    """f*(x) = Σ_j a_j φ(⟨w_j, x⟩ + b_j). Without `w` the one direction is the first axis."""

    link: Activation = eqx.field(static=True)
    a: Float[Array, " k"]
    w: Float[Array, "k d"] | None
    b: Float[Array, " k"] | None

    def directions(self, d: int, dtype: DTypeLike) -> Float[Array, "k d"]:
        """The rows w_j, the first axis of R^d if none were given."""
        return on_device(np.eye(1, d, dtype=dtype)) if self.w is None else self.w.astype(dtype)

    def __call__(self, x):
        h = x @ self.directions(x.shape[1], x.dtype).T
        return self.link(h if self.b is None else h + self.b) @ self.a.astype(x.dtype)

    def check(self, d):
        if self.w is not None and self.w.shape[1] != d:
            raise ValueError(
                f"Problem(target) must have directions in R^{d}, as x is, got some in R^{self.w.shape[1]}."
            )


class MultiIndex(AbstractTarget):
    """f*(x) = g(⟨u_1, x⟩, …, ⟨u_k, x⟩) with g a JAX function of a vector of length k."""

    fn: Callable[[Array], Array] = eqx.field(static=True)
    k: int = eqx.field(static=True)
    directions: Float[Array, "k d"] | None

    def __call__(self, x):
        s = x[:, : self.k] if self.directions is None else x @ self.directions.T.astype(x.dtype)
        return jax.vmap(self.fn)(s)

    def check(self, d):
        if self.k > d or (self.directions is not None and self.directions.shape[1] != d):
            where = "the first axes" if self.directions is None else f"shape {self.directions.shape}"
            raise ValueError(
                f"Problem(target) must have k <= d directions in R^{d}, as x is, got k = {self.k} ({where})."
            )
        super().check(d)


class Function(AbstractTarget):
    """f*(x) = fn(x), any JAX function of one x ∈ R^d."""

    fn: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, x):
        return jax.vmap(self.fn)(x)


def single_index(link, direction=None, **options) -> Ridges:
    """y = φ(⟨w*, x⟩), |w*| = 1: `link` names φ (options as in `wf.activation`) or is a function;
    `direction` is normalised, the first axis by default.

    >>> wf.single_index("relu", direction=[3.0, 4.0])(jnp.array([[1.0, 2.0]])).round(6)
    Array([2.2], dtype=float64)"""
    w = _unit("single_index(direction)", direction)
    return Ridges(activation(link, **options), _cast(np.ones(1)), w, None)


def _unit(name: str, direction: PyTree) -> Float[Array, "1 d"] | None:
    """direction/|direction| as one row."""
    if direction is None:
        return None
    w = finite(name, direction).astype(float)
    largest = np.abs(w).max(initial=0.0)
    if w.ndim != 1 or not largest > 0:
        raise ValueError(f"{name} must be a vector that is not 0, got {w}.")
    w = w / largest  # so that no square over- or underflows
    return _cast(w / np.linalg.norm(w))[None]


def hermite(degree: int, direction=None) -> Ridges:
    """y = He_k(⟨w*, x⟩)/√k!, k = `degree`: E y² = 1 under N(0, I).

    >>> wf.hermite(2)(jnp.array([[2.0, 0.0]])).round(4)  # (s² − 1)/√2
    Array([2.1213], dtype=float64)"""
    return single_index("hermite", direction, degree=degree)


def polynomial(coefficients, direction=None) -> MultiIndex:
    """y = Σ_k c_k ⟨w*, x⟩^k, c = `coefficients`, |w*| = 1 (the first axis by default).

    >>> wf.polynomial([1.0, 0.0, 2.0])(jnp.array([[3.0, 0.0]]))  # 1 + 2s²
    Array([19.], dtype=float64)"""
    c = finite("polynomial(coefficients)", coefficients)
    if c.ndim != 1 or c.size == 0:
        raise ValueError(f"polynomial(coefficients) must be a vector c_0, c_1, …, got {c.shape}.")
    fn = _power_sum(tuple(float(v) for v in c[::-1]))
    return MultiIndex(fn, 1, _unit("polynomial(direction)", direction))


@functools.lru_cache  # the same function for the same coefficients, so that jit compiles once
def _power_sum(powers: tuple[float, ...]) -> Callable[[Array], Array]:
    return lambda s: jnp.polyval(jnp.asarray(powers, s.dtype), s[0])


def teacher(w, a=None, b=None, link="relu", **options) -> Ridges:
    """A teacher network y = Σ_j a_j φ(⟨w_j, x⟩ + b_j): w (k, d), a and b (k,); a = 1/k by default.

    >>> wf.teacher([[1.0, 0.0], [0.0, 1.0]], a=[1.0, -1.0])(jnp.array([[2.0, 3.0]]))
    Array([-1.], dtype=float64)"""
    w = finite("teacher(w)", w)
    if w.ndim != 2 or 0 in w.shape:
        raise ValueError(f"teacher(w) must have shape (k, d), one neuron per row, got {w.shape}.")
    k = w.shape[0]
    a = np.full(k, 1 / k) if a is None else finite("teacher(a)", a)
    b = None if b is None else finite("teacher(b)", b)
    if a.shape != (k,) or (b is not None and b.shape != (k,)):
        shapes = f"{a.shape} and {None if b is None else b.shape}"
        raise ValueError(
            f"teacher(a) and teacher(b) must have shape ({k},), as w has {k} rows, got {shapes}."
        )
    bias = None if b is None else _cast(b)
    return Ridges(activation(link, **options), _cast(a), _cast(w), bias)


def multi_index(fn: Callable[[Array], Array], k: int, directions=None) -> MultiIndex:
    """y = fn(s), s = (⟨u_1, x⟩, …, ⟨u_k, x⟩); `directions` (k, d), the first k axes by default.

    >>> wf.multi_index(lambda s: s[0] * s[1], k=2)(jnp.array([[2.0, 3.0, 5.0]]))
    Array([6.], dtype=float64)"""
    fn, k = function("multi_index(fn)", fn), count("multi_index(k)", k)
    if directions is not None:
        directions = finite("multi_index(directions)", directions)
        directions = _cast(directions.reshape(1, -1) if directions.ndim == 1 else directions)
        if directions.ndim != 2 or directions.shape[0] != k:
            raise ValueError(
                f"multi_index(directions) must have shape (k, d), k = {k}, got {directions.shape}."
            )
    return MultiIndex(fn, k, directions)
