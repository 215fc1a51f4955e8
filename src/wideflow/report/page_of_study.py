"""The report of a study: one page that holds everything."""

from typing import Any

import numpy as np

from ..figures import save, svg
from ..page.document import Section, document
from ..page.numbers import estimate, short
from ..page.parts import bullets, code, equation, fold, join, paragraph, picture, table, verdict
from ..page.player import Cloud, player
from ..references import REFERENCES
from ..spec.writing import written
from ..store.folder import write_text
from ..study.groups import Group, grouped
from ..study.study import Finished
from . import words
from .curves import Drawing, drawings, pictured
from .sweeps import scales, widths

_ENDS = {
    "risk at the end": "risk",
    "kernel moved": "kernel movement",
    "weights moved": "weight movement",
}
_GAPS = {
    "risk, to the limit": "risk gap to limit",
    "f, to the limit": "function gap to limit",
    "risk, to the frozen kernel": "risk gap to frozen kernel",
    "f, to the frozen kernel": "function gap to frozen kernel",
}
_NAMES = {
    "s": "s = ⟨w, signal⟩",
    "r": "r, length of w beside the signal",
    "a": "output weight a",
}


def write_report(done: Finished) -> None:
    """Write the figures and report.html of a finished study into its folder."""
    groups = grouped(done.study.cases, done.runs)
    drawn = [*drawings(groups, _label(done.study.feature or ""))]
    drawn += [made for make in (widths, scales) if (made := make(groups)) is not None]
    for one in drawn:
        for suffix in ("png", "svg"):
            save(one.figure, done.folder.figures / f"{one.name}.{suffix}")
    write_text(done.folder.report, page(done, groups, drawn))


def page(done: Finished, groups: list[Group], drawn: list[Drawing]) -> str:
    """The whole HTML file."""
    spec, found = done.study.spec, done.results
    figures = {one.name: picture(svg(one.figure), one.alt, one.caption) for one in drawn}
    pick = lambda section: [figures[one.name] for one in drawn if one.section == section]
    sections = [
        Section("Verdict", join(verdict(found["verdict"]), *_troubles(found))),
        Section("Risk", join(*pick("Risk"))),
        Section("Neurons", join(*_neurons(done, groups), *pick("Neurons"))),
        Section("How far it moved", join(*pick("How far it moved"))),
        Section("Results", _tables(found)),
        Section("What was run", _what(done)),
        Section("Methods and sources", bullets([REFERENCES[key] for key in found["sources"]])),
        Section("Provenance", _provenance(done)),
    ]
    title = spec.title or "A study of wide networks"
    footer = (
        f"wideflow {found['provenance']['versions'].get('wideflow', '')}, {found['provenance']['finished']}"
    )
    shown = [section for section in sections if section.body]
    return document(title, shown, lead=" ".join(spec.about.split()), footer=footer)


def _troubles(found: dict[str, Any]) -> list[Any]:
    bad = [run for run in found["runs"] if run["status"] != "ok"]
    if not bad:
        return []
    lines = [f"**{run['label']}** {run['status']}: {run['message']}" for run in bad]
    return [paragraph("Not all runs came to their end; no verdict is given on these:"), bullets(lines)]


def _what(done: Finished) -> Any:
    study, spec = done.study, done.study.spec
    parts = [paragraph("The problem:"), equation(words.law(study))]
    if (target := words.target(spec)) is not None:
        parts.append(equation(target))
    parts += [
        paragraph("The network and what it minimises:"),
        equation(words.model(spec)),
        equation(words.loss(spec)),
    ]
    ways = dict.fromkeys(run["expectation"] for run in done.results["runs"] if run["expectation"])
    parts.append(paragraph(f"{words.start(spec)} E over x was taken by: {'; '.join(ways)}."))
    rows, deep = [], spec.start.kind != "particles"
    for i, method in enumerate(spec.dynamics):
        mine = [case for case in study.cases if case.where == str(i)]
        sizes = list(dict.fromkeys(case.width for case in mine))
        scaling = list(dict.fromkeys(case.scaling for case in mine))
        formula, said = words.method(mine[0], sizes, scaling, getattr(method, "seeds", 1), deep)
        if method.start is not None:
            said += f"; at time 0 {words.start_law(spec, method.start)}"
        rows.append([method.called, equation(formula), said])
    parts.append(table(["dynamics", "equation", "in words"], rows))
    parts.append(
        paragraph(
            "Time is t = kη after k steps of size η, the same for all, so that runs share one axis; "
            "u = −∂ℓ/∂f is the signal that trains, y − f for the squared loss."
        )
    )
    return join(*parts)


def _label(name: str) -> str:
    return _NAMES.get(name, name)


def _neurons(done: Finished, groups: list[Group]) -> list[Any]:
    """The player, if there are clouds to show."""
    chosen = pictured([g for g in groups if g.whole and g.has("cloud")])
    pair = done.study.cloud
    if not chosen or pair is None:
        return []
    clouds = []
    for group in chosen:
        run = group.shown[0]
        cloud = np.asarray(run["cloud"], float)
        clouds.append(Cloud(group.name, run.t, cloud[..., 0], cloud[..., 1], cloud[..., 2]))
    told = (
        f"Each point is a neuron, drawn at {_label(pair[0])} and {_label(pair[1])}, coloured by its output "
        "weight. Press play, or move the slider."
    )
    x_label, y_label = map(_label, pair)
    return [paragraph(told), player(clouds, x_label=x_label, y_label=y_label, colour_label="output weight a")]


def _tables(found: dict[str, Any]) -> Any:
    """What each group came to, and how far it is from the limits."""
    groups = found["groups"]
    rows = []
    for group in groups:
        width = "∞" if group["width"] is None else str(group["width"])
        told = group["verdict"] or ("frozen kernel" if group["linearised"] else "–")
        ended = told if group["status"] == "ok" else group["status"]
        numbers = [estimate(group[key]) for key in _ENDS.values()]
        rows.append([group["name"], group["scaling"], width, *numbers, ended])
    caption = "Means over seeds ± one standard error (none where there is a single seed)."
    ends = table(["run", "scale", "n", *_ENDS, "verdict"], rows, caption)
    gaps = {name: key for name, key in _GAPS.items() if any(group[key] for group in groups)}
    measured = [group for group in groups if any(group[key] for key in gaps.values())]
    if not measured:
        return ends
    far = [[group["name"], *[estimate(group[key]) for key in gaps.values()]] for group in measured]
    caption = (
        "How far from the infinite-width limit, and from the same network with its kernel frozen: largest "
        "gap over time for the risk, root mean square over the test points at the end for f."
    )
    return join(ends, table(["run", *gaps], far, caption))


def _provenance(done: Finished) -> Any:
    origin = done.results["provenance"]
    rows = [
        ["seed", str(origin["seed"])],
        ["precision", origin["precision"]],
        ["device", f"{origin['device']}, {origin['platform']}"],
        ["time of all runs", f"{origin['seconds']:.0f} s"],
        ["versions", ", ".join(f"{k} {v}" for k, v in origin["versions"].items())],
    ]
    runs = [
        [run["label"], run["status"], short(run["seconds"]), str(run["steps"] or "–"), run["folder"]]
        for run in done.results["runs"]
    ]
    return join(
        table(["", ""], rows),
        fold("All runs", table(["run", "status", "seconds", "steps", "folder"], runs)),
        fold("The spec, with all defaults", code(written(done.study.spec))),
        paragraph("`wideflow run spec.toml` with the spec above gives the same numbers again."),
    )
