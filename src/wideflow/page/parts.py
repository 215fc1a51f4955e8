"""The parts of a page: each function returns a fragment of HTML in which all given text is escaped.

A string is text; a `Markup` is a fragment already made and is taken as it is.
"""

import base64
import re
import struct
from collections.abc import Iterable, Sequence
from html import unescape
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from .._shown import shown

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MARKS = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*", re.DOTALL)
_NUMERIC = re.compile(r"\(?[−+\-±]?(\d+(\.\d+)?(?![\w.])|∞|–)|$")
_FENCES = set("⟨⟩‖∥|")
_ALIGN = {"l": "wf-left", "r": "wf-right", "c": "wf-centre"}
# A picture broader than this holds panels side by side, which would be too small on a narrow screen.
_BROAD = 1.7
_NARROW = "screen and (max-width: 48rem)"
# Letters that stand side by side on paper; a table with more is set smaller there, and its numbers may break.
_LINE = 84


def join(*fragments: str) -> Markup:
    """Fragments one after another."""
    return Markup("\n").join(fragments)


def marked(text: str) -> Markup:
    """`text` escaped, with `code` between backticks and **bold** between double stars."""
    if isinstance(text, Markup):
        return text
    done, pieces = 0, []
    for mark in _MARKS.finditer(text):
        pieces.append(escape(text[done : mark.start()]))
        if mark[1] is not None:
            pieces.append(Markup("<code>{}</code>").format(mark[1]))
        else:
            pieces.append(Markup("<strong>{}</strong>").format(marked(mark[2])))
        done = mark.end()
    return Markup("").join([*pieces, escape(text[done:])])


def paragraph(text: str) -> Markup:
    """One paragraph; `code` and **bold** are marked."""
    return Markup("<p>{}</p>").format(marked(text))


def verdict(text: str) -> Markup:
    """The sentence that the page is about."""
    return Markup('<p class="wf-verdict">{}</p>').format(marked(text))


def link(url: str, text: str = "") -> Markup:
    """A link that is followed only when it is clicked; shown as `text`, or as the address itself."""
    if not url.startswith(("https://", "http://", "#")):
        raise ValueError(f"url must begin with https://, http:// or #, got {shown(url)}.")
    return Markup('<a href="{}">{}</a>').format(url, text or url)


def code(text: str) -> Markup:
    """A block of code or of a file, its lines as they are."""
    return Markup('<pre class="wf-code" tabindex="0"><code>{}</code></pre>').format(text)


def bullets(items: Iterable[str]) -> Markup:
    """A list; `code` and **bold** are marked."""
    rows = Markup("\n").join(Markup("<li>{}</li>").format(marked(item)) for item in items)
    return Markup("<ul>\n{}\n</ul>").format(rows)


def fold(summary: str, *body: str) -> Markup:
    """Details for those who want them: closed on screen, open in print."""
    inner = join(*(part if isinstance(part, Markup) else paragraph(part) for part in body))
    return Markup("<details><summary>{}</summary>\n{}\n</details>").format(marked(summary), inner)


def equation(latex: str, caption: str = "") -> Markup:
    """A displayed equation in MathML, which browsers draw without help."""
    from xml.etree.ElementTree import tostring

    root = _mathml(latex)
    for node in root.iter():
        if node.tag == "mi" and node.text in _FENCES:
            node.tag = "mo"
            node.set("stretchy", "false")
    root.set("alttext", latex)
    body = Markup(tostring(root, encoding="unicode"))
    return _figure("wf-equation", Markup('<div class="wf-box">{}</div>').format(body), caption)


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", align: str | None = None
) -> Markup:
    """A table whose first column names its rows. `align` has a letter l, r or c for each column.

    Without it, columns of numbers are aligned right and columns of text left.
    """
    cells = [list(row) for row in rows]
    for i, row in enumerate(cells):
        if len(row) != len(head):
            raise ValueError(f"rows[{i}] must have {len(head)} cells as the head has, got {len(row)}.")
    align = _alignment(len(head), cells) if align is None else align
    if len(align) != len(head) or set(align) - set(_ALIGN):
        raise ValueError(f"align must be {len(head)} letters of l, r and c, got {shown(align)}.")
    classes = [_ALIGN[letter] for letter in align]
    top = _row([Markup('<th scope="col" class="{}">{}</th>')] * len(head), classes, head)
    first, other = Markup('<th scope="row" class="{}">{}</th>'), Markup('<td class="{}">{}</td>')
    kinds = [first] + [other] * (len(head) - 1)
    body = Markup("\n").join(_row(kinds, classes, row) for row in cells)
    inner = Markup("<table>\n<thead>\n{}\n</thead>\n<tbody>\n{}\n</tbody>\n</table>").format(top, body)
    box = Markup('<div class="wf-box" role="region" tabindex="0" aria-label="{}">{}</div>')
    kind = "wf-table wf-many" if _breadth(head, cells, align) > _LINE else "wf-table"
    return _figure(kind, box.format(caption or "Table", inner), caption)


def picture(data: bytes, alt: str, caption: str = "", narrow: bytes | None = None) -> Markup:
    """An SVG or a PNG, known by its bytes, inside the page. `alt` says in words what it shows; `narrow` is
    the same picture for narrow screens, where a broad one without it is scrolled."""
    if not alt.strip():
        raise ValueError("alt must say in words what the picture shows, got an empty text.")
    breadth = "wf-broad" if narrow is None and _kind(data)[1] > _BROAD else "wf-plain"
    image = Markup('<img class="{}" src="{}" alt="{}">').format(breadth, _source(data), alt)
    if narrow is not None:
        other = Markup('<source media="{}" srcset="{}">').format(_NARROW, _source(narrow))
        image = Markup("<picture>{}{}</picture>").format(other, image)
    return _figure("wf-picture", Markup('<div class="wf-box">{}</div>').format(image), caption)


def _source(data: bytes) -> str:
    return f"data:image/{_kind(data)[0]};base64,{base64.b64encode(data).decode()}"


def _mathml(latex: str) -> "Element":
    """The tree of a formula, its characters as text, so that writing it escapes them.

    The converter writes them as references and does not mind unknown commands and open braces.
    """
    from latex2mathml.converter import convert_to_element

    braces = re.sub(r"\\\\|\\[{}]", "", latex)
    try:
        if braces.count("{") != braces.count("}"):
            raise ValueError("unlike numbers of { and }")
        root = convert_to_element(latex, display="block")
        for node in root.iter():
            node.text, node.tail = unescape(node.text or ""), unescape(node.tail or "")
            node.attrib.pop("href", None)  # a formula leads nowhere
            if node.text.startswith("\\"):
                raise ValueError(f"unknown command {node.text}")
    except Exception as error:  # what the converter raises has no common base
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        raise ValueError(f"latex must be a formula of LaTeX, got {shown(latex)} ({reason}).") from None
    return root


def _figure(kind: str, body: Markup, caption: str) -> Markup:
    below = Markup("\n<figcaption>{}</figcaption>").format(marked(caption)) if caption else ""
    return Markup('<figure class="{}">\n{}{}\n</figure>').format(kind, body, below)


def _row(cells: Sequence[Markup], classes: Sequence[str], values: Sequence[str]) -> Markup:
    inner = (
        cell.format(name, marked(str(value)) if not isinstance(value, Markup) else value)
        for cell, name, value in zip(cells, classes, values, strict=True)
    )
    return Markup("<tr>{}</tr>").format(Markup("").join(inner))


def _alignment(columns: int, rows: list[list[str]]) -> str:
    """Numbers right, text left; the first column names the rows."""
    numeric = lambda i: bool(rows) and all(_NUMERIC.match(Markup(row[i]).striptags()) for row in rows)
    return "".join("r" if i and numeric(i) else "l" for i in range(columns))


def _breadth(head: Sequence[str], rows: list[list[str]], align: str) -> int:
    """Letters in the narrowest line that breaks no word of the table and no number."""
    total = 0
    for i, letter in enumerate(align):
        cells = [Markup(row[i]).striptags() for row in rows]
        whole = cells if letter == "r" and i else [word for cell in cells for word in cell.split()]
        words = [*whole, *Markup(head[i]).striptags().split()]
        total += max(map(len, words), default=0) + 2
    return total


def _kind(data: bytes) -> tuple[str, float]:
    """("png" or "svg+xml", breadth over height where it can be read, else 1)."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 24:
        width, height = struct.unpack(">II", data[16:24])
        return "png", width / max(height, 1)
    start = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith((b"<?xml", b"<!DOCTYPE svg", b"<!--", b"<svg")) and b"<svg" in start:
        box = re.search(rb'viewBox="\s*[-\d.e]+[\s,]+[-\d.e]+[\s,]+([\d.e]+)[\s,]+([\d.e]+)', start)
        return "svg+xml", float(box[1]) / max(float(box[2]), 1e-9) if box else 1.0
    raise ValueError(
        f"data must be the bytes of an SVG or PNG file, got {len(data)} bytes: {bytes(data[:8])!r}… "
        "Try figure.savefig(buffer, format='svg') and buffer.getvalue()."
    )
