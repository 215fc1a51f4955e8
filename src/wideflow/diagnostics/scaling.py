"""Power laws: slopes with error bars."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._checks import finite


class Slope(NamedTuple):
    """log y = intercept + value · log x, with the standard error of the slope."""

    value: float
    error: float
    intercept: float

    def at(self, x: ArrayLike) -> np.ndarray:
        """The fitted power law."""
        return np.exp(self.intercept) * np.asarray(x, float) ** self.value


def fit_slope(x: ArrayLike, y: ArrayLike, errors: ArrayLike) -> Slope:
    """Weighted least squares of log y on log x, from values y > 0 with standard errors.

    The error of the slope is the larger of what the errors of y imply and what the scatter about
    the line implies, so that neither noise nor curvature goes unseen."""
    names = ("fit_slope(x)", "fit_slope(y)", "fit_slope(errors)")
    x, y, errors = (finite(name, v).astype(float) for name, v in zip(names, (x, y, errors), strict=True))
    if not (x.shape == y.shape == errors.shape and x.ndim == 1 and x.size >= 2):
        raise ValueError(f"fit_slope needs vectors of one length >= 2: {x.shape}, {y.shape}, {errors.shape}.")
    if (x <= 0).any() or (y <= 0).any() or (errors <= 0).any():
        raise ValueError("fit_slope needs x, y and errors > 0: a power law has no other values.")
    if np.ptp(np.log(x)) == 0:
        raise ValueError(
            f"fit_slope needs two different x, got {x.size} times {x[0]:g}: a point has no slope."
        )
    relative = errors / y  # the errors of log y
    least = np.min(relative)
    weights = (least / relative) ** 2  # over their largest: squares could overflow
    log_x, log_y = np.log(x), np.log(y)
    centre = np.average(log_x, weights=weights)
    spread = np.sum(weights * (log_x - centre) ** 2)
    if spread == 0:
        raise ValueError(
            "fit_slope needs errors that are not too different: beside the least, "
            f"{np.min(errors):g}, no other point has any weight."
        )
    value = np.sum(weights * (log_x - centre) * log_y) / spread
    intercept = np.average(log_y, weights=weights) - value * centre
    residual = log_y - intercept - value * log_x
    chi2 = np.sum(weights * residual**2) / max(x.size - 2, 1)
    return Slope(float(value), float(np.sqrt(max(chi2, least**2) / spread)), float(intercept))


def mean_and_error(samples: ArrayLike) -> tuple[float, float]:
    """Mean of independent samples, and its standard error."""
    values = np.asarray(samples, float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def rms_and_error(squares: ArrayLike) -> tuple[float, float]:
    """Root of the mean of independent squared gaps, and its standard error."""
    mean, error = mean_and_error(squares)
    return float(np.sqrt(mean)), float(error / (2 * np.sqrt(mean)))
