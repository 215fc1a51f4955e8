"""The figure of a regime report."""

from typing import Any

import numpy as np

from ...figures import COLOURS, panels
from .movement import Movement
from .verdicts import KERNEL_MOVED, SMALL


def draw(moved: Movement, verdict: str) -> Any:
    """Bars: movement of weights and kernel by name, of hidden layers with their CKA, and of the whole."""
    with panels(3 if moved.features else 2) as (figure, axes):
        bars = {"|ΔW|/|W$_0$|": list(moved.weights.values())}
        if moved.kernel is not None:
            bars["|ΔK|/|K$_0$|"] = [moved.kernel.parts[name] for name in moved.weights]
        _bars(axes[0], list(moved.weights), bars)
        axes[0].set(ylabel="relative movement", title="weights and their kernels")
        if moved.features:
            hidden = list(moved.features.values())
            shown = {"|Δh|/|h$_0$|": [h.relative for h in hidden], "1 − CKA": [1 - h.cka for h in hidden]}
            _bars(axes[1], list(moved.features), shown)
            axes[1].set(title="hidden layers")
        whole = [] if moved.kernel is None or moved.gap is None else [moved.kernel.movement, moved.gap]
        _bars(axes[-1], ["kernel", "linearisation\ngap"][: len(whole)], {"whole network": whole})
        axes[-1].axhline(SMALL, color=COLOURS[2], ls="--", label=f"lazy below {SMALL:g}")
        axes[-1].axhline(KERNEL_MOVED, color=COLOURS[1], ls=":", label=f"kernel moved, {KERNEL_MOVED:g}")
        axes[-1].set(title=f"verdict: {verdict}")
        for one in axes:
            one.legend()
    return figure


def _bars(axes: Any, names: list[str], groups: dict[str, list[float]]) -> None:
    """Groups of bars side by side; what is not finite has none."""
    places, width = np.arange(len(names)), 0.8 / len(groups)
    for i, (label, values) in enumerate(groups.items()):
        heights = [v if np.isfinite(v) else 0.0 for v in values]
        axes.bar(places + (i - (len(groups) - 1) / 2) * width, heights, width, color=COLOURS[i], label=label)
    many = len(names) > 6
    axes.set_xticks(places, names, rotation=60 if many else 0, ha="right" if many else "center")
    axes.grid(axis="x", visible=False)
