"""The figure of a width check."""

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...figures import COLOURS, DASHES, legend_above, panels
from ..formatting import log_ticks
from .fit import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "os^Dv"


def draw(widths: ArrayLike, curves: dict[str, Curve], verdict: str) -> "Figure":
    """What moves, |Δh_l| and |Δf|, beside what is there, |h_l(t)| (where layers are known), and kernel
    movement and gap."""
    changes = {name: c for name, c in curves.items() if name.startswith("Δ")}
    sizes = {name: c for name, c in curves.items() if name[0] == "h" and name.endswith("(t)")}
    rest = {name: curves[name] for name in ("kernel movement", "linearisation gap")}
    shown = [(changes, f"what moves: {verdict}", "rms change")]
    shown += [(sizes, "what a check of sizes would see", "rms size")] if sizes else []
    shown += [(rest, "kernel and linearisation", "relative")]
    entries = max(len(one) for one, _, _ in shown) + 2
    with panels(len(shown), height=3.3 + 0.19 * entries) as (figure, axes):
        for one, (lines, title, label) in zip(axes, shown, strict=True):
            _lines(one, widths, lines)
            one.set_ylabel(label)
            legend_above(one, title)
    return figure


def _lines(axes: "Axes", widths: ArrayLike, curves: dict[str, Curve]) -> None:
    """Points, the fitted power law, and through the middle point the predicted one, dotted."""
    from matplotlib.ticker import FixedLocator, NullLocator

    widths = np.asarray(widths, float)
    fitted = {name: c for name, c in curves.items() if c.slope is not None}
    axes.set(xlabel="width n", xscale="log", yscale="log")
    for i, (name, c) in enumerate(fitted.items()):
        assert c.slope is not None
        colour, marker = _look(name, i)
        prediction = "" if c.predicted is None else f", predicted {c.predicted:+g}"
        label = f"{name}: n$^{{{c.slope.value:+.2f}}}$ ± {c.slope.error:.2f}{prediction}"
        axes.errorbar(widths, c.values, c.errors, fmt=marker, ms=4, capsize=2, color=colour, label=label)
        axes.plot(widths, c.slope.at(widths), DASHES[1], color=colour)
        if c.predicted is not None:
            middle = np.exp(np.mean(np.log(widths)))
            axes.plot(widths, c.slope.at(middle) * (widths / middle) ** c.predicted, DASHES[3], color=colour)
    if fitted:
        axes.plot([], [], DASHES[1], color="0.4", label="dashed: fitted power of n")
    if any(c.predicted is not None for c in fitted.values()):
        axes.plot([], [], DASHES[3], color="0.4", label="dotted: predicted power of n")
    axes.xaxis.set_major_locator(FixedLocator(list(widths)))
    axes.xaxis.set_major_formatter(lambda n, _: f"{n:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    log_ticks(axes.yaxis, np.concatenate([np.ones(0), *(c.values for c in fitted.values())]))


def _look(name: str, i: int) -> tuple[str, str]:
    """A layer has one colour and marker in every panel, f is black."""
    layer = re.search(r"h(\d+)", name)
    if name == "Δf":
        return COLOURS[6], "o"
    at = int(layer[1]) - 1 if layer else i
    return COLOURS[at % 6], _MARKERS[at // 6 % len(_MARKERS)]
