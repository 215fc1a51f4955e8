"""W2 between measures: the one verb, which chooses the way."""

import inspect
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._checks import nearest
from .._shown import shown
from .atoms import EPS, Atoms, Measure, Pair, both, input_rounding, largest_cost
from .bures import w2_gaussian
from .distance import Distance, rooted
from .quantiles import w2_by_quantiles
from .simplex import w2_by_simplex
from .sinkhorn import w2_by_sinkhorn
from .sliced import w2_by_slices

_SIMPLEX = 4000**2  # pairs: some seconds, and a gigabyte
_SINKHORN = 50_000**2  # pairs: most of an hour


def w2(
    a: Measure, b: Measure, method: str | None = None, *, weights: Pair = (None, None), **options: object
) -> Distance:
    """W2(μ, ν) = (min_π ∫|θ − θ'|²dπ)^½ over couplings π of a and b: particles, grid densities or arrays
    (n, D); `weights` is a pair for arrays, those of a and of b. The result has `value`, `error`, `method`.

    `method`:
    - "quantiles" (D = 1): closed form; densities that are constant on cells are taken exactly.
    - "simplex": exact, stores n × m numbers; option `iterations`.
    - "sinkhorn": between two bounds, stores only tiles; `epsilon`, `debiased`, `tol`, `iterations`.
    - "sliced": another distance, SW2 ≤ W2/√D (`wf.distances.sliced_w2`); `key`, `directions`.
    - "gaussian": W2 of the Gaussians with the same means and covariances, which is at most W2 (Gelbrich).

    None takes the first of these that fits the size. In D ≥ 2 cells count as atoms at their centres and the
    bound √(Σh²/12) for each grid is in `error`.

    >>> d = wf.w2(np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]]))
    >>> float(d.value), d.method
    (1.0, 'quantiles on the line')"""
    one, two = both(a, b, weights)
    name = _chosen(one, two) if method is None else method
    if name not in _METHODS:
        allowed = ", ".join(_METHODS)
        raise ValueError(
            f"w2(method) must be one of {allowed}, got {shown(method)}.{nearest(str(name), _METHODS)}"
        )
    solve = _METHODS[name]
    known = [p.name for p in inspect.signature(solve).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            raise ValueError(
                f'w2(method="{name}") has no option {shown(option)}; it has {", ".join(known) or "none"}.'
            )
    if name == "sliced" and "key" not in options:
        raise ValueError('w2(method="sliced") draws directions: pass key=jax.random.key(0).')
    moved, mass = input_rounding(one, two)
    return solve(one, two, **options).widened(moved, mass * largest_cost(one, two))


def _chosen(one: Atoms, two: Atoms) -> str:
    if one.D == 1:
        return "quantiles"
    pairs = one.pruned().n * two.pruned().n
    if pairs > _SINKHORN:
        raise ValueError(
            f"W2 between {one.n} and {two.n} points takes hours. Take fewer, or a lower bound by "
            'method="sliced" or "gaussian"; method="sinkhorn" if you mean it.'
        )
    return "simplex" if pairs <= _SIMPLEX else "sinkhorn"


def _quantiles(one: Atoms, two: Atoms) -> Distance:
    if one.D != 1:
        raise ValueError(f'w2(method="quantiles") is for D = 1, got measures in R^{one.D}.')
    return w2_by_quantiles(one, two)


def _gaussian(one: Atoms, two: Atoms) -> Distance:
    """Bures–Wasserstein of the means and covariances; the h²/12 within cells belongs to these."""
    with jax.enable_x64(True):
        first, second = ((jnp.asarray(v.mean), jnp.asarray(_covariance(v))) for v in (one, two))
        square = float(w2_gaussian(*first, *second)) ** 2
        total = float(jnp.trace(first[1] + second[1]))
    # roots of eigenvalues near 0, known up to eps of the largest, have half the digits
    value, error = rooted(square, one.D * math.sqrt(EPS) * total)
    return Distance(value, error, "Gaussians of the same moments, at most W2", square)


def _covariance(atoms: Atoms) -> np.ndarray:
    centred = atoms.points - atoms.mean
    within = np.zeros(atoms.D) if atoms.cell is None else atoms.cell**2 / 12
    return (centred.T * atoms.weights) @ centred + np.diag(within)


_METHODS: dict[str, Callable[..., Distance]] = {
    "quantiles": _quantiles,
    "simplex": w2_by_simplex,
    "sinkhorn": w2_by_sinkhorn,
    "sliced": w2_by_slices,
    "gaussian": _gaussian,
}
