"""Kernels of infinitely wide networks: the covariance Σ of f(0) (NNGP) and the tangent kernel Θ (NTK)."""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ..._checks import count, finite, fits
from ..._shown import shown
from ..._threads import side_by_side
from ..._tracing import jit
from ...parametrisations import Parametrisation, named
from ...states.family import Family
from ...store.registry import must_be, recorded
from ...verdicts import LAZY
from ..tracing import is_traced
from .duals import Cut, Dual
from .limits import Limit, limit_of
from .recursion import Side, Stack, activations, begin, from_activation, largest
from .samples import Samples, prepared, prepared_traced

_TILE = 2**21  # bytes of a table: a few of them stay in the cache


class Kernels(NamedTuple):
    """Σ(x, x') = Cov(f(x), f(x')) at the start and Θ(x, x'), both (m1, m2), of one output of the network."""

    nngp: np.ndarray | Array
    ntk: np.ndarray | Array


def infinite_kernels(
    family: Family,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    parametrisation: str | Parametrisation = "ntk",
    rows: int | None = None,
) -> Kernels:
    """Σ and Θ of the networks `family.sample(key, n, parametrisation)` at n = ∞, between samples x1 (m1, …)
    and x2 (m2, …), or x1 itself. NumPy arrays in float64, whatever JAX is set to. With gain g and biases of
    variance σ_b²,

        Σ¹ = g²⟨x, x'⟩/d + σ_b²,   Σ^{l+1} = g² E φ(u)φ(v) + σ_b²,   (u, v) ~ N(0, Σ^l on {x, x'}),
        Θ¹ = ⟨x, x'⟩ [+ 1],        Θ^{l+1} = g² E φ(u)φ(v) [+ 1] + g² Θ^l E φ'(u)φ'(v),

    with Θ¹ times g²/d for input_scale="front", and [+ 1] for trained biases; convolutions and averages act on
    positions in the same way. Of several outputs, which are independent, this is the kernel of each.

    The parametrisation decides which parts there are. One that vanishes as n grows is left out (the first
    layer's under "standard"); Σ is that of the output's bias alone where f(0) → 0 (mean field); one that
    diverges is an error. Θ is the kernel at the start. It stays so in training in the kernel regime alone
    (`parametrisation.regime()`, `InfiniteKernel.frozen`); where features are learnt, it moves from there.

    E φφ' is in closed form where one is known, else by a Hermite series, as long as the variances require (a
    smooth φ, to 1e-11 of E φ²), by one integral (a piecewise linear φ), or by quadrature that is cut at the
    kinks φ states. Equal rows have correlation 1 exactly; for rows that differ by 1e-8 of their length and
    less, relu's Θ has 8 digits, as their angle is not in ⟨x, x'⟩. `rows` is the side of a tile of samples
    (chosen if None): beside the results, a few tiles are held.

    Inside jit, grad or vmap the kernels are arrays of JAX in the dtype of what is traced, all pairs are taken
    at once, and a φ without closed form has a Hermite series of 128 terms, whose tail is not checked, or
    quadrature cut at its kinks.

    >>> kernels = wf.infinite_kernels(wf.MLP(3, depth=1, activation="erf"), np.eye(3))
    >>> kernels.nngp.shape, kernels.ntk.shape
    ((3, 3), (3, 3))"""
    limit = limit_of(family, parametrisation)
    return _traced(limit, x1, x2) if is_traced(x1, x2) else _computed(limit, x1, x2, rows)


@dataclass(frozen=True)
class InfiniteKernel:
    """k(x1, x2) → (m1, m2): Θ (`which="ntk"`) or Σ ("nngp") of `infinite_kernels`, as a function that can be
    handed on, compared and hashed; `k.nngp` and `k.ntk` are both of them.

    On arrays it is in float64. Inside jit, grad or vmap it has the dtype of what is traced, takes all pairs
    at once, and a smooth φ without closed form has a Hermite series of 128 terms, whose tail is not
    checked."""

    family: Family
    parametrisation: str | Parametrisation = "ntk"
    which: str = "ntk"

    def __post_init__(self):
        if self.which not in ("nngp", "ntk"):
            raise ValueError(f'which must be "ntk" or "nngp", got {shown(self.which)}.')
        self._limit()
        object.__setattr__(self, "parametrisation", named(self.parametrisation, self.family.depth))

    @property
    def nngp(self) -> "InfiniteKernel":
        return InfiniteKernel(self.family, self.parametrisation, "nngp")

    @property
    def ntk(self) -> "InfiniteKernel":
        return InfiniteKernel(self.family, self.parametrisation, "ntk")

    @property
    def frozen(self) -> bool:
        """Whether Θ stays during training what it is at the start."""
        return named(self.parametrisation, self.family.depth).regime().verdict == LAZY

    def __call__(self, x1: ArrayLike, x2: ArrayLike | None = None) -> np.ndarray | Array:
        if is_traced(x1, x2):
            return getattr(_traced(self._limit(), x1, x2), self.which)
        return getattr(_computed(self._limit(), x1, x2), self.which)

    def _limit(self) -> Limit:
        return limit_of(self.family, self.parametrisation, nngp=self.which == "nngp")


def _computed(limit: Limit, x1: ArrayLike, x2: ArrayLike | None, rows: int | None = None) -> Kernels:
    family = limit.family
    one = _samples(family, "x1", x1)
    other = None if x2 is None else _samples(family, "x2", x2)
    side = _side(largest(family)) if rows is None else count("rows", rows)
    m1, m2 = len(one), None if other is None else len(other)
    fits("The kernels", 16.0 * m1 * (m2 or m1), "Take fewer samples at a time.")
    with jax.enable_x64(True):
        samples = prepared(limit, one if other is None else np.concatenate([one, other]), side * side)
        held = max((dual.held for dual in samples.duals if isinstance(dual, Cut)), default=1)
        return _filled(limit, samples, m1, m2, side if rows else _side(held * largest(family)))


def _side(numbers: int) -> int:
    """Of a tile whose pairs hold this many numbers each."""
    return math.isqrt(_TILE // (8 * numbers)) or 1


def _samples(family: Family, name: str, x: ArrayLike) -> np.ndarray:
    values = finite(name, x)
    return values.astype(np.float64).reshape(_shape(family, name, values.shape))


def _shape(family: Family, name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) < 2 or shape[0] == 0 or math.prod(shape[1:]) != family.d:
        raise ValueError(f"{name} must have one or more rows of shape {family.inputs}, got shape {shape}.")
    return (shape[0], *family.inputs)


@partial(jax.jit, static_argnums=0)
def _first(limit: Limit, x1: Array, x2: Array) -> Stack:
    return begin(limit, x1, x2)


@jit
def _next(limit: Limit, layer: int, dual: Dual, one: Side, other: Side, stack: Stack) -> Stack:
    return from_activation(limit, layer, dual, (one, other), stack, 2)


def _pairs(limit: Limit, one: Samples, other: Samples) -> Kernels:
    """A program for each layer: in one for all, XLA's loops recompute a layer for each of its uses."""
    stack = _first(limit, one.x, other.x)
    for k, layer in enumerate(activations(limit.family)):
        sides = one.side(k), other.side(k)
        stack = _next(limit, layer, one.duals[k], *sides, stack)
    return Kernels(*stack[-1])


def _traced(limit: Limit, x1: ArrayLike, x2: ArrayLike | None) -> Kernels:
    both = [jnp.asarray(x) for x in (x1, x1 if x2 is None else x2)]
    dtype = jnp.result_type(*both, jnp.float32)
    pair = [x.astype(dtype).reshape(_shape(limit.family, f"x{i}", x.shape)) for i, x in enumerate(both, 1)]
    samples, m1 = prepared_traced(limit, jnp.concatenate(pair)), len(pair[0])
    return _pairs(limit, samples.part(slice(m1)), samples.part(slice(m1, None)))


def _filled(limit: Limit, samples: Samples, m1: int, m2: int | None, rows: int) -> Kernels:
    """All tiles, or those on and above the diagonal where there is no x2. One per thread: XLA runs a loop of
    this size in one, and all cores should work."""
    columns = m1 if m2 is None else m2
    out = np.empty((m1, columns)), np.empty((m1, columns))
    left = _parts(samples, 0, m1, rows)
    right = left if m2 is None else _parts(samples, m1, m2, rows)

    def fill(corner: tuple[int, int]) -> None:
        i, j = corner
        tiles = _pairs(limit, left[i], right[j])
        for kernel, tile in zip(out, tiles, strict=True):
            _write(kernel, np.asarray(tile), i, j, m2 is None)

    side_by_side(fill, [(i, j) for i in left for j in right if m2 is not None or j >= i])
    return Kernels(*out)


def _parts(samples: Samples, start: int, m: int, rows: int) -> dict[int, Samples]:
    """m samples from `start` on, cut into parts of one size, the last filled up with its last sample."""
    size = -(-m // -(-m // rows))
    at = {i: start + np.minimum(np.arange(i, i + size), m - 1) for i in range(0, m, size)}
    return {i: samples.part(indices) for i, indices in at.items()}


def _write(kernel: np.ndarray, tile: np.ndarray, i: int, j: int, symmetric: bool) -> None:
    block = kernel[i : i + tile.shape[0], j : j + tile.shape[1]]
    block[...] = tile[: block.shape[0], : block.shape[1]]
    if symmetric and i != j:
        kernel[j : j + block.shape[1], i : i + block.shape[0]] = block.T
    if symmetric and i == j:
        for k in range(1, len(block)):
            block[k, :k] = block[:k, k]


recorded(
    InfiniteKernel,
    build=lambda family, parametrisation, which: InfiniteKernel(
        must_be("family", family, Family), parametrisation, which
    ),
)
