"""How figures look: one place for colours, fonts and files."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from numpy.typing import ArrayLike

Numbers = Sequence[float] | np.ndarray

# Okabe and Ito's colours, which differ for every kind of colour vision too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")

_STYLE: dict = {
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


# Inches of a figure on a phone: its breadth, the height of a panel, and of a line of a legend.
_NARROW, _PANEL, _LINE = 4.1, 3.1, 0.16
_SHORT = 20  # letters of a name that leave room for two columns there
_ABOVE = "legend-above"
# Fewer replicas than this have no quantiles worth drawing: their band is from the least to the largest.
_FEWEST = 5
_BAND = (0.1, 0.9)


@contextmanager
def panels(count: int, width: float = 4.4, height: float = 3.4) -> Iterator[tuple["Figure", list]]:
    """A figure with `count` panels side by side, off screen: (figure, list of axes)."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width * count, height))
        FigureCanvasAgg(figure)
        yield figure, list(figure.subplots(1, count, squeeze=False)[0])


def line(axes: "Axes", t: Numbers, values: ArrayLike, *, label: str = "", **style: Any) -> None:
    """An observation over time: of shape (T,) a curve; of shape (T, r), one column per replica, their median
    and a band from the 10 % to the 90 % quantile, or from the least to the largest where r < 5. The legend
    says how many there are. What is not finite is left out, replica by replica."""
    values = np.asarray(values, float)
    if values.ndim > 2 or len(values) != len(t):
        raise ValueError(f"values must have shape ({len(t)},) or ({len(t)}, replicas), got {values.shape}.")
    if values.ndim == 1:
        axes.plot(t, values, label=label, **style)
        return
    low, middle, high = band(values)
    count = values.shape[1]
    legend = f"{label}, {count} replicas" if count > 1 else label
    (drawn,) = axes.plot(t, middle, label=legend.removeprefix(", "), **style)
    if count > 1:
        axes.fill_between(t, low, high, color=drawn.get_color(), alpha=0.18, lw=0)


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(lower edge, median, upper edge) over the columns of (T, r), as `line` draws them; NaN where a row has
    no finite entry."""
    levels = (_BAND[0], 0.5, _BAND[1]) if values.shape[1] >= _FEWEST else (0.0, 0.5, 1.0)
    finite = [row[np.isfinite(row)] for row in values]
    edges = [np.quantile(row, levels) if row.size else np.full(3, np.nan) for row in finite]
    low, middle, high = np.array(edges).reshape(-1, 3).T
    return low, middle, high


def legend_above(axes: "Axes", title: str = "", columns: int = 1) -> None:
    """Title and legend above the panel, where they hide nothing."""
    if not axes.get_legend_handles_labels()[0]:
        axes.set_title(title)
        return
    legend = axes.legend(
        title=title or None,
        loc="lower left",
        bbox_to_anchor=(0, 1.01),
        borderaxespad=0,
        borderpad=0.2,
        fontsize=8,
        alignment="left",
        ncols=columns,
        title_fontsize=11,
        frameon=False,
    )
    legend.set_in_layout(True)
    legend.set_gid(_ABOVE)


def power_law(
    axes: "Axes",
    x: Numbers,
    y: Numbers,
    errors: Numbers,
    slope: Any,
    labels: tuple[str, str],
) -> None:
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


def narrow_svg(figure: "Figure") -> bytes:
    """A figure for the screen of a phone, as SVG: its panels one below the other, legends in one column
    or two. The figure itself is changed: save it at full breadth before."""
    axes = [one for one in figure.axes if one.get_subplotspec() is not None]
    legends = [one.get_legend() for one in axes]
    above = [legend for legend in legends if legend is not None and legend.get_gid() == _ABOVE]
    rows = sum(len(legend.get_texts()) for legend in above)
    figure.set_size_inches(_NARROW, _PANEL * len(axes) + _LINE * rows)
    grid = figure.add_gridspec(len(axes), 1)
    for i, one in enumerate(axes):
        one.set_subplotspec(grid[i])
        one.set_ylabel(one.get_ylabel() or axes[0].get_ylabel())
        legend = legends[i]
        if legend is not None and legend.get_gid() == _ABOVE:
            longest = max(len(text.get_text()) for text in legend.get_texts())
            legend_above(one, legend.get_title().get_text(), columns=2 if longest <= _SHORT else 1)
    return svg(figure)


def svg(figure: "Figure") -> bytes:
    """A figure as SVG, text as outlines, the same bytes for the same figure."""
    import io

    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.fonttype": "path", "svg.hashsalt": "wideflow"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
