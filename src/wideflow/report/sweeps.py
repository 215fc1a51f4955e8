"""Figures of a study against width and scale."""

import numpy as np

from ..diagnostics.scaling import fit_slope
from ..figures import COLOURS, panels, power_law
from ..study.groups import Estimate, Group
from ..study.reference_runs import limit_for, references
from .drawing import Drawing, Shown

_FEWEST = 3  # points that make a sweep


def widths(shown: Shown) -> list[Drawing]:
    """Gap of f to the limit against n, where one method has three widths or more."""
    groups = shown.groups
    limits, _ = references(groups)
    families: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        if not group.case.is_limit and not group.case.linearised:
            families.setdefault((group.case.method.called, group.case.scaling), []).append(group)
    for members in families.values():
        if len(members) < _FEWEST or not limits:
            continue
        limit = limit_for(members[0], limits)
        assert limit is not None
        gaps = [(g.case.width, g.function_gap(limit)) for g in members]
        rows = [(n, e.value, e.error) for n, e in gaps if e is not None and e.error and e.value > 0]
        if len(rows) < _FEWEST or not np.isclose(limit.case.alpha, members[0].case.alpha):
            continue
        n, gap, error = (np.array(column, float) for column in zip(*rows, strict=True))
        pooled = gap * np.sqrt(
            np.mean((error / gap) ** 2)
        )  # a few seeds estimate their own spread too poorly
        slope = fit_slope(n, gap, pooled)
        with panels(1, width=6.0, height=3.8) as (figure, (axes,)):
            power_law(axes, n, gap, pooled, slope, ("width n (log)", "rms of f − f of the limit (log)"))
        caption = (
            f"Distance at the end between the functions of “{members[0].case.method.called}” and of "
            f"the limit, against the width: a power law n^({slope.value:.2f} ± {slope.error:.2f}), errors "
            "pooled. Chance alone gives −½; with steps of finite size a part remains that no width "
            "removes."
        )
        return [Drawing("Risk", "widths", figure, "Gap to the limit against width, logarithmic.", caption)]
    return []


def scales(shown: Shown) -> list[Drawing]:
    """Movement of the kernel and risk at the end against α, where one method has three scales or more."""
    groups = shown.groups
    families: dict[tuple[str, int | None], list[Group]] = {}
    for group in groups:
        if not group.case.is_limit and not group.case.linearised and group.case.parametrisation is None:
            families.setdefault((group.case.method.called, group.case.width), []).append(group)
    members = max(families.values(), key=len, default=[])
    rows = [(g.case.alpha, g.end("kernel movement"), g.end("risk")) for g in members]
    rows = [row for row in rows if row[1] is not None and row[2] is not None]
    if len(rows) < _FEWEST:
        return []
    alpha = [row[0] for row in rows]
    with panels(2, width=4.6, height=3.6) as (figure, axes):
        for i, (axis, label) in enumerate(
            zip(axes, ("kernel movement at the end", "risk at the end"), strict=True)
        ):
            column = [row[1 + i] for row in rows]
            values = [e.value for e in column if isinstance(e, Estimate)]
            errors = [e.error or 0.0 for e in column if isinstance(e, Estimate)]
            axis.errorbar(alpha, values, errors, fmt="o-", ms=4, capsize=2, color=COLOURS[i])
            axis.set(xlabel="scale α", ylabel=label, xscale="log", yscale="log")
    caption = "Kernel movement and risk at the end against the scale α. Bars: ± 1 standard error over seeds."
    return [
        Drawing("How far it moved", "scales", figure, "Kernel movement and risk against the scale.", caption)
    ]
