"""What may stand at a place, in words: `a number > 0 or "sqrt(n)", or a list of these`."""

import datetime
import json
from typing import Literal, get_args, get_origin

from .base import Listed, Part, Said
from .forms import Form, branches, limit, of, tag_value

_LONGEST = 60


def allowed(form: Form) -> str:
    """What may stand there."""
    kinds = [_kind(kind, metadata) for kind, metadata in branches(form.annotation) if not _is_table(kind)]
    inner = form
    while inner.short is not None:
        inner = of(inner.tables[0], inner.short)
    kinds += [_kind(kind, metadata) for kind, metadata in branches(inner.annotation) if inner is not form]
    return " or ".join([*kinds, *([_tables(form)] if form.tables else [])])


def choices(form: Form) -> list[str]:
    """The words that may stand there, if words may."""
    kinds = [kind for kind, _ in branches(form.annotation) if get_origin(kind) is Literal]
    inside = choices(form.item) if form.listed and form.item else []
    inside += choices(of(form.tables[0], form.short)) if form.short else []
    return [word for kind in kinds for word in get_args(kind) if isinstance(word, str)] + inside


def shown(value: object) -> str:
    """A value as it would stand in the file, shortened."""
    if isinstance(value, dict):
        return "a table" if value else "an empty table"
    if isinstance(value, list):
        return f"a list of {len(value)}" if len(value) > 3 or any(map(_long, value)) else _list(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= 10**18:
        return "a huge whole number"
    if isinstance(value, datetime.date | datetime.time):
        return f"the date {value.isoformat()}"
    if isinstance(value, str):
        return shortened(json.dumps(value[: 2 * _LONGEST], ensure_ascii=False))
    return shortened(repr(value))


def shortened(text: str) -> str:
    """As much of a text as a message quotes."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _list(values: list) -> str:
    return "[" + ", ".join(map(shown, values)) + "]"


def _long(value: object) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and len(value) > 20)


def _is_table(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Part)


def _tables(form: Form) -> str:
    if form.tag is not None:
        return f"a table with {form.tag} = " + _or([json.dumps(tag_value(t, form.tag)) for t in form.tables])
    return f"a table of {', '.join(form.tables[0].model_fields)}"


def _kind(kind: object, metadata: tuple, many: bool = False) -> str:
    wording = next((m.text for m in metadata if isinstance(m, Said)), None)
    if wording is not None:
        return wording
    if get_origin(kind) is Literal:
        words = [json.dumps(word, ensure_ascii=False) for word in get_args(kind)]
        return words[0] if len(words) == 1 else "one of " + ", ".join(words)
    if get_origin(kind) is list:
        return _list_of(get_args(kind)[0], metadata, many)
    if kind is bool:
        return "true or false"
    if kind is str:
        most = limit(metadata, "max_length")
        return ("texts" if many else "text") + " in quotes" + (f" of at most {most} letters" if most else "")
    return _number(kind, metadata, many)


def _number(kind: object, metadata: tuple, many: bool) -> str:
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    limits = {name: limit(metadata, name) for name in signs}
    range_ = " and ".join(f"{signs[name]} {bound}" for name, bound in limits.items() if bound is not None)
    bounded = limits["le"] is not None or limits["lt"] is not None
    infinite = kind is float and not bounded and limit(metadata, "allow_inf_nan") is not False
    noun = ("whole " if kind is int else "") + ("numbers" if many else "number")
    return f"{noun if many else 'a ' + noun} {range_}".strip() + (" or inf" if infinite else "")


def _list_of(item: object, metadata: tuple, many: bool) -> str:
    if Listed in metadata:
        one = " or ".join("a table" if _is_table(k) else _kind(k, m) for k, m in branches(item))
        most = limit(metadata, "max_length")
        return f"{one}, or a list of " + (f"at most {most} such" if most and most > 3 else "such")
    inside = " or ".join("tables" if _is_table(k) else _kind(k, m, True) for k, m in branches(item))
    inside = "tables" if inside.startswith("tables") else inside
    least, most = limit(metadata, "min_length"), limit(metadata, "max_length")
    size = f" {least}" if least == most and least else f" at least {least}" if least and least > 1 else ""
    size += f" at most {most}" if most and least != most and most > 3 else ""
    return ("lists of" if many else "a list of") + f"{size} {inside}"


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]
