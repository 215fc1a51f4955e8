"""The report of a study: one page that holds everything."""

import numpy as np
from markupsafe import Markup

from .._data import Data
from ..figures import narrow_svg, svg
from ..page.document import Section, document
from ..page.numbers import estimate, plus_minus, short
from ..page.parts import bullets, code, equation, fold, join, paragraph, picture, table, verdict
from ..page.player import Cloud, player
from ..references import REFERENCES
from ..spec.writing import written
from ..store.folder import write, write_text
from ..store.pictures import save
from ..study.groups import Group, grouped
from ..study.study import Finished
from ..verdicts import QUESTIONS
from . import words
from .curves import pictured
from .drawing import Drawing, Shown
from .drawings import drawings

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
_FIRST = ("Risk", "Free energy", "Neurons")  # sections with a place of their own; others follow them
_NAMES = {
    "s": "s = ⟨w, signal⟩",
    "r": "r, length of w beside the signal",
    "a": "output weight a",
}


def write_report(done: Finished) -> None:
    """Write the figures and report.html of a finished study into its folder."""
    groups = grouped(done.study.cases, done.runs)
    drawn = drawings(Shown(groups, _label(done.study.feature or ""), done.study.cloud or ()))
    wide = {one.name: svg(one.figure) for one in drawn}
    for one in drawn:
        save(one.figure, done.folder.figures / f"{one.name}.png")
        write(done.folder.figures / f"{one.name}.svg", wide[one.name])
    write_text(done.folder.report, page(done, groups, drawn, wide))


def page(done: Finished, groups: list[Group], drawn: list[Drawing], wide: dict[str, bytes]) -> str:
    """The whole HTML file; `wide` are the figures at full breadth."""
    spec, results = done.study.spec, done.results
    figures = {one.name: _picture(one, wide[one.name]) for one in drawn}
    pick = lambda section: [figures[one.name] for one in drawn if one.section == section]
    others = [name for name in dict.fromkeys(one.section for one in drawn) if name not in _FIRST]
    sections = [
        Section("Verdict", join(*_verdict(results), *_troubles(results))),
        Section("Risk", join(*pick("Risk"))),
        Section("Free energy", join(*pick("Free energy"))),
        Section("Neurons", join(*_neurons(done, groups), *pick("Neurons"))),
        *[Section(name, join(*pick(name))) for name in others],
        Section("Results", _tables(results)),
        Section("What was run", _setup(done)),
        Section("Methods and sources", bullets([REFERENCES[key] for key in results["sources"]])),
        Section("Provenance", _provenance(done)),
    ]
    title = spec.title or "A study of wide networks"
    origin = results["provenance"]
    footer = f"wideflow {origin['versions'].get('wideflow', '')}, {origin['finished']}"
    shown = [section for section in sections if section.body]
    return document(title, shown, lead=" ".join(spec.about.split()), footer=footer)


def _picture(one: Drawing, wide: bytes) -> Markup:
    return picture(wide, one.alt, one.caption, narrow_svg(one.figure))


def _verdict(results: Data) -> list[Markup]:
    """The question of the study, the sentence that answers it, and the runs behind it."""
    points = results["details"]
    question = paragraph(QUESTIONS[results["question"]])
    return [question, verdict(results["verdict"]), *([bullets(points)] if points else [])]


def _troubles(results: Data) -> list[Markup]:
    parts: list[Markup] = []
    bad = [run for run in results["runs"] if run["status"] != "ok"]
    if bad:
        lines = [f"**{run['label']}** {run['status']}: {run['message']}" for run in bad]
        parts += [
            paragraph("Not all runs reached their end; there is no verdict on these:"),
            bullets(lines),
        ]
    warned: dict[str, list[str]] = {}
    for run in results["runs"]:
        for text in run["warnings"]:
            warned.setdefault(text, []).append(run["label"])
    if warned:
        lines = [f"**{', '.join(labels)}**: {text}" for text, labels in warned.items()]
        parts += [paragraph("The library warned of this while it ran:"), bullets(lines)]
    return parts


def _setup(done: Finished) -> Markup:
    study, spec = done.study, done.study.spec
    parts = [paragraph("The problem:"), equation(words.law(study))]
    parts += [paragraph(note) for note in words.data_notes(study)]
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
        own = [case for case in study.cases if case.where == str(i)]
        sizes = list(dict.fromkeys(case.width for case in own))
        scaling = list(dict.fromkeys(case.scaling for case in own))
        formula, sentence = words.method(own[0], sizes, scaling, getattr(method, "seeds", 1), deep)
        if method.start is not None:
            sentence += f"; at time 0 {words.start_law(spec, method.start)}"
        rows.append([method.called, equation(formula), sentence])
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


def _neurons(done: Finished, groups: list[Group]) -> list[Markup]:
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
    caption = (
        f"Each point is a neuron, drawn at {_label(pair[0])} and {_label(pair[1])}, coloured by its output "
        "weight. Press play, or move the slider."
    )
    x_label, y_label = map(_label, pair)
    return [
        paragraph(caption),
        player(clouds, x_label=x_label, y_label=y_label, colour_label="output weight a"),
    ]


def _tables(results: Data) -> Markup:
    """How each group ended, and how far it is from the limits."""
    groups = results["groups"]
    rows = []
    for group in groups:
        width = "∞" if group["width"] is None else str(group["width"])
        verdict = group["verdict"] or ("frozen kernel" if group["linearised"] else "–")
        ended = verdict if group["status"] == "ok" else group["status"]
        numbers = [estimate(group[key]) for key in _ENDS.values()]
        rows.append([group["name"], group["scaling"], width, *numbers, ended])
    caption = "Means over seeds ± one standard error (none where there is a single seed)."
    ends = join(table(["run", "scale", "n", *_ENDS, "verdict"], rows, caption), *_settled(groups))
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


def _settled(groups: list[Data]) -> list[Markup]:
    """Free energy, regularised risk and risk where they settled, for dynamics that lower them."""
    names = {"free energy F": "free energy", "regularised risk R_λ": "energy", "risk R": "risk"}
    shown = [group for group in groups if group["settled"]["energy"]]
    if not shown:
        return []
    number = lambda entry: "–" if entry is None else plus_minus(entry["value"], entry["error"])
    rows = [[group["name"], *[number(group["settled"][key]) for key in names.values()]] for group in shown]
    caption = (
        "Means over the last quarter of the time ± one standard error over seeds, or with one seed ± the "
        "standard deviation in time."
    )
    return [table(["run", *names], rows, caption)]


def _provenance(done: Finished) -> Markup:
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
