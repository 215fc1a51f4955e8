"""Several studies on one page."""

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from .._data import Data
from ..figures import COLOURS, DASHES, legend_above, narrow_svg, panels, svg
from ..page.document import Section, document
from ..page.numbers import estimate
from ..page.parts import join, paragraph, picture, table
from ..study.groups import Group, grouped
from ..study.study import Finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 12  # curves that one figure can hold


def side_by_side(studies: list[Finished]) -> list[Data]:
    """End results of all studies, one row per group."""
    kept = (
        "name",
        "scaling",
        "width",
        "seeds",
        "status",
        "risk",
        "kernel movement",
        "weight movement",
        "verdict",
    )
    return [
        {"study": str(done.folder.path)} | {key: group[key] for key in kept}
        for done in studies
        for group in done.results["groups"]
    ]


def page(studies: list[Finished]) -> str:
    """The comparison as a whole HTML file."""
    rows = [
        [
            row["study"],
            row["name"],
            row["scaling"],
            "∞" if row["width"] is None else str(row["width"]),
            row["status"],
            *[estimate(row[key]) for key in ("risk", "kernel movement", "weight movement")],
            row["verdict"] or "–",
        ]
        for row in side_by_side(studies)
    ]
    head = [
        "study",
        "run",
        "scale",
        "n",
        "status",
        "risk at the end",
        "kernel moved",
        "weights moved",
        "verdict",
    ]
    verdicts = [paragraph(f"**{done.folder.path}**: {done.results['verdict']}") for done in studies]
    figure = _figure(studies)
    wide, caption = svg(figure), "Risk against time, mean over seeds."
    curves = picture(wide, "Risk against time of all runs.", caption, narrow_svg(figure))
    sections = [
        Section("Verdicts", join(*verdicts)),
        Section("Risk", curves),
        Section("Results", table(head, rows, "Means over seeds ± one standard error.")),
        Section("What differs", _differences(studies)),
    ]
    return document(f"{len(studies)} studies side by side", [s for s in sections if s.body])


def _figure(studies: list[Finished]) -> "Figure":
    curves: list[tuple[str, Group]] = []
    for done in studies:
        curves += [
            (f"{done.folder.path.name}: {g.name}", g) for g in grouped(done.study.cases, done.runs) if g.runs
        ]
    with panels(1, width=8.6, height=4.8) as (figure, (axes,)):
        for i, (name, group) in enumerate(curves[:_MOST]):
            style = {"color": COLOURS[i % len(COLOURS)], "ls": DASHES[(i // len(COLOURS)) % len(DASHES)]}
            axes.plot(group.times(), np.mean(group.values("risk"), axis=0), label=name, **style)
        axes.set(xlabel="time t", ylabel="risk R", yscale="log")
        legend_above(axes, columns=2)
    return figure


def _differences(studies: list[Finished]) -> Markup:
    """The fields of the specs that are not the same in all."""
    flat = [_flat(done.study.spec.model_dump(mode="python", exclude_none=True)) for done in studies]
    keys = list(dict.fromkeys(key for one in flat for key in one))
    differing = [key for key in keys if len({repr(one.get(key)) for one in flat}) > 1]
    if not differing:
        return paragraph("The specs are the same.") if len(studies) > 1 else Markup("")
    rows = [[key, *[str(one.get(key, "–")) for one in flat]] for key in differing if key != "about"]
    return table(["field", *[str(done.folder.path) for done in studies]], rows)


def _flat(value: object, path: str = "") -> Data:
    inside = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if inside is None or not value:
        return {path: value}
    flat: Data = {}
    for key, inner in inside:
        flat |= _flat(inner, f"{path}.{key}" if path else str(key))
    return flat
