"""The line on which each key of a TOML text stands.

A scan of text that `tomllib` has accepted: it knows where keys, values and list elements begin and end, and
needs to know no more. Places are tuples as in `paths`: the second `[[dynamics]]` is ("dynamics", 1). A table
stands where its header does; one without a header, where it is first mentioned.
"""

import re
import tomllib
from bisect import bisect_right
from contextlib import suppress

from .paths import Path

_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_\-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
_TEXT = re.compile(
    r'''"""(?:\\.|[^\\])*?""""{0,2}'''
    r"""|'''(?:.)*?''''{0,2}"""
    r'''|"(?:\\.|[^"\\\n])*"'''
    r"""|'[^'\n]*'""",
    re.DOTALL,
)
# parts of a dotted key: places cost the square of their depth
_MOST = 100
_PLAIN = re.compile(r"[^,\]}\n#]*")


def lines_of(text: str) -> dict[Path, int]:
    """The line of every key and every list element, counted from 1."""
    scanner = _Scanner(text)
    with suppress(
        RecursionError, ValueError, IndexError
    ):  # a place without a line is better than none of them
        scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str):
        self.text = text
        self.position = 0
        self.newlines = [i for i, letter in enumerate(text) if letter == "\n"]
        self.lines: dict[Path, int] = {}
        self.lengths: dict[Path, int] = {}  # of lists of tables, so far

    def document(self) -> None:
        table: Path = ()
        while self._skip(_GAP) < len(self.text):
            table = self._header() if self.text[self.position] == "[" else self._pair(table)

    def _skip(self, pattern: re.Pattern) -> int:
        match = pattern.match(self.text, self.position)
        if match is None:
            raise ValueError(f"no TOML in line {self._line()}")
        self.position = match.end()
        return self.position

    def _take(self, mark: str) -> None:
        if not self.text.startswith(mark, self.position):
            raise ValueError(f"no {mark} in line {self._line()}")
        self.position += len(mark)

    def _line(self) -> int:
        return bisect_right(self.newlines, self.position - 1) + 1

    def _header(self) -> Path:
        """`[a.b]` or `[[a.b]]`; the table that the following lines belong to."""
        line, many = self._line(), self.text.startswith("[[", self.position)
        self._take("[[" if many else "[")
        keys = self._keys()
        self._take("]]" if many else "]")
        path: Path = ()
        for depth, key in enumerate(keys, 1):
            path = (*path, key)
            self.lines.setdefault(path, line)
            if many and depth == len(keys):
                self.lengths[path] = self.lengths.get(path, 0) + 1
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
        self.lines[path] = line
        return path

    def _pair(self, table: Path) -> Path:
        """`a.b = value`; the same table."""
        line, path = self._line(), table
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._take("=")
        self._value(path)
        return table

    def _keys(self) -> list[str]:
        keys = []
        while True:
            start = self._skip(_SPACE)
            keys.append(_key(self.text[start : self._skip(_KEY)]))
            if self._skip(_SPACE) == len(self.text) or self.text[self.position] != ".":
                return keys
            self._take(".")
            if len(keys) > _MOST:
                raise ValueError(f"a key of more than {_MOST} parts")

    def _value(self, path: Path) -> None:
        first = self.text[self._skip(_SPACE) : self.position + 1]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline(path)
        else:
            self._skip(_TEXT if first in ("'", '"') else _PLAIN)

    def _array(self, path: Path) -> None:
        self._take("[")
        index = 0
        while self.text[self._skip(_GAP)] != "]":
            self.lines[(*path, index)] = self._line()
            self._value((*path, index))
            index += 1
            if self.text[self._skip(_GAP)] == ",":
                self._take(",")
        self._take("]")

    def _inline(self, path: Path) -> None:
        self._take("{")
        while self.text[self._skip(_GAP)] != "}":
            self._pair(path)
            if self.text[self._skip(_GAP)] == ",":
                self._take(",")
        self._take("}")


def _key(raw: str) -> str:
    return tomllib.loads(f"key = {raw}")["key"] if raw[0] in "\"'" else raw
