"""Sections joined to one file that needs nothing else, or to a fragment for a notebook."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from .parts import marked
from .templating import render, static


@dataclass(frozen=True)
class Section:
    """A part of a page; `id` is what links to it have after the # (made from the title if not given)."""

    title: str
    body: Markup
    id: str = ""


def document(title: str, sections: Sequence[Section], *, lead: str = "", footer: str = "") -> str:
    """A whole HTML file. `lead` and `footer` are text with marks (as in a paragraph) or fragments."""
    sections = list(sections)
    page = render(
        "document.html",
        title=title,
        lead=marked(lead),
        footer=marked(footer),
        sections=list(zip(_ids(sections), sections, strict=True)),
        style=static("style.css"),
        scripts=_scripts(sections),
    )
    return str(page)


def fragment(sections: Sequence[Section]) -> str:
    """The same for a cell of a notebook: no ids, styles of its own class, so that many fit on one page."""
    sections = list(sections)
    style = static("style.css")
    return str(render("fragment.html", sections=sections, style=style, scripts=_scripts(sections)))


def _scripts(sections: Iterable[Section]) -> list[Markup]:
    """Those that the parts need. Text is escaped and so cannot hold the quotes that are looked for."""
    needs = {'class="wf-player"': "player.js", "<details>": "folds.js"}
    return [static(name) for mark, name in needs.items() if any(mark in s.body for s in sections)]


def _ids(sections: Iterable[Section]) -> list[str]:
    """One id per section, no two alike."""
    ids: list[str] = []
    for section in sections:
        plain = unicodedata.normalize("NFKD", section.id or section.title).lower()
        name = re.sub(r"[^\w]+", "-", plain).strip("-") or "section"
        ids.append(_free(name, ids))
    return ids


def _free(name: str, taken: list[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
