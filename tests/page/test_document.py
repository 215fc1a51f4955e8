"""Whole pages and fragments: closed, self-contained, with ids that no two sections share."""

import re
import subprocess
import sys

import pytest
from markupsafe import Markup

import page_cases
from wellformed import elements, text_of, well_formed
from wideflow.page import parts
from wideflow.page.document import Section, document, fragment

NASTY = "<script>alert(1)</script>"
EVERYTHING = page_cases.sections([page_cases.cloud(), page_cases.diverged()])


def test_a_page_is_closed_and_says_what_it_is():
    page = document("A title", EVERYTHING, lead="A **lead**.", footer="The end.")
    assert type(page) is str
    assert page.startswith("<!DOCTYPE html>")
    assert well_formed(page)
    found = elements(page)
    assert ("html", {"lang": "en"}) in found
    assert ("meta", {"charset": "utf-8"}) in found
    assert any(tag == "meta" and a.get("name") == "viewport" for tag, a in found)
    assert "<strong>lead</strong>" in page
    assert [a["href"] for tag, a in found if tag == "a" and a["href"].startswith("#")] == [
        f"#{a['id']}" for tag, a in found if tag == "section"
    ]


def test_titles_cannot_break_out():
    page = document(NASTY, [Section(NASTY, parts.paragraph(NASTY))], lead=NASTY, footer=NASTY)
    assert well_formed(page)
    assert "script" not in [tag for tag, _ in elements(page)]
    assert text_of(page).count(NASTY) == 6  # title, h1, lead, h2, paragraph, footer


def test_a_body_that_is_mere_text_is_escaped():
    assert NASTY not in document("a", [Section("b", NASTY)])


def test_ids_are_made_of_titles_and_differ():
    titles = ["Risk & kernel", "Risk, kernel", "", "Déjà ∞", "?"]
    page = document("a", [Section(title, Markup("")) for title in titles] + [Section("x", Markup(""), "own")])
    ids = [a["id"] for tag, a in elements(page) if tag == "section"]
    assert ids[:2] == ["risk-kernel", "risk-kernel-2"]
    assert ids[-1] == "own"
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[^\s#&]+", name) for name in ids)


def test_scripts_are_there_once_and_only_if_needed():
    player = page_cases.played([page_cases.cloud()])
    two = document("a", [Section("b", parts.join(player, player)), Section("c", player)])
    scripts = [a for tag, a in elements(two) if tag == "script"]
    assert scripts.count({}) == 1
    assert len(scripts) == 1 + 3  # the script, and the data of each player
    quoted = parts.paragraph('class="wf-player" <details>')
    assert "script" not in [tag for tag, _ in elements(document("a", [Section("b", quoted)]))]


def test_a_fragment_can_stand_twice_on_a_page():
    made = fragment(EVERYTHING)
    assert type(made) is str
    assert well_formed(made)
    found = elements(made)
    assert not {"html", "head", "body", "title", "meta"} & {tag for tag, _ in found}
    assert not any("id" in attributes for _, attributes in found)


def test_styles_of_a_fragment_reach_no_one_else():
    (style,) = re.findall(r"<style>(.*?)</style>", fragment([]), re.DOTALL)
    plain = re.sub(r"/\*.*?\*/|@media[^{]*", "", style, flags=re.DOTALL)
    selectors = [s.strip() for group in re.findall(r"([^{}]+)\{", plain) for s in group.split(",")]
    assert len([s for s in selectors if s]) > 50
    assert [s for s in selectors if s and not s.startswith(".wf-")] == []


@pytest.mark.parametrize("made", [document("a", EVERYTHING), fragment(EVERYTHING)])
def test_nothing_is_fetched(made):
    for _, attributes in elements(made):
        assert attributes.get("src", "data:").startswith("data:")
        assert not {"srcset", "background", "poster"} & set(attributes)
    assert "@import" not in made
    assert "url(" not in made
    assert not [a for tag, a in elements(made) if tag == "link" and a["href"] != "data:,"]


def test_the_room_is_light():
    """Neither jax nor jinja2 nor the converter of formulas is loaded before it is needed."""
    code = (
        "import sys, wideflow.page.document, wideflow.page.player, wideflow.page.numbers\n"
        "print([m for m in ('jax', 'jinja2', 'latex2mathml', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
