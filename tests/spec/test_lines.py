"""Where keys stand: documents of every shape, whose lines are known as they are put together."""

import json
import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from spec.examples import EXAMPLES
from wideflow.spec.lines import lines_of

KEYS = st.one_of(
    st.text("abcXYZ019_-", min_size=1, max_size=4),
    st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs", "Cc"]), max_size=3),
)
SCALARS = st.sampled_from(
    [
        "1",
        "-2.5e3",
        "inf",
        "true",
        '"a # [b] = {"',
        "'c\\'",
        '"d \\" e"',
        "1979-05-27 07:32:00",
        '"""\n"two" \\\\\n"""',
        "'''\n'x''\n# = y'''",
        '""',
        '"""q"""""',
    ]
)
GAPS = st.sampled_from(["", " ", "\t"])


class Writer:
    """TOML text made piece by piece, and the line of every place that was begun."""

    def __init__(self, draw):
        self.draw, self.text, self.lines = draw, "", {}

    def put(self, piece):
        self.text += piece

    def mark(self, path):
        self.lines[path] = self.text.count("\n") + 1

    def noise(self, choices):
        self.put(self.draw(st.sampled_from(choices)))

    def key(self, key):
        bare = key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
        self.put(
            key
            if bare and self.draw(st.booleans())
            else json.dumps(key, ensure_ascii=self.draw(st.booleans()))
        )

    def value(self, path, depth=0):
        kind = self.draw(st.integers(0, 3 if depth < 3 else 1))
        if kind == 2:
            self.array(path, depth)
        elif kind == 3:
            self.inline(path, depth)
        else:
            self.put(self.draw(SCALARS))

    def array(self, path, depth):
        self.put("[")
        size = self.draw(st.integers(0, 3))
        for i in range(size):
            self.noise(["", " ", "\n", "\n  # ] no end\n", " # [\n"])
            self.mark((*path, i))
            self.value((*path, i), depth + 1)
            self.noise(["", "\n", " # ,\n"])
            if i < size - 1 or self.draw(st.booleans()):
                self.put(",")
        self.put("]")

    def inline(self, path, depth):
        self.put("{")
        for i, keys in enumerate(self.draw(apart())):
            self.put(", " if i else " ")
            self.pair(path, keys, depth + 1)
        self.put(" }")

    def pair(self, path, keys, depth=0):
        for i, key in enumerate(keys):
            self.put("." if i else "")
            self.put(self.draw(GAPS))
            path = (*path, key)
            self.lines.setdefault(path, self.text.count("\n") + 1)
            self.key(key)
            self.put(self.draw(GAPS))
        self.put("= ")
        self.value(path, depth)

    def header(self, keys, marks):
        self.put(marks[0])
        for i, key in enumerate(keys):
            self.put("." if i else "")
            self.key(key)
        self.put(marks[1])

    def body(self, path):
        self.noise(["\n", " # a comment = [\n", "\n\n"])
        for keys in self.draw(apart()):
            self.pair(path, keys)
            self.noise(["\n", "  # x\n", "\n\n# y\n"])


def apart():
    """Dotted keys that do not get into one another's way: each begins differently."""
    return st.lists(st.lists(KEYS, min_size=1, max_size=3), max_size=3, unique_by=lambda keys: keys[0])


@st.composite
def documents(draw):
    """A text, and the line of every key, table and element in it."""
    writer = Writer(draw)
    writer.body(())
    used = {path[0] for path in writer.lines}
    tables = draw(st.lists(KEYS.filter(lambda key: key not in used), max_size=3, unique=True))
    for key in tables:
        if draw(st.booleans()):
            inner = draw(st.lists(KEYS, max_size=2))
            for n in range(len(inner) + 1):
                writer.mark((key, *inner[:n]))
            writer.header([key, *inner], "[]")
            writer.body((key, *inner))
            continue
        writer.mark((key,))
        for i in range(draw(st.integers(1, 3))):
            writer.mark((key, i))
            writer.header([key], ["[[", "]]"])
            writer.body((key, i))
            sub = draw(KEYS)
            if (key, i, sub) not in writer.lines:
                writer.mark((key, i, sub))
                writer.header([key, sub], "[]")
                writer.body((key, i, sub))
    return writer.text, writer.lines


def places(data, path=()):
    """All keys and elements of parsed data."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield (*path, key)
        yield from places(value, (*path, key))


@settings(max_examples=300, deadline=None)
@given(documents())
def test_every_place_is_on_the_line_where_it_was_written(document):
    text, lines = document
    assert set(places(tomllib.loads(text))) == set(lines)  # the generator writes what it says it writes
    assert lines_of(text) == lines


def test_every_place_of_the_examples_has_a_line_and_it_holds_the_key():
    for text in EXAMPLES.values():
        found, rows = lines_of(text), text.split("\n")
        assert set(found) == set(places(tomllib.loads(text)))
        for path, line in found.items():
            if isinstance(path[-1], str):
                assert path[-1] in rows[line - 1]


def test_the_header_of_a_table_is_its_place_even_after_its_parts():
    assert lines_of("[a.b]\nc = 1\n[a]\nd = 2\n") == {
        ("a",): 3,
        ("a", "b"): 1,
        ("a", "b", "c"): 2,
        ("a", "d"): 4,
    }


def test_text_that_is_no_toml_gives_what_was_understood():
    assert lines_of("a = 1\nb = [1, \n")[("a",)] == 1
    assert lines_of("a = " + "[" * 5000).get(("a",)) == 1
    assert lines_of("= 1") == {}
