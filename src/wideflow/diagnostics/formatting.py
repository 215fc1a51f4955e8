"""Figures that can be read: ticks as plain numbers, names that do not overlap."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_NICE = (1, 2, 5, 10)
_LINE = 44  # characters that fit below one panel
_LONGEST = 32  # characters of a name that is turned


def log_ticks(axis: "Axis", values: ArrayLike) -> None:
    """Ticks 1, 2, 5, 10, … of a logarithmic axis as plain numbers; powers of ten over more than three
    decades, and even steps where fewer than three of these are in sight."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

    shown = np.asarray(values, float)
    shown = shown[np.isfinite(shown) & (shown > 0)]
    if shown.size == 0:
        return
    low, high = shown.min(), shown.max()
    axis.set_minor_locator(NullLocator())
    if high > 1e3 * low:
        axis.set_major_locator(LogLocator(numticks=7))
        return
    decades = 10.0 ** np.arange(np.floor(np.log10(low)) - 1, np.ceil(np.log10(high)) + 1)
    ticks = np.outer(decades, _NICE[:3]).ravel()
    if np.sum((ticks >= low) & (ticks <= high)) < 3:
        ticks = np.asarray(MaxNLocator(5, steps=_NICE).tick_values(low, high))
    axis.set_major_locator(FixedLocator(list(ticks[ticks > 0])))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.6g}"))


def name_ticks(axes: "Axes", places: ArrayLike, names: list[str]) -> None:
    """Names below bars: turned where they would overlap, and long ones without their beginning."""
    turned = max(map(len, names), default=0) * len(names) > _LINE
    short = [f"…{name[-_LONGEST:]}" if turned and len(name) > _LONGEST + 1 else name for name in names]
    if len(set(short)) < len(set(names)):  # the beginning may be all that tells two apart
        short = names
    axes.set_xticks(places, short, rotation=40 if turned else 0, ha="right" if turned else "center")
    if turned:
        axes.tick_params(axis="x", labelsize=8)
        for label in axes.get_xticklabels():
            label.set_rotation_mode("anchor")
