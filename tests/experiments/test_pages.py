"""The page of all claims: well-formed, offline, and with every check on it."""

import math
import re
from html.parser import HTMLParser

from wideflow.experiments.base import Check
from wideflow.experiments.catalogue import EXPERIMENTS
from wideflow.experiments.pages import page, summed, write
from wideflow.experiments.records import Record
from wideflow.experiments.records import write as write_record

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
VOID = {"meta", "link", "img", "br", "hr", "input", "col"}


def _record(name, *checks, error=None, claim="A claim with <b> & “marks”."):
    given = {"name": name, "claim": claim, "source": "A. Author. A title. 2020.", "checks": checks}
    made = {"seconds": 12.3, "version": "0.1.0", "versions": {"jax": "0.10"}, "code": "c", "date": "today"}
    made |= {"settings": "s"}
    return Record(**given, **made, error=error)


GOOD = Check("slope in n <of> f", "-0.5", -0.493, 0.012, -0.6, -0.4)
OPEN = Check("a ratio", "1 or more", 1.25, 0.01, 0.95, math.inf)
EXACT = Check("a count", "7", 7.0, 0.0, 6.5, 7.5)
BAD = Check("an offset", "0", 0.3, 0.01, -math.inf, 0.1)


class _Tree(HTMLParser):
    """Every element that is opened is closed, in order; addresses and texts are collected."""

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.ids, self.rows = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data.replace("\N{NO-BREAK SPACE}", " ")


def test_every_check_is_on_the_page():
    found = [
        _record("abc-table", GOOD, OPEN, EXACT),
        _record("three-ways", BAD),
        _record("node-order", error="E: no"),
    ]
    text = page(found, {"abc-table": PNG}, older={"three-ways"})
    tree = _Tree(text)
    assert tree.open == []
    assert tree.rows[1:6] == [
        ["abc-table", "slope in n <of> f", "-0.5", "−0.493 ± 0.012", "−0.6 … −0.4", "PASS"],
        ["abc-table", "a ratio", "1 or more", "1.250 ± 0.010", "0.95 … ∞", "PASS"],
        ["abc-table", "a count", "7", "7", "6.5 … 7.5", "PASS"],
        ["three-ways", "an offset", "0", "0.300 ± 0.010", "−∞ … 0.1", "FAIL"],
        ["node-order", "E: no", "–", "–", "–", "ERROR"],
    ]
    assert "1 of 3 claims hold (not: three-ways, node-order)" in text
    assert text.count("another version of the code") == 1
    assert text.count("A claim with &lt;b&gt; &amp; “marks”.") >= 3 and "<b>" not in text


def test_the_page_asks_the_network_for_nothing():
    text = page([_record("abc-table", GOOD)], {"abc-table": PNG})
    tree = _Tree(text)
    inside = [a[1:] for a in tree.addresses if a.startswith("#")]
    assert set(inside) <= set(tree.ids) and "abc-table" in inside
    assert all(a.startswith(("#", "data:")) for a in tree.addresses)
    assert not re.search(r"@import|url\(|https?://", text)


def test_the_sum_of_all():
    names = list(EXPERIMENTS)
    every = [_record(name, GOOD) for name in names]
    assert summed(every) == f"{len(names)} of {len(names)} claims hold."
    assert summed(every[1:]).endswith(f"; 1 of {len(names)} is not run yet.")
    assert summed([]).startswith("0 of 0 claims hold; ")


def test_the_page_of_a_folder(tmp_path):
    """Only whole records are on it, in the order of the catalogue."""
    for name in ("three-ways", "abc-table"):
        write_record(tmp_path, _record(name, GOOD), PNG)
    (tmp_path / "node-order.json").write_text("{")
    text = write(tmp_path).read_text()
    assert text.index('<section id="three-ways">') < text.index('<section id="abc-table">')
    assert '<section id="node-order">' not in text and "node-order are damaged" in text
    assert text.count('src="data:image/png') == 2


def test_a_page_without_records(tmp_path):
    assert "not run yet" in write(tmp_path).read_text()
