"""How many terms of a series, or nodes between kinks, the dual of an activation needs at given variances."""

import math
from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._shown import shown
from ...problems.activations import Activation, derivative
from ...problems.dual_quadrature import gauss_mean, quadrature_dual
from .broken_lines import Broken, broken_line
from .duals import Cut, Dual, Series
from .hermite import coefficients, squares

TOLERANCE = 1e-11  # of E φ² and E φ'²
_TERMS = (32, 64, 128, 256, 512, 1024)
_NODES = (24, 32, 64, 128)
_LINEAR = 32  # nodes per piece, which give 13 digits where φ is linear
_LOOKED_AT = 16  # variances, from the least to the largest


def resolved(dual: Dual, q: np.ndarray) -> Dual:
    """The dual with as many terms, or nodes, as variances q require; an error where E φ(√q z)² or E φ'(√q z)²
    is not finite, or where no number of them is enough.

    A smooth φ that is steep on the scale of √q has no short series: it is tried with a cut at 0. A φ that is
    linear between its kinks needs neither."""
    if not isinstance(dual, Series | Cut):
        return dual
    phi = dual.phi
    q = np.unique(np.quantile(q, np.linspace(0, 1, _LOOKED_AT)))
    means = {f: _finite(phi, f, q) for f in (phi, derivative(phi))}
    if isinstance(dual, Series) and (terms := _terms(means, q)):
        return replace(dual, order=terms)
    if isinstance(dual, Cut) and (line := broken_line(phi)) and _is(line, q):
        return line
    cut, missed = Cut(replace(phi, kinks=phi.kinks or (0.0,))), math.inf
    for order in _NODES:
        missed = _missed(cut.phi, means[derivative(phi)], q, order)
        if missed <= TOLERANCE:
            return replace(cut, order=order)
    series = f"{_TERMS[-1]} terms of its series are not enough, and " if isinstance(dual, Series) else ""
    raise ValueError(
        f"The dual of {phi.name} at variances up to {q.max():.4g} is not known to {TOLERANCE:g}: {series}"
        f"{_NODES[-1]} nodes per piece, cut at {cut.phi.kinks}, miss {missed:.2g} of it. If it has other "
        f"kinks, state them: Activation({shown(phi.name)}, fn, kinks=(…)). Or take a smaller gain."
    )


def finest(duals: list[Dual]) -> Dual:
    """The one that is accurate for all the variances that these were chosen for."""
    return max(duals, key=lambda dual: (isinstance(dual, Cut), getattr(dual, "order", 0)))


def _finite(phi: Activation, f: Activation, q: np.ndarray) -> np.ndarray:
    """E f(√q z)², f being φ or φ'."""
    values, ends = (np.asarray(v) for v in squares(f, jnp.asarray(q)))
    bad = ~np.isfinite(values) | ~(ends <= TOLERANCE * values)
    if bad.any():
        name = "φ" if f is phi else "φ'"
        raise ValueError(
            f"{phi.name} has no dual here: E {name}(h)² is infinite, or nearly so, for "
            f"h ~ N(0, {q[np.argmax(bad)]:.4g}). Take an activation that grows more slowly, a smaller gain, "
            "or smaller x."
        )
    return values


def _terms(means: dict[Activation, np.ndarray], q: np.ndarray) -> int | None:
    """The least number of terms whose tail Σ_{k ≥ order} c_k², the error at correlation ±1, where it is
    largest, is below the tolerance; None if there is none."""
    missed = np.zeros(_TERMS[-1])
    for phi, mean in means.items():
        c = np.asarray(coefficients(phi, jnp.sqrt(jnp.asarray(q)), _TERMS[-1]))
        tail = (mean - np.cumsum(c**2, axis=0)) / np.where(mean > 0, mean, 1.0)
        missed = np.maximum(missed, tail.max(axis=1))
    return next((order for order in _TERMS if missed[order - 1] <= TOLERANCE), None)


def _is(line: Broken, q: np.ndarray) -> bool:
    """Whether φ is this line: its E φ² and E φ'² are those of φ itself, by a rule cut at the kinks."""
    at = jnp.asarray(q)
    pairs = zip(_own_squares(line, at), (line.phi, derivative(line.phi)), strict=True)
    means = [(np.asarray(own), np.asarray(gauss_mean(_squared(f), 0.0, at, _LINEAR))) for own, f in pairs]
    return all(bool(np.all(np.abs(own - mean) <= TOLERANCE * mean)) for own, mean in means)


@partial(jax.jit, static_argnums=0)
def _own_squares(line: Broken, q: Array) -> tuple[Array, Array]:
    table = line.table(q)
    return line.pair(table, table, q, jnp.ones(q.shape, bool))


@cache
def _squared(phi: Activation) -> Activation:
    return Activation(f"{phi.name}²", lambda h: phi(h) ** 2, kinks=phi.kinks)


def _missed(phi: Activation, mean: np.ndarray, q: np.ndarray, order: int) -> float:
    """How much half as many more nodes change E φ'φ', φ' being less smooth than φ, relative to E φ'²."""
    slope, rho = derivative(phi), np.array([[1.0], [0.7], [-0.9]])
    coarse, fine = (
        np.asarray(quadrature_dual(slope, slope, q, q, rho * q, k)) for k in (order, order * 3 // 2)
    )
    return float(np.max(np.abs(fine - coarse) / np.where(mean > 0, mean, 1.0)))
