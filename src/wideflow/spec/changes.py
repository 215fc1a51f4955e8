"""Changes of a spec from the command line: `--set problem.x.d=20`.

A field is named as errors name it (see `paths`). The value is read as TOML; what is not TOML is text, so
that `start.kind=mlp` needs no quotes. `dynamics.*.seeds=5` changes every element that has such a field.
Missing tables are created; a table in its short form, `neuron = "erf"`, is written out where a
change reaches inside it.
"""

import copy
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._data import Data
from . import forms
from .base import Part
from .forms import Form
from .paths import Path, called, dotted, parsed
from .study import Spec
from .suggestions import nearest
from .words import shortened, shown

_LONGEST = 2**17  # letters of a change: what a command line can hold
_NEAR = 1000  # names that are looked through for a misspelt one
_LISTED = 10  # names that are listed
_CHANGE = re.compile(r"""((?:[^="']|"(?:[^"\\]|\\.)*"|'[^']*')*)=(.*)""", re.DOTALL)


@dataclass(frozen=True)
class Change:
    """One change: as it was `said`, and the places that it changed."""

    said: str
    paths: tuple[Path, ...] = ()


class UnclearError(ValueError):
    """A change that cannot be made."""


def changed(data: Data, changes: Iterable[str]) -> Data:
    """`data` with all `changes` (`key=value`) made, later ones on top of earlier ones."""
    data = copy.deepcopy(data)
    for text in changes:
        apply(data, text)
    return data


def apply(data: Data, text: str) -> Change:
    """Make one change in place. Raises `UnclearError` where the field cannot be found."""
    if len(text) > _LONGEST:
        raise UnclearError(f"a change of more than {_LONGEST:,} letters: write it into the file")
    match = _CHANGE.fullmatch(text)
    if match is None:
        raise UnclearError("a change is key=value, such as problem.x.d=20")
    name, raw = match[1].strip(), match[2].strip()
    parts = parsed(name)
    if parts is None:
        raise UnclearError(f"{shown(name)} names no field; write it as in dynamics.sgd.step=0.01")
    if not raw:
        raise UnclearError(f"nothing after =; write a value, or {shortened(name)}='\"\"' for an empty text")
    paths = _put(data, forms.whole(Spec), parts, read_value(raw), ())
    return Change(f"--set {shortened(text.strip())}", tuple(paths))


def read_value(raw: str) -> Any:
    """A value as TOML, or as text if it is not TOML."""
    try:
        read = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):  # a ValueError too for a number of thousands of digits
        return raw
    return read["value"] if set(read) == {"value"} else raw


def located(where: str, data: object) -> Path:
    """The place of `data` that a name means; parts that do not exist are kept as they are."""
    path: list[str | int] = []
    for part in parsed(where) or [where]:
        if isinstance(data, list):
            matches = _elements(data, part)
            key: str | int = matches[0] if matches else int(part) if part.isdecimal() else part
            data = data[key] if isinstance(key, int) and key < len(data) else None
        else:
            key = part
            data = data.get(part) if isinstance(data, dict) else None
        path.append(key)
    return tuple(path)


def _put(node: Any, form: Form | None, parts: list[str], value: object, path: Path) -> list[Path]:
    """Set the place `parts` of the table or list `node` to `value`; the places that were set."""
    head, rest = parts[0], parts[1:]
    places: list[Path] = []
    for key, inner in _keys(node, form, head, rest, path):
        here = (*path, key)
        if not rest:
            _store(node, key, copy.deepcopy(value))
            places.append(here)
        else:
            old = node.get(key) if isinstance(node, dict) else node[key] if key < len(node) else None
            inside = _opened(old, inner, rest[0], here)
            _store(node, key, inside)
            places += _put(inside, inner, rest, value, here)
    return places


def _store(node: Any, key: Any, value: object) -> None:
    if isinstance(node, list) and key == len(node):
        node.append(value)
    else:
        node[key] = value


def _keys(
    node: Any, form: Form | None, head: str, rest: list[str], path: Path
) -> list[tuple[Any, Form | None]]:
    """The keys or indices that `head` means in `node`, with the form of what is there."""
    if isinstance(node, dict):
        table = form.chosen(node) if form is not None else None
        return [(head, forms.of(table, head) if table is not None and head in table.model_fields else None)]
    item = form.item if form is not None else None
    if head == "*":
        indices = [i for i, element in enumerate(node) if not rest or _has(item, element, rest[0])]
        if not indices:
            raise UnclearError(
                f"no element of {dotted(path)} has {shortened(rest[0]) if rest else 'a value'!r}"
            )
    else:
        indices = _elements(node, head)
    if len(indices) != 1 and head != "*":
        raise UnclearError(_not_one(node, head, indices, path))
    return [(i, item) for i in indices]


def _has(item: Form | None, element: object, key: str) -> bool:
    table: type[Part] | None = item.chosen(element) if item is not None else None
    return key in table.model_fields if table is not None else not isinstance(element, dict) or key in element


def _elements(node: list, name: str) -> list[int]:
    """Where the elements called `name` are, or the one of that index; one past the end is a new one."""
    if name.isdecimal() and name.isascii() and len(name) < 10:
        return [int(name)] if int(name) <= len(node) else []
    return [i for i, element in enumerate(node) if called(element) == name]


def _not_one(node: list, name: str, matches: list[int], path: Path) -> str:
    where, names = dotted(path), [called(element) for element in node]
    if matches:
        which = " or ".join(f"{where}.{i}" for i in matches[:_LISTED])
        which += " or …" if matches[_LISTED:] else ""
        return f"{len(matches)} elements of {where} are called {shortened(name)!r}; write {which}"
    known = [str(n) if n is not None else str(i) for i, n in enumerate(names)]
    near = nearest(name, known[:_NEAR])
    hint = f"did you mean {near!r}? " if near else ""
    listed = ", ".join(map(shortened, known[:_LISTED])) + (", …" if known[_LISTED:] else "")
    return f"no element of {where} is called {shortened(name)!r}; {hint}There are: {listed or 'none'}"


def _opened(old: object, form: Form | None, key: str, path: Path) -> Any:
    """What is at a place, as a table or list that `key` can be put into."""
    if isinstance(old, dict | list):
        return old
    index = key == "*" or key.isdecimal()
    if form is not None and form.item is not None and index:
        return [old] if old is not None else []
    if form is not None and form.tables:
        return {form.short: old} if form.short is not None and old is not None else {}
    if form is not None:
        raise UnclearError(f"{dotted(path)} is not a table, so there is no {shortened(key)!r} in it")
    return {}
