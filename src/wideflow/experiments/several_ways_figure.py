"""The figure of `several_ways`: risks of all ways against time, and the densities at the end overlaid."""

from typing import Any

import numpy as np

from ..figures import COLOURS, panels

_BINS = 40
_STYLES = {  # colour, marker, size
    "grid": (COLOURS[6], "", 0),
    "characteristics": (COLOURS[3], "D", 7),
    "particles": (COLOURS[0], "o", 5),
    "JKO": (COLOURS[1], "x", 5),
    "Langevin in θ̄": (COLOURS[0], "o", 5),
    "Langevin in R^d": (COLOURS[2], "s", 7),
}
_SHOWN = {"Langevin in θ̄": r"Langevin in $\bar\theta$", "Langevin in R^d": "Langevin in R$^d$"}


def _densities(axis: Any, ways: dict[str, Any]) -> None:
    """Each coordinate's density: a line for the grid, histograms of particles, quantiles as points."""
    grid = ways["grid"].end
    names = grid.neuron.coordinates(grid.D)
    for i in range(grid.D):
        axis.plot(grid.axis(i), grid.marginal(i), color=COLOURS[6], lw=1.5, ls="--" if i else "-",
                  label=f"grid, {names[i]}")  # fmt: skip
        for name, way in ways.items():
            if way.end.has_density:
                continue
            colour, marker, size = _STYLES[name]
            theta, weights = np.asarray(way.end.theta)[:, i], np.asarray(way.end.weights)
            theta = np.abs(theta) if grid.neuron.radii(grid.D)[i] else theta
            label = None if i else _SHOWN.get(name, name)
            if np.ptp(weights) > 0:  # quantiles on the line
                order = np.argsort(theta)
                theta, weights = theta[order], weights[order]
                middle, gap = (theta[1:] + theta[:-1]) / 2, np.diff(theta)
                axis.plot(middle, (weights[1:] + weights[:-1]) / 2 / gap, marker, ms=size, color=colour,
                          label=label)  # fmt: skip
            else:
                axis.hist(
                    theta,
                    min(_BINS, round(len(theta) ** 0.5)),
                    density=True,
                    histtype="step",
                    color=colour,
                    lw=1,
                    label=label,
                )
    mass = np.asarray(grid.marginal(grid.D - 1))
    occupied = np.asarray(grid.axis(grid.D - 1))[mass > 1e-4 * mass.max()]
    left = np.asarray(grid.axis(0))[np.asarray(grid.marginal(0)) > 1e-4 * np.max(grid.marginal(0))]
    axis.set(xlabel=" or ".join(names), ylabel="density at the end",
             xlim=(min(occupied[0], left[0]), max(occupied[-1], left[-1])))  # fmt: skip
    axis.legend(fontsize=7)


def draw(ts: np.ndarray, by_problem: dict[str, Any]) -> Any:
    """`by_problem`: for each problem its ways (risks, errors, end) without and with noise."""
    with panels(3, width=4.8, height=3.6 * len(by_problem)) as (figure, _):
        figure.clear()
        axes = figure.subplots(len(by_problem), 3, squeeze=False)
        for row, (name, both) in zip(axes, by_problem.items(), strict=True):
            for j, (ways, noise) in enumerate(zip(both, ("no noise", "noise"), strict=True)):
                for way, (risks, errors, _) in ways.items():
                    colour, marker, size = _STYLES[way]
                    style = {"color": colour, "marker": marker, "ms": size, "mfc": "none", "lw": 1}
                    line = ("-", "--")[j] if way == "grid" else ""
                    label = f"{_SHOWN.get(way, way)}, {noise}"
                    row[0].errorbar(ts, risks, errors, ls=line, label=label, capsize=1.5, **style)
                _densities(row[1 + j], ways)
                row[1 + j].set_title(f"{name}, {noise}, t = {ts[-1]:g}")
            row[0].set(xlabel="time t", ylabel="risk R", yscale="log", title=name)
            row[0].legend(fontsize=7)
    return figure
