"""Colours from blue over grey to orange: the sign is visible with every kind of colour vision, zero is
grey."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..figures import COLOURS

ABSENT = 255  # the level of a point that is not drawn
_ZERO = 127  # levels 0 … 254, so that 0 has one of its own
_GREY = "#9C9C9C"
_SEEN = 0.99


@dataclass(frozen=True)
class Scale:
    """The colours of [−limit, limit], centred at 0."""

    label: str
    limit: float

    def levels(self, values: np.ndarray) -> np.ndarray:
        """`values` as whole numbers 0 … 254, 0 as 127; what is larger than the limit has its colour."""
        share = np.clip(np.nan_to_num(values), -self.limit, self.limit) / self.limit
        return (np.rint(share * _ZERO) + _ZERO).astype(np.uint8)


def centred(label: str, clouds: Sequence[np.ndarray]) -> Scale:
    """The scale that 99 % of the absolute values of the arrays (T, n) lie in; diverged ones as in `axis`."""
    parts = [values if np.isfinite(values).all() else values[:1] for values in clouds]
    sizes = [np.abs(part[np.isfinite(part)]) for part in parts if np.isfinite(part).any()]
    limit = max((float(np.quantile(size, _SEEN, method="nearest")) for size in sizes), default=0.0)
    return Scale(label, min(limit, 1e100) if limit > 1e-100 else 1.0)


def colours(count: int = ABSENT) -> list[str]:
    """`count` colours from the most negative to the most positive, as #rrggbb."""
    knots = np.array([_parsed(c) for c in (COLOURS[0], _GREY, COLOURS[1])], float)
    at = np.linspace(0, 2, count)
    mixed = [np.interp(at, [0, 1, 2], knots[:, channel]) for channel in range(3)]
    return ["#{:02x}{:02x}{:02x}".format(*map(round, colour)) for colour in zip(*mixed, strict=True)]


def _parsed(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
