"""Power laws: slopes with error bars."""

from typing import Any, NamedTuple

import numpy as np

from .._checks import finite


class Slope(NamedTuple):
    """log y = intercept + value · log x, with the standard error of the slope."""

    value: float
    error: float
    intercept: float

    def at(self, x: Any) -> np.ndarray:
        """The fitted power law."""
        return np.exp(self.intercept) * np.asarray(x, float) ** self.value


def fit_slope(x: Any, y: Any, errors: Any) -> Slope:
    """Weighted least squares of log y on log x, from values y > 0 with standard errors.

    The error of the slope is the larger of what the errors of y imply and what the scatter about
    the line implies, so that neither noise nor curvature goes unseen."""
    x, y, errors = (finite(name, v).astype(float) for name, v in (("x", x), ("y", y), ("errors", errors)))
    if not (x.shape == y.shape == errors.shape and x.ndim == 1 and x.size >= 2):
        raise ValueError(f"fit_slope needs vectors of one length >= 2: {x.shape}, {y.shape}, {errors.shape}.")
    if (x <= 0).any() or (y <= 0).any() or (errors <= 0).any():
        raise ValueError("fit_slope needs x, y and errors > 0: a power law has no other values.")
    weights = (y / errors) ** 2  # of log y
    log_x, log_y = np.log(x), np.log(y)
    centre = np.average(log_x, weights=weights)
    spread = np.sum(weights * (log_x - centre) ** 2)
    value = np.sum(weights * (log_x - centre) * log_y) / spread
    intercept = np.average(log_y, weights=weights) - value * centre
    residual = log_y - intercept - value * log_x
    chi2 = np.sum(weights * residual**2) / max(x.size - 2, 1)
    return Slope(float(value), float(np.sqrt(max(chi2, 1.0) / spread)), float(intercept))


def mean_and_error(samples: Any) -> tuple[float, float]:
    """Mean of independent samples, and its standard error."""
    values = np.asarray(samples, float)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def rms_and_error(squares: Any) -> tuple[float, float]:
    """Root of the mean of independent squared gaps, and its standard error."""
    mean, error = mean_and_error(squares)
    return float(np.sqrt(mean)), float(error / (2 * np.sqrt(mean)))
