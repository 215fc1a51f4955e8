"""The figure of a width check."""

from typing import Any

import numpy as np

from ...figures import COLOURS, DASHES, panels
from .fit import Curve


def draw(widths: Any, curves: dict[str, Curve], verdict: str) -> Any:
    """What moves, |Δh_l| and |Δf|, beside what is there, |h_l(t)|, and kernel movement and gap."""
    changes = {name: c for name, c in curves.items() if name.startswith("Δ")}
    sizes = {name: c for name, c in curves.items() if name[0] == "h" and name.endswith("(t)")}
    rest = {name: curves[name] for name in ("kernel movement", "linearisation gap")}
    with panels(3) as (figure, axes):
        _lines(axes[0], widths, changes)
        axes[0].set(title=f"what moves: {verdict}", ylabel="rms change")
        _lines(axes[1], widths, sizes)
        axes[1].set(title="what a check of sizes sees", ylabel="rms size")
        _lines(axes[2], widths, rest)
        axes[2].set(title="kernel and linearisation", ylabel="relative")
    return figure


def _lines(axes: Any, widths: Any, curves: dict[str, Curve]) -> None:
    """Points, the fitted power law, and through the middle point the predicted one, dotted."""
    widths = np.asarray(widths, float)
    for i, (name, c) in enumerate(curves.items()):
        colour = COLOURS[i % len(COLOURS)]
        if c.slope is None:
            continue
        axes.errorbar(widths, c.values, c.errors, fmt="o", ms=4, capsize=2, color=colour)
        wanted = "" if c.predicted is None else f", predicted {c.predicted:+g}"
        label = f"{name}: {c.slope.value:+.2f} ± {c.slope.error:.2f}{wanted}"
        axes.plot(widths, c.slope.at(widths), DASHES[1], color=colour, label=label)
        if c.predicted is not None:
            middle = np.exp(np.mean(np.log(widths)))
            axes.plot(widths, c.slope.at(middle) * (widths / middle) ** c.predicted, DASHES[3], color=colour)
    axes.set(xlabel="width n", xscale="log", yscale="log")
    axes.set_xticks(widths, [f"{int(n)}" for n in widths])
    axes.minorticks_off()
    shown = np.concatenate([c.values for c in curves.values() if c.slope is not None] or [np.ones(1)])
    ticks = np.geomspace(shown.min() / 1.2, shown.max() * 1.2, 5)
    axes.set_yticks(ticks, [f"{v:.2g}" for v in ticks])
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
