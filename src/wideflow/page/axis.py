"""The range of an axis that fits a whole motion and that a few runaways do not spoil, its ticks, and numbers
on it as 16 bits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .numbers import power_of_ten, short, ten_to

LEVELS = 2**16 - 1
_TAIL = 0.001
# All points are fitted as long as they take at most this many times the range of all but the tails (of a
# Gaussian the ratio is below 2 for any number of points that can be drawn); beyond that some run away.
_RUNAWAY = 3.0
_MARGIN = 0.04
_HUGE, _TINY = 1e100, 1e-100  # beyond them the length of a range might overflow, or vanish


@dataclass(frozen=True)
class Axis:
    """The range [low, high] with its name."""

    label: str
    low: float
    high: float

    @property
    def power(self) -> int:
        """e, where ticks are numbered in multiples of 10^e, to keep their numbers short."""
        return power_of_ten(max(abs(self.low), abs(self.high)))

    @property
    def name(self) -> str:
        """The label, with the unit of the ticks where it is not 1."""
        return f"{self.label} (in {ten_to(self.power)})" if self.power else self.label

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """Round places (1, 2 or 5 times a power of ten apart), at most `most`, as fractions of [0, 1]."""
        length = self.high - self.low
        coarse = 10.0 ** math.floor(math.log10(length / most))
        step = next(
            s for s in (coarse, 2 * coarse, 5 * coarse, 10 * coarse, 20 * coarse) if length / s < most
        )
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        digits = max(3, math.ceil(math.log10(max(abs(first), abs(last), 1)) + 1e-9) + 1)
        unit = 10.0**-self.power
        places = [k * step for k in range(first, last + 1)]
        return [((place - self.low) / length, short(place * unit, digits)) for place in places]

    def levels(self, values: np.ndarray) -> np.ndarray:
        """`values` as whole numbers 0 … 65535 along the axis; what lies outside is at its ends."""
        inside = np.clip(np.nan_to_num(values, nan=self.low), self.low, self.high)
        return np.rint((inside - self.low) / (self.high - self.low) * LEVELS).astype(np.uint16)

    def outside(self, values: np.ndarray) -> bool:
        """Whether any finite value does not lie on the axis."""
        finite = values[np.isfinite(values)]
        return bool(((finite < self.low) | (finite > self.high)).any())


def spanned(label: str, clouds: Sequence[np.ndarray]) -> Axis:
    """The axis for arrays (T, n): from the least to the largest entry of all rows, and a margin.

    Of an array in which a few points run far away from all others, the 0.1 % and the 99.9 % quantile stand
    for its ends. One with entries that are not finite has diverged, and would flatten all others before it
    did: its first row stands for it.
    """
    parts = [values if np.isfinite(values).all() else values[:1] for values in clouds]
    ends = [_ends(part[np.isfinite(part)]) for part in parts if np.isfinite(part).any()]
    low = min((e[0] for e in ends), default=-1.0)
    high = max((e[1] for e in ends), default=1.0)
    if max(abs(low), abs(high)) < _TINY:
        low = high = 0.0
    length = high - low
    # Points that do not differ (but by rounding) stand in the middle of a range of their own size.
    if length <= 1e-9 * max(abs(low), abs(high)):
        length = 2 * max(abs(low), abs(high)) or 2.0
        low, high = low - length / 2, high + length / 2
    return Axis(label, low - _MARGIN * length, high + _MARGIN * length)


def _ends(values: np.ndarray) -> tuple[float, float]:
    inner = np.clip(np.quantile(values, (_TAIL, 1 - _TAIL), method="nearest"), -_HUGE, _HUGE)
    outer = np.clip((values.min(), values.max()), -_HUGE, _HUGE)
    low, high = outer if np.ptp(outer) <= _RUNAWAY * np.ptp(inner) else inner
    return float(low), float(high)
