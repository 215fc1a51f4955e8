"""Specs as people spoil them: a strategy of texts, each made of a valid example by one to three changes.

Some change the text (letters, lines), most the data: a key misspelt, lost or moved, a value of another type
or of an extreme size, two tables exchanged.
"""

import copy
import datetime
import tomllib

import tomli_w
from hypothesis import strategies as st

from spec.examples import EXAMPLES

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_-.\"[]{}=#,\n\t \\'é∞\x00\r"
VALUES = [
    *[0, -1, 1, 3, 2**31, 2**63, -(2**70), 10**400, 0.0, -0.0, 0.5, 1e-320, 1e308, 1.5, -3.7],
    *[
        float("inf"),
        float("-inf"),
        float("nan"),
        True,
        False,
        "",
        " ",
        "erf",
        "sgd",
        "sqrt(n)",
        "gaussian",
        "1",
    ],
    *[
        "inf",
        "\n",
        "é" * 300,
        "mlp",
        "a.b",
        "*",
        [],
        [[]],
        [1],
        [0, 0],
        [3, 2, 1],
        ["a"],
        [True],
        [{}],
        [[1], 2],
    ],
    *[[1, "a", {}], [float("nan")], {}, {"": 1}, {"name": "erf"}, {"law": "sphere", "d": 3}, {"law": 3}],
    *[
        {"a": {"b": {"c": {}}}},
        {"method": "sgd"},
        [{"method": "sgd", "step": 1}],
        {"kind": []},
        {"way": "auto"},
    ],
    *[datetime.date(2020, 1, 1), datetime.time(1, 2), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)],
]
DATA = [tomllib.loads(text) for text in EXAMPLES.values()]


@st.composite
def mutated(draw):
    """The text of a spoilt spec. It may still be valid, or no longer TOML."""
    which = draw(st.integers(0, len(DATA) - 1))
    if draw(st.integers(0, 2)) == 0:
        text = list(EXAMPLES.values())[which]
    else:
        data = copy.deepcopy(DATA[which])
        for _ in range(draw(st.integers(1, 3))):
            change = draw(st.sampled_from([replaced, misspelt, lost, moved, swapped, added]))
            change(draw, data)
        text = tomli_w.dumps(data)
        if draw(st.integers(0, 3)):
            return text
    for _ in range(draw(st.integers(1, 3))):
        change = draw(st.sampled_from([letter, line_lost, line_twice, lines_swapped, cut]))
        text = change(draw, text)
    return text


def places(node):
    """Every (container, key) of nested data."""
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(value, dict | list):
            yield from places(value)


def place(draw, data):
    found = list(places(data))
    return found[draw(st.integers(0, len(found) - 1))] if found else (data, None)


def replaced(draw, data):
    node, key = place(draw, data)
    if key is not None:
        node[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))


def misspelt(draw, data):
    node, key = place(draw, data)
    if isinstance(node, dict) and key is not None:
        value = node.pop(key)
        node[letter(draw, key)] = value


def lost(draw, data):
    node, key = place(draw, data)
    if key is not None:
        del node[key]


def moved(draw, data):
    """A key and its value from one table to another."""
    node, key = place(draw, data)
    if isinstance(node, dict) and key is not None:
        value = node.pop(key)
        target, at = place(draw, data)
        if at is not None and isinstance(target[at], dict):
            target[at][key] = value
        else:
            data[key] = value


def swapped(draw, data):
    (a, i), (b, j) = place(draw, data), place(draw, data)
    if i is not None and j is not None:
        # copies, as a table may not come to stand inside itself
        a[i], b[j] = copy.deepcopy(b[j]), copy.deepcopy(a[i])


def added(draw, data):
    node, key = place(draw, data)
    inside = node[key] if key is not None else data
    if isinstance(inside, dict):
        new = draw(st.sampled_from(["law", "kind", "d", "step", "name", "x", "seed", "", "é b"]))
        inside[new] = copy.deepcopy(draw(st.sampled_from(VALUES)))
    elif isinstance(inside, list):
        inside.append(copy.deepcopy(draw(st.sampled_from([*VALUES, *inside]))))


def letter(draw, text):
    """One letter replaced, left out, put in or exchanged with its neighbour."""
    i = draw(st.integers(0, max(len(text) - 1, 0)))
    new = draw(st.sampled_from(LETTERS))
    ways = [text[:i] + new + text[i + 1 :], text[:i] + text[i + 1 :], text[:i] + new + text[i:]]
    ways.append(text[:i] + text[i + 1 : i + 2] + text[i : i + 1] + text[i + 2 :])
    return ways[draw(st.integers(0, 3))]


def line_lost(draw, text):
    lines = text.split("\n")
    i = draw(st.integers(0, len(lines) - 1))
    return "\n".join(lines[:i] + lines[i + 1 :])


def line_twice(draw, text):
    lines = text.split("\n")
    i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    return "\n".join([*lines[:j], lines[i], *lines[j:]])


def lines_swapped(draw, text):
    lines = text.split("\n")
    i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    lines[i], lines[j] = lines[j], lines[i]
    return "\n".join(lines)


def cut(draw, text):
    i, j = sorted(draw(st.integers(0, len(text))) for _ in range(2))
    return text[:i] + text[min(j, i + 40) :]
