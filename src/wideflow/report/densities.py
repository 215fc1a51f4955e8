"""Figures of densities on grids: how mass lies over one or two coordinates, from the start to the end."""

from typing import TYPE_CHECKING

import numpy as np

from ..figures import panels
from ..page.numbers import short
from ..run import Run
from ..study.groups import Group
from .curves import pictured
from .drawing import Drawing, Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANELS = 4  # times that are drawn


def densities(shown: Shown) -> list[Drawing]:
    """One figure per group that moves a density, in those coordinates of clouds that it has."""
    chosen = pictured([group for group in shown.groups if group.whole and group.has("density")])
    return [_drawing(group, i, shown.cloud) for i, group in enumerate(chosen)]


def _drawing(group: Group, i: int, names: tuple[str, ...]) -> Drawing:
    run = group.shown[0]
    known = run.final.neuron.coordinates(run.final.D)
    axes = tuple(dict.fromkeys(name for name in names if name in known))
    edges = [np.asarray(run.final.edges(name), float) for name in axes]
    at = np.unique(np.linspace(0, len(run.t) - 1, _PANELS).round().astype(int))
    figure = (_curves if len(axes) == 1 else _maps)(run, edges, axes, at)
    over = " and ".join(axes)
    caption = (
        f"The density of “{group.name}” over {over} at t = {', '.join(short(run.t[k]) for k in at)}, on its "
        "own cells."
    )
    return Drawing("Neurons", f"density-{i + 1}", figure, f"Density of {group.name} over {over}.", caption)


def _curves(run: Run, edges: list[np.ndarray], names: tuple[str, ...], at: np.ndarray) -> "Figure":
    """On the line: one curve per time, darker as time goes on."""
    with panels(1, width=7.0, height=3.4) as (figure, (axes,)):
        for j, k in enumerate(at):
            height = np.asarray(run["density"][k], float) / np.diff(edges[0])
            shade = 0.75 * (1 - j / max(1, len(at) - 1))
            axes.stairs(height, edges[0], color=str(shade), lw=1.6, label=f"t = {short(run.t[k])}")
        axes.set(xlabel=names[0], ylabel="density")
        axes.legend()
    return figure


def _maps(run: Run, edges: list[np.ndarray], names: tuple[str, ...], at: np.ndarray) -> "Figure":
    """In the plane: one map per time, all with one scale of colours."""
    cell = np.outer(np.diff(edges[0]), np.diff(edges[1]))
    heights = [np.asarray(run["density"][k], float) / cell for k in at]
    most = max(float(h.max()) for h in heights)
    with panels(len(at), width=9.4 / max(2, len(at)), height=3.0) as (figure, axes):
        for one, height, k in zip(axes, heights, at, strict=True):
            one.pcolormesh(*edges, height.T, cmap="cividis", vmin=0, vmax=most, rasterized=True)
            one.set_title(f"t = {short(run.t[k])}", fontsize=9)
            one.set(xlabel=names[0], ylabel=names[1] if one is axes[0] else "")
            one.grid(False)
    return figure
