"""Parts of a page: what is text stays text, what is asked for is there, what is wrong is said."""

import base64
import re
from xml.etree import ElementTree

import pytest
from markupsafe import Markup

from page_cases import SVG, png
from wellformed import elements, text_of, well_formed
from wideflow.page import parts

NASTY = "<script>alert('1')</script> & \"so\" on"


@pytest.mark.parametrize(
    "part",
    [
        parts.paragraph(NASTY),
        parts.paragraph(f"`{NASTY}` **{NASTY}**"),
        parts.verdict(NASTY),
        parts.code(NASTY),
        parts.bullets([NASTY, NASTY]),
        parts.fold(NASTY, NASTY),
        parts.table([NASTY], [[NASTY]], NASTY),
        parts.picture(SVG, NASTY, NASTY),
        parts.equation(r"a < b \text{<script>alert(1)</script>}", NASTY),
        parts.link("https://example.org/" + NASTY, NASTY),
    ],
)
def test_text_never_becomes_markup(part):
    assert isinstance(part, Markup)
    assert well_formed(part)
    assert "script" not in {tag for tag, _ in elements(part)}
    assert not any(name.startswith("on") for _, attributes in elements(part) for name in attributes)


def test_a_paragraph_marks_code_and_bold_alone():
    made = parts.paragraph("a `x < y` and **b `c`** and *d* and _e_")
    assert made == ("<p>a <code>x &lt; y</code> and <strong>b <code>c</code></strong> and *d* and _e_</p>")


def test_fragments_are_taken_as_they_are():
    inner = Markup("<em>so</em>")
    assert "<em>so</em>" in parts.paragraph(inner)
    assert "<em>so</em>" in parts.table(["a"], [[inner]])
    assert parts.join(inner, inner) == "<em>so</em>\n<em>so</em>"
    assert parts.join(inner, "<b>") == "<em>so</em>\n&lt;b&gt;"


def test_an_equation_is_mathml_with_its_source():
    root = ElementTree.fromstring(re.search(r"<math.*</math>", parts.equation(r"\frac{a}{b} < \rho"))[0])
    space = "{http://www.w3.org/1998/Math/MathML}"
    assert root.get("display") == "block"
    assert root.get("alttext") == r"\frac{a}{b} < \rho"
    assert [node.text for node in root.find(f".//{space}mfrac").iter() if node.text] == ["a", "b"]
    assert {"<", "ρ"} <= set(root.itertext())


@pytest.mark.parametrize(
    ("latex", "reason"),
    [(r"\frac{a", "unlike numbers of"), (r"\foo", r"unknown command \\foo"), ("a^b^c", "DoubleSuperscripts")],
)
def test_a_broken_equation_is_named(latex, reason):
    with pytest.raises(ValueError, match=rf"latex must be a formula of LaTeX, got .*{reason}"):
        parts.equation(latex)


def test_an_equation_leads_nowhere():
    assert not any("href" in a for _, a in elements(parts.equation(r"\href{javascript:alert(1)}{x}")))


def test_braces_that_are_drawn_need_no_partner():
    assert "{" in text_of(parts.equation(r"f = \{ a \\ b"))


def test_a_table_names_rows_and_columns():
    made = parts.table(["run", "risk", "note"], [["a", "0.1 ± 0.2", "good"], ["b", "–", "3.11.2"]], "All.")
    assert re.findall(r'<th scope="(\w+)" class="([\w-]+)">(\w+)', made) == [
        *[("col", "wf-left", "run"), ("col", "wf-right", "risk"), ("col", "wf-left", "note")],
        *[("row", "wf-left", "a"), ("row", "wf-left", "b")],
    ]
    assert text_of(made).split("\n")[-2] == "All."


def test_a_table_that_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match=r"rows\[1\] must have 2 cells as the head has, got 1"):
        parts.table(["a", "b"], [["1", "2"], ["3"]])
    with pytest.raises(ValueError, match="align must be 2 letters of l, r and c, got 'lx'"):
        parts.table(["a", "b"], [], align="lx")


@pytest.mark.parametrize(
    ("data", "kind"),
    [(SVG, "svg+xml"), (b"\xef\xbb\xbf<?xml version='1.0'?>\n" + SVG, "svg+xml"), (png(), "png")],
)
def test_a_picture_is_inside_the_page(data, kind):
    ((_, image),) = [found for found in elements(parts.picture(data, "what is seen")) if found[0] == "img"]
    head, body = image["src"].split(",")
    assert head == f"data:image/{kind};base64"
    assert base64.b64decode(body) == data
    assert image["alt"] == "what is seen"


def test_a_picture_may_have_another_for_narrow_screens():
    made = parts.picture(SVG, "3 to 1", narrow=png(3, 2))
    assert "wf-broad" not in made and made.count("base64,") == 2
    assert '<source media="screen and (max-width: 48rem)" srcset="data:image/png' in made


def test_a_broad_picture_is_known():
    assert "wf-broad" in parts.picture(SVG, "3 to 1")
    assert "wf-broad" not in parts.picture(png(3, 2), "3 to 2")


def test_what_is_no_picture_is_refused():
    with pytest.raises(ValueError, match="bytes of an SVG or PNG file, got 4 bytes"):
        parts.picture(b"GIF8", "seen")
    with pytest.raises(ValueError, match="alt must say in words"):
        parts.picture(SVG, " ")


def test_a_link_leads_to_a_page_alone():
    with pytest.raises(ValueError, match="url must begin with https"):
        parts.link("javascript:alert(1)")
