"""Figures of a study over time: risks, gaps to the limit, movement of kernel and weights, features."""

from typing import TYPE_CHECKING

import numpy as np

from .._data import Data
from ..diagnostics.smoothing import gaussian_sum
from ..figures import COLOURS, DASHES, legend_above, panels
from ..observables import axis
from ..study.groups import Group
from ..study.reference_runs import limit_for, references
from .drawing import Drawing, Shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Quantiles of a feature stand for a density by this many points of it.
_HEIGHT = 160
_MOST_PANELS = 4


def looks(groups: list[Group]) -> dict[str, Data]:
    """Colour and dash of each group, the same in all figures: limits black, others in order."""
    styles: dict[str, Data] = {}
    others = [g for g in groups if not g.case.is_limit]
    for group in groups:
        if group.case.is_limit:
            styles[group.name] = {"color": "#000000", "ls": "-", "lw": 2.2}
        else:
            i = others.index(group)
            styles[group.name] = {"color": COLOURS[i % 6], "ls": DASHES[(i // 6 + group.case.linearised) % 4]}
    return styles


def risks(shown: Shown) -> list[Drawing]:
    """All risks on one axis, with bands over seeds."""
    groups = shown.ready
    if not groups:
        return []
    with panels(1, width=8.4, height=4.4) as (figure, (axes,)):
        _lines(axes, groups, "risk")
        axes.set(xlabel="time t", ylabel=axis("risk"), yscale="log")
        _legend(axes, len(groups))
    several = any(len(g.runs) > 1 for g in groups)
    band = " Bands: ± 1 standard deviation over seeds." if several else ""
    names = ", ".join(g.name for g in groups)
    return [Drawing("Risk", "risk", figure, f"Risk against time of {names}.", f"Risk against time.{band}")]


def gaps(shown: Shown) -> list[Drawing]:
    """How far each risk is from that of the limit, over time."""
    groups = shown.ready
    limits, _ = references(groups)
    others = [g for g in groups if not g.case.is_limit and limit_for(g, limits) is not None]
    if not limits or not others:
        return []
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
        "scale than the limit's are shown for contrast."
    )
    return [Drawing("Risk", "gap-to-limit", figure, "Gap in risk to the limit against time.", caption)]


def energies(shown: Shown) -> list[Drawing]:
    """What noisy dynamics lower: the regularised risk R_λ and the free energy F, where they were recorded."""
    groups = shown.ready
    regularised = [(g, "energy") for g in groups if g.has("energy")]
    free = [(g, name) for g in groups if (name := _free_energy(g)) is not None]
    noisy = any(name != "energy" for _, name in free)
    drawn = {"energy": regularised, "free_energy": free if noisy else []}
    named = {name: curves for name, curves in drawn.items() if curves}
    if not named:
        return []
    with panels(len(named), width=4.6 if len(named) > 1 else 8.4, height=4.0) as (figure, axes):
        for one, (name, curves) in zip(axes, named.items(), strict=True):
            for group, recorded in curves:
                _lines(one, [group], recorded, looks(groups))
            one.set(xlabel="time t", ylabel=axis(name))
        legend_above(axes[0], columns=2 if len(groups) > 4 else 1)
    caption = "The regularised risk R_λ = R/α² + (λ/2)∫|θ|²dρ, with the penalties of the study."
    if noisy:
        caption += (
            " The free energy F = R_λ − S/β is what noisy dynamics lower; without noise it is R_λ. F of "
            "particles is an estimate by nearest neighbours, and infinite where they all start at one point."
        )
    return [
        Drawing("Free energy", "energy", figure, "Regularised risk and free energy against time.", caption)
    ]


def _free_energy(group: Group) -> str | None:
    """The observation that holds F: recorded, estimated, or R_λ where there is no noise."""
    names = ("free_energy", "free_energy_estimate", *(() if group.case.noisy else ("energy",)))
    return next((name for name in names if group.has(name)), None)


def movements(shown: Shown) -> list[Drawing]:
    """Movement of kernel and weights."""
    groups = shown.ready
    names = ("kernel_movement", "weight_movement")
    moving = [g for g in groups if len(g.times()) > 1]
    named = {name: [g for g in moving if g.has(name)] for name in names}
    if not any(named.values()):
        return []
    with panels(2, width=4.6, height=4.0) as (figure, axes):
        for one, name in zip(axes, names, strict=True):
            _lines(one, named[name], name, looks(groups))
            one.set(xlabel="time t", ylabel=axis(name))
        legend_above(axes[0], columns=2 if len(groups) > 4 else 1)
    caption = (
        "How far the tangent kernel and the weights have moved from their start. Lazy: both stay near 0, the "
        "less the wider the network is. Feature learning: the kernel moves by order 1."
    )
    return [
        Drawing(
            "How far it moved", "movement", figure, "Movement of kernel and weights against time.", caption
        )
    ]


def features(shown: Shown) -> list[Drawing]:
    """The distribution of one coordinate of the neurons over time, one panel per group."""
    groups, label = shown.ready, shown.feature
    chosen = pictured([g for g in groups if g.whole and g.has("feature")])
    if not chosen:
        return []
    at = _grid([np.asarray(g.shown[0]["feature"], float) for g in chosen])
    with panels(len(chosen), width=9.4 / max(2, len(chosen)), height=3.4) as (figure, axes):
        for one, group in zip(axes, chosen, strict=True):
            run = group.shown[0]
            heights = np.array([_density(row, at) for row in np.asarray(run["feature"], float)])
            top = heights.max(axis=1, keepdims=True)
            scaled = heights / np.where(top > 0, top, 1.0)  # all may have left the picture
            one.pcolormesh(
                run.t, at, scaled.T, cmap="cividis", vmin=0, vmax=1, rasterized=True, shading="auto"
            )
            one.set_title(group.name, fontsize=9)
            one.set(xlabel="time t", ylabel=label if one is axes[0] else "")
            one.grid(False)
    caption = (
        f"Distribution over the neurons of {label} over time (each time's density over its largest "
        "value; yellow is dense). In a lazy network it does not change; where features are learned it does."
    )
    return [Drawing("Neurons", "features", figure, f"Density of {label} against time.", caption)]


def _grid(features: list[np.ndarray]) -> np.ndarray:
    """Places around all values, with a margin, even where there is only one value."""
    values = np.concatenate([feature.ravel() for feature in features])
    low, high = np.quantile(values[np.isfinite(values)], [0.002, 0.998])
    length = (high - low) or 2 * abs(high) or 2.0
    middle, half = (low + high) / 2, 0.58 * length
    return np.linspace(middle - half, middle + half, _HEIGHT)


def _density(values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The density of values at places; for values that coincide it is as narrow as the spacing of the
    places."""
    apart = at[1] - at[0]
    narrow = np.ptp(values) < apart
    return gaussian_sum(values, at, width=float(apart) if narrow else None)


def pictured(groups: list[Group]) -> list[Group]:
    """The groups to draw neurons of: limits, and of each method and scale the widest; four at most."""
    widest: dict[object, Group] = {}
    for group in groups:
        case = group.case
        key = (case.method.called, case.scaling)
        if key not in widest or (case.width or 0) >= (widest[key].case.width or 0):
            widest[key] = group
    chosen = list(widest.values())
    if len(chosen) > _MOST_PANELS:  # the ends of a sweep say most
        places = np.unique(np.linspace(0, len(chosen) - 1, _MOST_PANELS).round().astype(int))
        chosen = [chosen[i] for i in places]
    return chosen


def _lines(axes: "Axes", groups: list[Group], name: str, styles: Data | None = None) -> None:
    styles = looks(groups) if styles is None else styles
    for group in groups:
        t, values = group.times(), group.values(name)
        values = np.where(np.isfinite(values), values, np.nan)  # F is infinite where neurons coincide
        style, middle = styles[group.name], values.mean(axis=0)
        axes.plot(t, middle, label=group.name, **style)
        if len(values) > 1:
            spread = values.std(axis=0, ddof=1)
            lower = np.maximum(middle - spread, middle * 1e-2) if name == "risk" else middle - spread
            axes.fill_between(t, lower, middle + spread, color=style["color"], alpha=0.18, lw=0)


def _legend(axes: "Axes", count: int) -> None:
    legend_above(axes, columns=3 if count > 4 else max(1, min(count, 2)))
