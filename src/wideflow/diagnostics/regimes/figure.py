"""The figure of a regime report."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ...figures import COLOURS, legend_above, panels
from ...verdicts import KERNEL_MOVED, SMALL
from ..formatting import name_ticks
from .movement import Movement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw(moved: Movement, verdict: str) -> "Figure":
    """Bars: movement of weights and kernel by name, of hidden layers with their CKA, and of the whole."""
    with panels(3 if moved.features else 2, height=4.2) as (figure, axes):
        bars = {"|ΔW|/|W$_0$|": list(moved.weights.values())}
        if moved.kernel is not None:
            bars["|ΔK|/|K$_0$|"] = [moved.kernel.parts[name] for name in moved.weights]
        _bars(axes[0], list(moved.weights), bars)
        axes[0].set(ylabel="relative movement")
        legend_above(axes[0], "weights and their kernels")
        if moved.features:
            hidden = list(moved.features.values())
            shown = {"|Δh|/|h$_0$|": [h.relative for h in hidden], "1 − CKA": [1 - h.cka for h in hidden]}
            _bars(axes[1], list(moved.features), shown)
            legend_above(axes[1], "hidden layers")
        _whole(axes[-1], moved)
        legend_above(axes[-1], f"verdict: {verdict}")
    return figure


def _whole(axes: "Axes", moved: Movement) -> None:
    """Kernel movement and gap beside the thresholds that decide."""
    known = moved.kernel is not None and moved.gap is not None
    whole = [moved.kernel.movement, moved.gap] if known else []  # type: ignore[union-attr]
    _bars(axes, ["kernel movement", "linearisation gap"][: len(whole)], {"whole network": whole})  # type: ignore
    low = f"lazy below {SMALL:g} (both); features: gap above {SMALL:g}"
    axes.axhline(SMALL, color=COLOURS[2], ls="--", label=low)
    high = f"kernel moved; features above {KERNEL_MOVED:g}"
    axes.axhline(KERNEL_MOVED, color=COLOURS[1], ls=":", label=high)


def _bars(axes: Any, names: list[str], groups: dict[str, list[float]]) -> None:
    """Groups of bars side by side; ∞ stands for what started at 0 and moved."""
    places, width = np.arange(len(names)), 0.8 / len(groups)
    infinite = False
    for i, (label, values) in enumerate(groups.items()):
        heights = [v if np.isfinite(v) else 0.0 for v in values]
        at = places + (i - (len(groups) - 1) / 2) * width
        axes.bar(at, heights, width, color=COLOURS[i], label=label)
        for place, v in zip(at, values, strict=True):
            infinite |= bool(np.isposinf(v))
            if not np.isfinite(v):
                mark = "∞" if np.isposinf(v) else "not\nfinite"
                size = {"fontsize": 14 if mark == "∞" else 7}
                where = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "bottom"}
                axes.text(place, 0.01, mark, color=COLOURS[i], **size, **where)
    if infinite:
        axes.plot([], [], ls="", marker=r"$\infty$", ms=9, color=COLOURS[6], label="moved from 0")
    axes.set_ylim(bottom=0)
    name_ticks(axes, places, names)
    axes.grid(axis="x", visible=False)
