"""Kernel ridge regression on weighted data, its leave-one-out error, and the ridge that makes it least."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from ..._checks import finite, function, positive
from ..._data import Data
from ..._shown import shown
from ...problems.nodes import Nodes
from ..tracing import is_traced
from .cholesky import Solved, by_eigenvalues, solve
from .eigenvalues import left_out, spectrum
from .gram import Kernel, given_gram, gram_matrix, kernel_sum, tile_rows, traced_sum

_NUMBERS = (
    *("ridge", "jitter", "condition", "residual", "rounding", "risk", "freedom"),
    *("rank", "duplicates"),
)


class KernelRegressor(eqx.Module):
    """f(x) = Σ_i K(x, x_i) c_i on the rows x_i that have weight, made by `kernel_regression`.

    `fit(x)` is (k,) or (k, O) on k rows. `fit.info` says how c was computed:

    - ridge; jitter, which acts as ridge + jitter; method: "cholesky", "cholesky+jitter" or "eigenvalues";
      rank of the Gram matrix as far as it was used; duplicates, the rows x_i that occurred before;
    - condition, an estimate for S + ridge + jitter with S = √ω K √ω (of its part that was used); residual,
      the relative one of the solve; rounding, relative, of f on the data (coefficients that are large
      and cancel lose digits);
    - risk on the data, Σ_i ω_i ½|y_i − f(x_i)|²; freedom, the degrees of freedom tr S(S + ridge + jitter)⁻¹.

    Arrays are NumPy's, in float64."""

    kernel: Kernel | None
    x: np.ndarray | None
    coefficients: np.ndarray
    weights: np.ndarray
    residuals_left_out: np.ndarray
    numbers: np.ndarray  # of info: as an array, so that those of another fit do not recompile
    method: str = eqx.field(static=True)
    rows: int = eqx.field(static=True)

    @property
    def info(self) -> Data:
        """How c was computed; see the class."""
        info = dict(zip(_NUMBERS, self.numbers.tolist(), strict=True))
        return info | {"method": self.method} | {name: int(info[name]) for name in ("rank", "duplicates")}

    def __call__(self, x: ArrayLike) -> Array:
        """f(x) in tiles and in float64, then as JAX is set; of a traced x, at once and in its dtype."""
        if self.kernel is None or self.x is None:
            raise ValueError("This fit has a Gram matrix but no kernel: use fit.from_gram(K(x, x_i)).")
        if is_traced(x, self.x, self.coefficients):
            return traced_sum(self.kernel, x, self.x, self.coefficients)
        rows = finite("x", x)
        if rows.shape[1:] != self.x.shape[1:] or rows.ndim != self.x.ndim:
            raise ValueError(f"x must be rows of shape {self.x.shape[1:]}, got an array of {rows.shape}.")
        rows = rows.astype(np.float64)
        return jnp.asarray(kernel_sum(self.kernel, rows, self.x, self.coefficients, self.rows))

    def from_gram(self, gram: ArrayLike) -> Array:
        """f on k rows x from the matrix K(x, x_i) (k, m)."""
        values = finite("gram", gram)
        if values.ndim != 2 or values.shape[1] != len(self.coefficients):
            m = len(self.coefficients)
            raise ValueError(f"gram must be K(x, x_i) of shape (k, {m}), got shape {values.shape}.")
        return jnp.asarray(values.astype(np.float64) @ self.coefficients)

    def leave_one_out(self) -> tuple[np.ndarray, float]:
        """Residuals y_i − f₋ᵢ(x_i) (m,) or (m, O), with f₋ᵢ the fit without row i, and Σ_i ω_i ½|…|².

        Closed form c_i/[(K + ridge diag(1/ω))⁻¹]_ii, no refit. f₋ᵢ has the other rows' weights as they are:
        on weights that sum to 1 again it is the fit with ridge/(1 − ω_i). Where K is singular and the ridge
        is 0, its limit for ridge → 0."""
        return self.residuals_left_out, _risk(self.weights, self.residuals_left_out)

    def __repr__(self) -> str:
        info = self.info
        outputs = f" of {self.coefficients.shape[1]} outputs" if self.coefficients.ndim > 1 else ""
        return (
            f"KernelRegressor({len(self.coefficients)} rows{outputs}, ridge {info['ridge']:.3g}, jitter "
            f"{info['jitter']:.2g}, {info['method']}, condition {info['condition']:.2g}, "
            f"risk {info['risk']:.3g})"
        )


class RidgeChoice(NamedTuple):
    """`ridge` has the least of the leave-one-out `errors` (R,) at `ridges` (R,); `fit` is the fit there."""

    ridge: float
    ridges: np.ndarray
    errors: np.ndarray
    fit: KernelRegressor


def kernel_regression(
    kernel: Kernel | None,
    data: Nodes | tuple[ArrayLike | None, ...],
    *,
    ridge: float = 0.0,
    jitter: float | None = None,
    memory: float | None = None,
    gram: ArrayLike | None = None,
) -> KernelRegressor:
    """The minimiser f of Σ_i ω_i ½|y_i − f(x_i)|² + (ridge/2)‖f‖²_K; for ridge = 0 of least norm.

    (K + ridge diag(1/ω))c = y, solved as (S + ridge I)u = √ω y with S = √ω K √ω and c = √ω u. Rows of
    weight 0 are left out.

    - `kernel(x, x')`: (k, l) of k and l rows, symmetric and p.s.d.; shared by all outputs.
    - `data`: Nodes, or (x, y) or (x, y, weights) with x (m, …), y (m,) or (m, O), weights (m,) summing to 1.
    - `jitter`: added to the ridge. None: 0 if the Cholesky factor exists with a condition below 1/eps, else
      the smallest that gives one, within rounding; where digits would be lost (rows that occur twice with
      different y), eigenvalues that are rounding are cut instead. 0: never any.
    - `memory`: bytes of a tile of kernel values (default 8 MB), to be lowered for a kernel that needs much
      working space. One m × m matrix and a block of its columns are held besides, for eigenvalues three.
    - `gram`: K(x_i, x_j) (m, m), if it is known. `kernel` may then be None, and x too.

    It computes in float64, whatever the data and JAX are set to. An indefinite kernel is an error if an
    entry shows it, or the factor fails; a ridge larger than its negative eigenvalues can hide it."""
    problem = _Weighted(kernel, data, gram, memory)
    ridge = positive("kernel_regression(ridge)", ridge, zero=True)
    if jitter is not None:
        jitter = positive("kernel_regression(jitter)", jitter, zero=True)
    S, unit = problem.weighted_gram()
    solved = solve(S, problem.z, ridge, jitter=jitter, unit=unit, rows=problem.rows)
    return problem.fitted(solved, ridge)


def select_ridge(
    kernel: Kernel | None,
    x: ArrayLike,
    y: ArrayLike,
    ridges: Iterable[float],
    *,
    weights: ArrayLike | None = None,
    memory: float | None = None,
    gram: ArrayLike | None = None,
) -> RidgeChoice:
    """The ridge of least leave-one-out error (the larger one of equals), all from one eigendecomposition.

    The arguments are those of `kernel_regression`; `choice.fit` is the regressor at `choice.ridge`."""
    try:
        candidates = np.sort(np.array([positive("select_ridge(ridges)", r, zero=True) for r in ridges]))[::-1]
    except TypeError:
        raise ValueError(
            f"select_ridge(ridges) must be a list of numbers >= 0, got {shown(ridges)}."
        ) from None
    if not candidates.size:
        raise ValueError("select_ridge(ridges) must have at least one ridge, got none.")
    problem = _Weighted(kernel, (x, y) if weights is None else (x, y, weights), gram, memory)
    S, unit = problem.weighted_gram()
    spec = spectrum(S, unit, problem.rows)
    errors = np.array([0.5 * np.sum(left_out(spec, problem.z, r, problem.rows) ** 2) for r in candidates])
    best = float(candidates[np.argmin(errors)])
    fit = problem.fitted(by_eigenvalues(spec, problem.z, best, problem.rows), best)
    return RidgeChoice(best, candidates, errors, fit)


class _Weighted:
    """The data as x (m, …), y (m, O), weights (m,) > 0 in float64; z = √ω y."""

    def __init__(self, kernel: Kernel | None, data: Any, gram: ArrayLike | None, memory: float | None):
        if isinstance(data, Nodes):
            data = (data.x, data.y, data.weights)
        if not isinstance(data, tuple | list) or len(data) not in (2, 3):
            raise ValueError(
                f"The data must be wf.types.Nodes, (x, y) or (x, y, weights), got {type(data).__name__}."
            )
        if gram is None or kernel is not None:
            function("kernel", kernel)
        self.kernel, self.gram, self.rows = kernel, gram, tile_rows(memory)
        y = finite("y", data[1]).astype(np.float64)
        if y.ndim not in (1, 2) or not y.size:
            raise ValueError(f"y must have shape (m,) or (m, outputs), m >= 1, got {y.shape}.")
        weights = _weights(data[2] if len(data) == 3 else np.full(len(y), 1 / len(y)), len(y))
        self.kept = weights > 0
        self.weights, self.y, self.flat = (
            weights[self.kept],
            y[self.kept].reshape(-1, *y.shape[1:]),
            y.ndim == 1,
        )
        self.x = None if data[0] is None and kernel is None else self._rows(data[0], len(y))
        self.root = np.sqrt(self.weights)
        self.z = self.root[:, None] * self.y.reshape(len(self.y), -1)

    def _rows(self, x: ArrayLike, m: int) -> np.ndarray:
        x = finite("x", x).astype(np.float64)
        if x.shape[:1] != (m,):
            raise ValueError(f"x must have as many rows as y, {m}, got shape {x.shape}.")
        return x[self.kept]

    def weighted_gram(self) -> tuple[np.ndarray, float]:
        """S = √ω K √ω and the unit of rounding of its entries."""
        if self.gram is not None:
            S, unit = given_gram(self.gram, len(self.kept), self.rows)
            S = S if self.kept.all() else np.asfortranarray(S[np.ix_(self.kept, self.kept)])
        else:
            S, unit = gram_matrix(self.kernel, self.x, self.rows)  # type: ignore[arg-type]
        S *= self.root[:, None]
        S *= self.root
        return S, unit

    def fitted(self, solved: Solved, ridge: float) -> KernelRegressor:
        shape = self.y.shape
        loo = (solved.left_out / self.root[:, None]).reshape(shape)
        info = {
            "ridge": ridge,
            "jitter": solved.jitter,
            "condition": solved.condition,
            "residual": solved.residual,
            "rounding": solved.rounding,
            "rank": solved.rank,
            "risk": 0.5 * float(np.sum((self.z - solved.product) ** 2)),
            "freedom": solved.freedom,
            "duplicates": _duplicates(self.x),
        }
        c = (self.root[:, None] * solved.u).reshape(shape)
        numbers = np.array([float(info[name]) for name in _NUMBERS])
        return KernelRegressor(self.kernel, self.x, c, self.weights, loo, numbers, solved.method, self.rows)


def _weights(values: ArrayLike, m: int) -> np.ndarray:
    weights = finite("weights", values).astype(np.float64)
    if weights.shape != (m,):
        raise ValueError(f"weights must have shape {(m,)} as y has {m} rows, got {weights.shape}.")
    # 1e-4: m float32 weights are rounded in the seventh digit, their sum in the fifth
    if (weights < 0).any() or not abs(weights.sum() - 1) < 1e-4:
        raise ValueError(
            f"weights must be >= 0 and sum to 1; the sum is {weights.sum()}, the least {weights.min()}. "
            "Try weights / weights.sum()."
        )
    return weights


def _duplicates(x: np.ndarray | None) -> int:
    """Rows that occurred before."""
    return 0 if x is None else len(x) - len(np.unique(x.reshape(len(x), -1), axis=0))


def _risk(weights: np.ndarray, residuals: np.ndarray) -> float:
    return 0.5 * float(np.sum(weights * np.sum(residuals.reshape(len(weights), -1) ** 2, axis=1)))
