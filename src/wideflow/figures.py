"""How figures look: one place for colours, fonts and files."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

# Okabe and Ito's colours, which differ for every kind of colour vision too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")

_STYLE: dict[Any, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


@contextmanager
def panels(count: int, width: float = 4.4, height: float = 3.4) -> Iterator[tuple[Any, Any]]:
    """A figure with `count` panels side by side, off screen: (figure, list of axes)."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width * count, height))
        FigureCanvasAgg(figure)
        yield figure, list(figure.subplots(1, count, squeeze=False)[0])


def power_law(axes: Any, x: Any, y: Any, errors: Any, slope: Any, labels: tuple[str, str]) -> None:
    """Points with error bars and a fitted power law, both axes logarithmic; the x are the ticks."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.errorbar(x, y, errors, fmt="o", ms=4, capsize=2, color=COLOURS[0], label="measured, ± 1 s.e.")
    fit = f"slope {slope.value:+.3f} ± {slope.error:.3f}"
    axes.plot(x, slope.at(x), "--", color=COLOURS[1], label=fit)
    axes.set(xlabel=labels[0], ylabel=labels[1], xscale="log", yscale="log")
    axes.xaxis.set_major_locator(FixedLocator(list(x)))
    axes.xaxis.set_minor_locator(NullLocator())
    power = lambda v, _: f"{v:g}" if v >= 1 else f"2$^{{{math.log2(v):g}}}$"
    axes.xaxis.set_major_formatter(FuncFormatter(power))
    axes.yaxis.set_major_locator(FixedLocator(list(np.geomspace(min(y), max(y), 4))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:.2g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.legend()


def save(figure: Any, path: str | Path) -> Path:
    """Write a figure to a file; the folder is made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path


def svg(figure: Any) -> bytes:
    """A figure as SVG, text as outlines, the same bytes for the same figure."""
    import io

    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "wideflow"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
