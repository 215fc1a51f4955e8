"""Maximum mean discrepancy."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._checks import nearest, positive
from .._shown import shown
from .._tracing import jit
from ..states.chunks import chunk_rows, chunked
from .atoms import EPS, Atoms, Measure, Pair, both, centred, input_rounding
from .distance import Distance, rooted
from .simplex import cells_note


def _root(s: Array) -> Array:
    """√s, with derivative 0 at 0: by symmetry a point does not push itself."""
    return jnp.where(s > 0, jnp.sqrt(jnp.where(s > 0, s, 1.0)), 0.0)


# k as a function of |x − y|²/bandwidth²
_KERNELS = {
    "gaussian": lambda s: jnp.exp(-s / 2),
    "laplace": lambda s: jnp.exp(-_root(s)),
    "energy": lambda s: -_root(s),
}


def mmd_squared(
    x: Float[Array, "n D"],
    y: Float[Array, "m D"],
    bandwidth: Float[Array, ""] | float,
    x_weights: Float[Array, " n"] | None = None,
    y_weights: Float[Array, " m"] | None = None,
    *,
    kernel: str = "gaussian",
    unbiased: bool = False,
) -> Float[Array, ""]:
    """MMD² = ∫∫k dμdμ + ∫∫k dνdν − 2∫∫k dμdν of two weighted clouds, as a pure function of arrays: it goes
    through `jax.jit`, `jax.vmap` and `jax.grad` (in points, weights and bandwidth), in the precision of
    its arguments. Weights are ≥ 0 and are divided by their sum, equal by default; kernels are those of
    `wf.distances.mmd`, which adds an error and takes measures of any kind. No matrix of pairs is stored,
    derivatives included."""
    _known(kernel)
    x, y = jnp.asarray(x), jnp.asarray(y)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ValueError(
            f"mmd_squared takes points (n, D) and (m, D) of one space, got {x.shape} and {y.shape}. For "
            "points on the line pass x[:, None]; for many clouds use jax.vmap."
        )
    mu, nu = ((v / bandwidth, _shares(v, p)) for v, p in ((x, x_weights), (y, y_weights)))
    return _square(_sums(mu, mu, kernel), _sums(nu, nu, kernel), _sums(mu, nu, kernel), unbiased)


def _shares(points: Array, weights: Array | None) -> Array:
    mass = jnp.ones(points.shape[0], points.dtype) if weights is None else jnp.asarray(weights)
    if mass.shape != points.shape[:1]:
        raise ValueError(f"weights must have shape {points.shape[:1]}, one per point, got {mass.shape}.")
    return mass / jnp.sum(mass)


def _known(kernel: str) -> None:
    if kernel not in _KERNELS:
        raise ValueError(
            f"mmd(kernel) must be one of {', '.join(_KERNELS)}, got {shown(kernel)}."
            f"{nearest(kernel, _KERNELS)}"
        )


def mmd(
    a: Measure,
    b: Measure,
    bandwidth: float | None = None,
    *,
    kernel: str = "gaussian",
    unbiased: bool = False,
    weights: Pair = (None, None),
) -> Distance:
    """MMD² = ∫∫k dμdμ + ∫∫k dνdν − 2∫∫k dμdν of a, b: particles, grid densities or arrays (n, D).

    `kernel`: "gaussian" exp(−|x−y|²/2h²), "laplace" exp(−|x−y|/h) or "energy" −|x−y|/h, h the `bandwidth`, by
    default the root of half the mean squared distance between points of (μ + ν)/2. The number is that of the
    two measures as they are; with `unbiased` they are independent draws, and `square` estimates MMD² between
    the laws behind them, without the pairs of a point with itself. `standard_error` is that of `square` as
    such an estimate. Pairs are summed in tiles; cells of a grid are atoms, with the bound of that in
    `error`."""
    _known(kernel)
    one, two = both(a, b, weights)
    if unbiased and min(one.n, two.n) < 2:
        raise ValueError(f"An unbiased estimate needs 2 points of each law, got {one.n} and {two.n}.")
    h = _bandwidth(one, two) if bandwidth is None else positive("bandwidth", bandwidth)
    with jax.enable_x64(True):
        x, y = ((jnp.asarray(v.points / h), jnp.asarray(v.weights)) for v in (one, two))
        xx, yy, xy = _sums(x, x, kernel), _sums(y, y, kernel), _sums(x, y, kernel)
        square = float(_square(xx, yy, xy, unbiased))
        largest = float(abs(xx.mean()) + abs(yy.mean()) + 2 * abs(xy.mean()))
        variance = float(_variance(xx, yy, xy))
    moved, mass = input_rounding(one, two)
    # k has slope 1/h at most, and |k| is `largest` in the mean
    slack = EPS * (one.n + two.n) * largest + 4 * moved / h + 4 * mass * largest
    value, error = rooted(square, slack)
    error += sum(_cells(kernel, v.spread / h) for v in (one, two))
    method = f"MMD, {kernel} kernel of bandwidth {h:.3g}{', unbiased' if unbiased else ''}"
    return Distance(value, error, method + cells_note(one, two), square, math.sqrt(max(variance, 0.0)))


def _bandwidth(one: Atoms, two: Atoms) -> float:
    """h² = ½E|z − z'|² for z, z' of (μ + ν)/2, which is the variance of that mixture."""
    _, _, apart = centred(one, two)
    return math.sqrt((one.variance + two.variance) / 2 + apart / 4) or 1.0


def _cells(kernel: str, spread: float) -> float:
    """A bound of the MMD between a density on cells and their centres, `spread` being W2 of them over h. In
    the kernel's space |φ(x) − φ(y)|² is at most |x − y|²/h² (gaussian) or 2|x − y|/h; where φ is smooth the
    first derivatives cancel within a cell and the second, of norm √3/h², are left."""
    if kernel == "gaussian":
        return min(spread, math.sqrt(3) / 2 * spread**2)
    return math.sqrt(2 * spread)


def _square(xx: "_Sums", yy: "_Sums", xy: "_Sums", unbiased: bool) -> Float[Array, ""]:
    return xx.mean(unbiased) + yy.mean(unbiased) - 2 * xy.mean()


class _Sums(NamedTuple):
    """Σ_ij p_i q_j k_ij by rows and columns, that of k², and that of the diagonal."""

    p: Float[Array, " n"]
    q: Float[Array, " m"]
    rows: Float[Array, " n"]
    columns: Float[Array, " m"]
    squares: Float[Array, ""]
    diagonal: Float[Array, ""]

    def mean(self, unbiased: bool = False) -> Float[Array, ""]:
        total = self.p @ self.rows
        if not unbiased:
            return total
        own = self.p @ self.p
        return (total - own * self.diagonal) / (1 - own)

    def degenerate(self) -> Float[Array, ""]:
        """Variance of k less its means over either point."""
        total = self.p @ self.rows
        return self.squares - self.p @ self.rows**2 - self.q @ self.columns**2 + total**2


def _variance(xx: _Sums, yy: _Sums, xy: _Sums) -> Float[Array, ""]:
    """Of MMD² over draws: 4 var(E k(x, X') − E k(x, Y))/n + the same of y, and the part that is left where
    both laws are equal, 2 var(k)/n² + 2 var(k)/m² + 4 var(k)/nm of the degenerate kernel; 1/n is Σp²."""
    spread = lambda p, v: p @ v**2 - (p @ v) ** 2
    n, m = xx.p @ xx.p, yy.p @ yy.p
    first = 4 * n * spread(xx.p, xx.rows - xy.rows) + 4 * m * spread(yy.p, yy.rows - xy.columns)
    second = 2 * n**2 * xx.degenerate() + 2 * m**2 * yy.degenerate() + 4 * n * m * xy.degenerate()
    # the means over a cloud are themselves drawn, by which `first` is too large by twice `second`
    return jnp.maximum(first - second, second)


@jit
def _sums(x: tuple[Array, Array], y: tuple[Array, Array], kernel: str) -> _Sums:
    (points, p), (others, q) = x, y
    k = _KERNELS[kernel]
    size = chunk_rows(points.shape[0], others.shape[0], points.shape[1], points.dtype)

    def add(carry: tuple[Array, Array], block: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        columns, squares = carry
        rows, mass = block
        # by differences: a root of |x|² + |y|² − 2⟨x, y⟩ would have half the digits near 0
        tile = k(jnp.sum((rows[:, None] - others) ** 2, axis=2))
        return (columns + mass @ tile, squares + mass @ tile**2 @ q), tile @ q

    start = (jnp.zeros_like(q), jnp.zeros((), q.dtype))
    blocks = (chunked(points, size), chunked(p, size, pad="constant"))
    (columns, squares), rows = jax.lax.scan(jax.checkpoint(add), start, blocks)  # derivatives keep no tiles
    return _Sums(p, q, rows.ravel()[: points.shape[0]], columns, squares, k(jnp.zeros((), p.dtype)))
