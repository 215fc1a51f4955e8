"""Figures of a study over time: risks, gaps to the limit, movement of kernel and weights, features."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..diagnostics.density import gaussian_sum
from ..diagnostics.legible import legend_above
from ..figures import COLOURS, DASHES, panels
from ..study.groups import Group
from ..study.judging import limit_for, references

# Quantiles of a feature stand for a density by this many points of it.
_HEIGHT = 160
_MOST_PANELS = 4


@dataclass(frozen=True)
class Drawing:
    """A figure for a section of the page, what it shows in words, and what to read in it."""

    section: str
    name: str
    figure: Any
    alt: str
    caption: str


def looks(groups: list[Group]) -> dict[str, dict[str, Any]]:
    """Colour and dash of each group, the same in all figures: limits black, others in order."""
    found: dict[str, dict[str, Any]] = {}
    others = [g for g in groups if not g.case.is_limit]
    for group in groups:
        if group.case.is_limit:
            found[group.name] = {"color": "#000000", "ls": "-", "lw": 2.2}
        else:
            i = others.index(group)
            found[group.name] = {"color": COLOURS[i % 6], "ls": DASHES[(i // 6 + group.case.linearised) % 4]}
    return found


def risks(groups: list[Group]) -> Drawing:
    """All risks on one axis, with bands over seeds."""
    with panels(1, width=8.4, height=4.4) as (figure, (axes,)):
        _lines(axes, groups, "risk")
        axes.set(xlabel="time t", ylabel="risk R", yscale="log")
        _legend(axes, len(groups))
    several = any(len(g.runs) > 1 for g in groups)
    band = " Bands: ± 1 standard deviation over seeds." if several else ""
    names = ", ".join(g.name for g in groups)
    return Drawing("Risk", "risk", figure, f"Risk against time of {names}.", f"Risk against time.{band}")


def gaps(groups: list[Group]) -> Drawing | None:
    """How far each risk is from that of the limit, over time."""
    limits, _ = references(groups)
    others = [g for g in groups if not g.case.is_limit and limit_for(g, limits) is not None]
    if not limits or not others:
        return None
    with panels(1, width=8.4, height=4.0) as (figure, (axes,)):
        for group in others:
            limit = limit_for(group, limits)
            assert limit is not None
            end = limit.times()[-1] * (1 + 1e-9)
            shared = np.where(group.times() <= end, group.times(), np.nan)
            reference = np.interp(shared, limit.times(), limit.values("risk")[0])
            gap = np.abs(group.values("risk") - reference).mean(axis=0)
            axes.plot(group.times(), np.maximum(gap, 1e-16), label=group.name, **looks(groups)[group.name])
        axes.set(xlabel="time t", ylabel="|R − R of the limit|", yscale="log")
        _legend(axes, len(others))
    caption = (
        "Distance of each risk to that of the infinite-width limit, mean over seeds; networks at another "
        "scale than the limit's are there for contrast."
    )
    return Drawing("Risk", "gap-to-limit", figure, "Gap in risk to the limit against time.", caption)


def movements(groups: list[Group]) -> Drawing | None:
    """Movement of kernel and weights."""
    shown = {
        "kernel movement": "‖K$_t$ − K$_0$‖/‖K$_0$‖",
        "weight movement": "root mean square of |θ$_t$ − θ$_0$|/|θ$_0$|",
    }
    moving = [g for g in groups if len(g.times()) > 1]
    named = {name: [g for g in moving if g.has(name)] for name in shown}
    if not any(named.values()):
        return None
    with panels(2, width=4.6, height=4.0) as (figure, axes):
        for one, (name, label) in zip(axes, shown.items(), strict=True):
            _lines(one, named[name], name, looks(groups))
            one.set(xlabel="time t", ylabel=label)
        legend_above(axes[0], columns=2 if len(groups) > 4 else 1)
    caption = (
        "How far the tangent kernel (left) and the weights (right) have moved from their start. Lazy: both "
        "stay near 0, the less the wider the network is. Feature learning: the kernel moves by order 1."
    )
    return Drawing(
        "How far it moved", "movement", figure, "Movement of kernel and weights against time.", caption
    )


def features(groups: list[Group], label: str) -> Drawing | None:
    """The distribution of one coordinate of the neurons over time, one panel a group."""
    chosen = pictured([g for g in groups if g.whole and g.has("feature")])
    if not chosen:
        return None
    values = np.concatenate([g.shown[0]["feature"].ravel() for g in chosen])
    low, high = np.quantile(values[np.isfinite(values)], [0.002, 0.998])
    margin = 0.08 * (high - low) + 1e-9
    at = np.linspace(low - margin, high + margin, _HEIGHT)
    with panels(len(chosen), width=9.4 / max(2, len(chosen)), height=3.4) as (figure, axes):
        for one, group in zip(axes, chosen, strict=True):
            run = group.shown[0]
            heights = np.array([gaussian_sum(row, at) for row in np.asarray(run["feature"], float)])
            top = heights.max(axis=1, keepdims=True)
            shown = heights / np.where(top > 0, top, 1.0)  # all may have left the picture
            one.pcolormesh(
                run.t, at, shown.T, cmap="cividis", vmin=0, vmax=1, rasterized=True, shading="auto"
            )
            one.set_title(group.name, fontsize=9)
            one.set(xlabel="time t", ylabel=label if one is axes[0] else "")
            one.grid(False)
    caption = (
        f"Distribution over the neurons of {label} as time goes on (each time's density over its largest "
        "value; yellow is dense). In a lazy network it does not change; where features are learned it does."
    )
    return Drawing("Neurons", "features", figure, f"Density of {label} against time.", caption)


def pictured(groups: list[Group]) -> list[Group]:
    """The groups to draw neurons of: limits, and of each method and scale the widest; four at most."""
    widest: dict[Any, Group] = {}
    for group in groups:
        case = group.case
        key = (case.method.called, case.scaling)
        if key not in widest or (case.width or 0) >= (widest[key].case.width or 0):
            widest[key] = group
    chosen = list(widest.values())
    if len(chosen) > _MOST_PANELS:  # the ends of a sweep tell most
        places = np.unique(np.linspace(0, len(chosen) - 1, _MOST_PANELS).round().astype(int))
        chosen = [chosen[i] for i in places]
    return chosen


def _lines(axes: Any, groups: list[Group], name: str, styles: Any = None) -> None:
    styles = looks(groups) if styles is None else styles
    for group in groups:
        t, values = group.times(), group.values(name)
        look, middle = styles[group.name], values.mean(axis=0)
        axes.plot(t, middle, label=group.name, **look)
        if len(values) > 1:
            spread = values.std(axis=0, ddof=1)
            lower = np.maximum(middle - spread, middle * 1e-2) if name == "risk" else middle - spread
            axes.fill_between(t, lower, middle + spread, color=look["color"], alpha=0.18, lw=0)


def _legend(axes: Any, count: int) -> None:
    legend_above(axes, columns=3 if count > 4 else max(1, min(count, 2)))


def drawings(groups: list[Group], feature: str) -> list[Drawing]:
    """All figures over time that there is data for."""
    ready = [g for g in groups if g.runs and len(g.times())]
    makers: list[Callable[[], Drawing | None]] = [
        lambda: risks(ready),
        lambda: gaps(ready),
        lambda: movements(ready),
        lambda: features(ready, feature),
    ]
    return [made for make in makers if ready and (made := make()) is not None]
