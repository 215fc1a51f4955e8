"""How fast F − F* falls: fitted, and as a logarithmic Sobolev inequality guarantees it."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._checks import finite, number, positive

_FEWEST = 4  # points of a fit


class Rate(NamedTuple):
    """F − F* ≈ factor · e^{−value · t} from the time `since` on, with the standard error of the rate.
    `straight` says whether the logarithm is a line there; if not, the last points were fitted anyway."""

    value: float
    error: float
    factor: float
    since: float
    straight: bool

    def at(self, t: ArrayLike) -> np.ndarray:
        """The fitted decay."""
        return self.factor * np.exp(-self.value * np.asarray(t, float))


def decay_rate(t: ArrayLike, energy: ArrayLike, least: float, *, floor: float | None = None) -> Rate:
    """The rate of F − F* from its values `energy` at the times t, `least` = F* (such as
    `wf.gibbs(…).free_energy`): a line through log(F − F*) over the longest late stretch on which it is
    one: where the slopes of its two halves differ by less than a twentieth. Values of F − F* below `floor`
    are rounding or the error of F*; by default 1e-9 of the largest |F|."""
    t, energy = finite("decay_rate(t)", t).astype(float), finite("decay_rate(energy)", energy).astype(float)
    if t.shape != energy.shape or t.ndim != 1:
        raise ValueError(f"decay_rate needs vectors of one length, got {t.shape} and {energy.shape}.")
    excess = energy - number("decay_rate(least)", least)
    lowest = 1e-9 * np.abs(energy).max() if floor is None else positive("decay_rate(floor)", floor)
    below = np.flatnonzero(~(excess > lowest))
    end = int(below[0]) if below.size else len(t)
    if end < _FEWEST:
        raise ValueError(
            f"decay_rate needs {_FEWEST} times with F - F* > {lowest:.2g}, got {end}. Save more early times, "
            "or give a smaller floor."
        )
    t, height = t[:end], np.log(excess[:end])
    for begin in range(end - _FEWEST + 1):
        if _bend(t[begin:], height[begin:]) < 0.05:
            return _line(t[begin:], height[begin:], True)
    return _line(t[-_FEWEST:], height[-_FEWEST:], False)


def _bend(t: np.ndarray, height: np.ndarray) -> float:
    """How much the slope changes from the first half to the second, as a share of it."""
    half = len(t) // 2
    early, late = (np.polyfit(t[part], height[part], 1)[0] for part in (slice(half + 1), slice(half, None)))
    return abs(late - early) / max(abs(late), 1e-300)


def _line(t: np.ndarray, height: np.ndarray, straight: bool) -> Rate:
    """Least squares; the error is the larger of the scatter's and half the change of slope."""
    slope, level = np.polyfit(t, height, 1)
    residual = height - level - slope * t
    spread = math.sqrt(np.sum(residual**2) / (len(t) - 2) / np.sum((t - t.mean()) ** 2))
    error = max(spread, 0.5 * _bend(t, height) * abs(slope))
    return Rate(float(-slope), float(error), math.exp(level), float(t[0]), straight)


def log_sobolev_constant(beta: float, decay: float, oscillation: float = 0.0) -> float:
    """ϱ = βλ e^{−β osc Ψ} (Bakry–Émery for the quadratic, Holley–Stroock for a bounded Ψ/α, osc its
    oscillation sup − inf), with KL ≤ I/(2ϱ) for every Gibbs measure ∝ exp(−β(Ψ/α + λ|θ|²/2)). Where Ψ is
    convex, ϱ ≥ βλ however much it oscillates."""
    beta, decay = positive("beta", beta), positive("decay", decay)
    return beta * decay * math.exp(-beta * positive("oscillation", oscillation, zero=True))


def guaranteed_rate(beta: float, decay: float, oscillation: float = 0.0) -> float:
    """2ϱ/β: F(ρ_t) − F* ≤ e^{−2ϱt/β}(F(ρ_0) − F*)."""
    return 2 * log_sobolev_constant(beta, decay, oscillation) / beta
