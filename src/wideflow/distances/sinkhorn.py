"""W2 of large clouds by entropic transport, between a lower and an upper bound."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from .._checks import count, positive
from .._tracing import jit
from ..states.chunks import chunk_rows, chunked, map_rows
from .atoms import EPS, Atoms, centred, rounding
from .distance import Distance
from .simplex import cells_note

_RELATIVE = 0.005  # ε in units of E|x − y|² under the independent coupling
_RELAXED = 1.8  # the factor of overrelaxation
_NEAR = 0.5  # the error of the marginal, in mass, from which it is used


def w2_by_sinkhorn(
    one: Atoms,
    two: Atoms,
    *,
    epsilon: float | None = None,
    debiased: bool = False,
    tol: float = 1e-3,
    iterations: int = 1000,
) -> Distance:
    """W2 from the potentials of entropic transport at ε = `epsilon` (in units of θ²; by default 0.005 of the
    mean cost of the independent coupling, once the means are taken out), without storing anything of size n ×
    m.

    Sinkhorn's iteration ends when the plan's first marginal is right up to mass `tol`, or after `iterations`.
    Either way the entropic plan, rounded to a coupling, bounds W2² from above, and the potentials, made
    feasible by two c-transforms, from below: `value` is in the middle and `error` half the width. With
    `debiased` the value is that of OT_ε(μ, ν) − ½OT_ε(μ, μ) − ½OT_ε(ν, ν) if it is between the bounds, else
    the nearer one."""
    tol, iterations = positive("tol", tol), count("iterations", iterations)
    one, two = one.pruned(), two.pruned()
    x, y, apart = centred(one, two)
    scale = x.variance + y.variance
    least = 1e4 * EPS * scale  # below that exponents have no digits left
    epsilon = _RELATIVE * scale if epsilon is None else positive("epsilon", epsilon)
    if scale == 0:
        return Distance(math.sqrt(apart), one.spread + two.spread, "two points", apart)
    if epsilon < least:
        raise ValueError(f"epsilon must be at least {least:.3g} for such measures, got {epsilon:.3g}.")
    with jax.enable_x64(True):
        mu, nu = (_Cloud(jnp.asarray(v.points), jnp.asarray(v.weights)) for v in (x, y))
        potentials = _potentials(mu, nu, jnp.asarray(epsilon), jnp.asarray(tol), jnp.asarray(iterations))
        lower, upper = (float(v) for v in _bracket(mu, nu, potentials))
        blurred = _debiased(mu, nu, potentials, jnp.asarray(iterations)) if debiased else math.nan
    slack = rounding(x, y) + 4 * EPS * apart
    low, high = (math.sqrt(max(apart + v, 0.0)) for v in (lower - slack, upper + slack))
    value = min(max(math.sqrt(max(apart + blurred, 0.0)), low), high) if debiased else (low + high) / 2
    error = max(value - low, high - value) + one.spread + two.spread
    ended = "" if float(potentials.gap) <= tol else f", stopped after {iterations} iterations"
    method = f"Sinkhorn{', debiased' if debiased else ''}, epsilon = {float(potentials.epsilon):.3g}{ended}"
    return Distance(value, error, method + cells_note(one, two), value**2)


def _debiased(mu: "_Cloud", nu: "_Cloud", potentials: "_Potentials", most: Array) -> float:
    """OT_ε(μ, ν) − ½OT_ε(μ, μ) − ½OT_ε(ν, ν), which is 0 for μ = ν."""
    alone = [_potentials(v, v, potentials.epsilon, potentials.tol, most).value(v, v) for v in (mu, nu)]
    return float(potentials.value(mu, nu) - (alone[0] + alone[1]) / 2)


class _Cloud(NamedTuple):
    points: Float[Array, "n D"]
    weights: Float[Array, " n"]

    def moment(self) -> Float[Array, ""]:
        return self.weights @ jnp.sum(self.points**2, axis=1)


class _Potentials(NamedTuple):
    """Both potentials less |x|² and |y|²: the plan is p_i q_j exp((f_i + g_j + 2⟨x_i, y_j⟩)/ε)."""

    f: Float[Array, " n"]
    g: Float[Array, " m"]
    epsilon: Float[Array, ""]
    gap: Float[Array, ""]
    tol: Float[Array, ""]
    steps: Array

    def value(self, mu: _Cloud, nu: _Cloud) -> Float[Array, ""]:
        """OT_ε = ∫f dμ + ∫g dν, the plan having mass 1."""
        return mu.weights @ self.f + nu.weights @ self.g + mu.moment() + nu.moment()


def _rows(x: Array, y: Array) -> int:
    return chunk_rows(x.shape[0], y.shape[0], x.shape[1], x.dtype)


def _soft(x: Array, nu: _Cloud, g: Array, epsilon: Array) -> Float[Array, " n"]:
    """−ε log Σ_j q_j exp((g_j + 2⟨x_i, y_j⟩)/ε)."""
    tilt = jnp.log(nu.weights) + g / epsilon
    along = 2 / epsilon * nu.points.T
    return map_rows(lambda rows: -epsilon * logsumexp(rows @ along + tilt, axis=1), x, _rows(x, nu.points))


def _hard(x: Array, nu: _Cloud, g: Array) -> Float[Array, " n"]:
    """min_j (−2⟨x_i, y_j⟩ − g_j): the c-transform, ε = 0."""
    return map_rows(lambda rows: jnp.min(-2 * rows @ nu.points.T - g, axis=1), x, _rows(x, nu.points))


@jit
def _potentials(mu: _Cloud, nu: _Cloud, epsilon: Array, tol: Array, most: Array) -> _Potentials:
    """Alternate f and g, from a large ε halved at every step to the requested one, and there go
    further by _RELAXED than each half step would (overrelaxation, safe near the end only), which took a
    quarter of the steps where it was measured. The last two half steps are plain: the second marginal is then
    exact."""

    def unfinished(carry: _Potentials) -> Array:
        return (carry.steps < most) & ((carry.epsilon > epsilon) | (carry.gap > tol))

    def step(carry: _Potentials) -> _Potentials:
        eps = jnp.maximum(carry.epsilon / 2, epsilon)
        target = _soft(mu.points, nu, carry.g, eps)
        # the old plan's first marginal is p exp((f_old − f)/ε), once ε stays
        gap = jnp.sum(mu.weights * jnp.abs(jnp.expm1((carry.f - target) / eps)))
        gap = jnp.where(carry.epsilon == eps, gap, jnp.inf)
        further = jnp.where(gap < _NEAR, _RELAXED, 1.0)
        f = carry.f + further * (target - carry.f)
        g = carry.g + further * (_soft(nu.points, mu, f, eps) - carry.g)
        return _Potentials(f, g, eps, gap, tol, carry.steps + 1)

    start = _Potentials(
        f=-jnp.sum(mu.points**2, axis=1),
        g=-jnp.sum(nu.points**2, axis=1),
        epsilon=jnp.maximum(epsilon, 4 * (mu.moment() + nu.moment())),
        gap=jnp.full_like(tol, jnp.inf),
        tol=tol,
        steps=jnp.zeros_like(most),
    )
    ended = jax.lax.while_loop(unfinished, step, start)
    f = _soft(mu.points, nu, ended.g, ended.epsilon)
    return ended._replace(f=f, g=_soft(nu.points, mu, f, ended.epsilon))


@jit
def _bracket(mu: _Cloud, nu: _Cloud, potentials: _Potentials) -> tuple[Array, Array]:
    """Bounds of W2² from below and above."""
    moments = mu.moment() + nu.moment()
    g = _hard(nu.points, mu, potentials.f)
    f = _hard(mu.points, nu, g)
    lower = mu.weights @ f + nu.weights @ g + moments
    upper = moments - 2 * _rounded_correlation(mu, nu, potentials)
    return lower, upper


def _rounded_correlation(mu: _Cloud, nu: _Cloud, potentials: _Potentials) -> Float[Array, ""]:
    """Σπ_ij⟨x_i, y_j⟩ of the entropic plan made a coupling: rows with too much mass are scaled down, and the
    mass that then is missing in rows and columns is paired independently (Altschuler, Weed and Rigollet)."""
    rows = _rows(mu.points, nu.points)
    tilt = jnp.log(nu.weights) + potentials.g / potentials.epsilon
    blocks = (
        chunked(mu.points, rows),
        chunked(mu.weights, rows, pad="constant"),
        chunked(potentials.f, rows),
    )

    def add(carry: tuple[Array, Array, Array], block: tuple[Array, Array, Array]) -> tuple[tuple, Array]:
        columns, correlation, missing = carry
        x, p, f = block
        plan = p[:, None] * jnp.exp((f[:, None] + 2 * x @ nu.points.T) / potentials.epsilon + tilt)
        mass = plan.sum(axis=1)
        kept = jnp.where(mass > p, p / jnp.where(mass > 0, mass, 1.0), 1.0)
        less = p - kept * mass
        correlation = correlation + jnp.sum(kept[:, None] * x * (plan @ nu.points))
        return (columns + kept @ plan, correlation, missing + less @ x), less.sum()

    start = (jnp.zeros_like(nu.weights), jnp.zeros((), tilt.dtype), jnp.zeros_like(mu.points[0]))
    (columns, correlation, missing), less = jax.lax.scan(add, start, blocks)
    left = jnp.maximum(nu.weights - columns, 0.0)
    total = less.sum()
    return correlation + missing @ (left @ nu.points) / jnp.where(total > 0, total, 1.0)
