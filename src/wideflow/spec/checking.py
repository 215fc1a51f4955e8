"""Every mistake of a spec's data, each at its own place and said once.

The typed model decides what is right; this walk says what is wrong, table by table in the user's own words. A
table whose kind is unknown is not looked into, as its other keys may all be right for the kind that is meant.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from . import forms
from .base import Part
from .forms import Form
from .paths import Path
from .suggestions import nearest
from .words import allowed, choices, shown

Found = tuple[Path, str]


def mistakes(table: type[Part], data: Any) -> list[Found]:
    """What is wrong with `data`, taken as a `table`: places and messages; empty if nothing is."""
    return list(_value(forms.whole(table), data, ()))


def _value(form: Form, value: Any, path: Path) -> Iterator[Found]:
    """A value of any kind at a place."""
    if isinstance(value, dict) and form.tables:
        yield from _table(form, value, path)
    elif isinstance(value, list) and form.item is not None:
        inside = [
            found for i, element in enumerate(value) for found in _value(form.item, element, (*path, i))
        ]
        yield from inside or _plain(form, value, path)
    elif isinstance(value, dict | list) and form.short is None:
        yield from _plain(form, value, path)
    elif form.listed and form.item is not None:
        yield from _value(form.item, value, path)
    elif form.short is not None and form.tables:
        if any(_value(forms.of(form.tables[0], form.short), value, path)):
            yield path, _refused(form, value)
    else:
        yield from _plain(form, value, path)


def _plain(form: Form, value: Any, path: Path) -> Iterator[Found]:
    """A value that is no table, or not allowed to be one."""
    try:
        form.adapter.validate_python(value)
    except ValidationError:
        yield path, _refused(form, value)


def _refused(form: Form, value: Any) -> str:
    close = nearest(value, choices(form)) if isinstance(value, str) else None
    meaning = f" ({form.description})" if form.description else ""
    if isinstance(value, dict) and form.item is not None and form.item.tables:
        return "must be a list of tables, got one table: write [[…]] in double brackets above each"
    hint = f"; did you mean {shown(close)}?" if close else ""
    return f"must be {allowed(form)}, got {shown(value)}{hint}{meaning}"


def _table(form: Form, value: dict, path: Path) -> Iterator[Found]:
    """A table: its kind, its keys, what they hold, and what holds between them."""
    table = form.chosen(value)
    if table is None:
        yield from _unknown_kind(form, value, path)
        return
    meant = set()
    found: list[Found] = []
    for key in value:
        if key in table.model_fields:
            found += _value(forms.of(table, key), value[key], (*path, key))
        else:
            near = nearest(key, [k for k in table.model_fields if k != form.tag], value)
            meant.add(near)
            found.append(((*path, key), _unknown_key(form, table, key, near, value)))
    for key, info in table.model_fields.items():
        if info.is_required() and key not in value and key not in meant:
            field = forms.of(table, key)
            found.append(((*path, key), f"missing: {field.description} ({allowed(field)})"))
    yield from found or _between(table, value, path)


def _unknown_kind(form: Form, value: dict, path: Path) -> Iterator[Found]:
    tag, known = str(form.tag), list(form.tags())
    if tag in value:
        given = value[tag]
        close = nearest(given, known) if isinstance(given, str) else None
        hint = f"; did you mean {shown(close)}?" if close else "."
        yield (*path, tag), f"unknown {tag} {shown(given)}{hint} Allowed: {', '.join(map(shown, known))}"
        return
    near = next((key for key in value if nearest(key, [tag]) and not _known_to_all(form, key)), None)
    if near is not None:
        yield (*path, near), f"unknown key; did you mean {tag!r}? It says which table this is"
    else:
        yield (*path, tag), f"missing: it says which table this is. Allowed: {', '.join(map(shown, known))}"


def _known_to_all(form: Form, key: str) -> bool:
    return any(key in table.model_fields for table in form.tables)


def _unknown_key(form: Form, table: type[Part], key: str, near: str | None, value: dict) -> str:
    others = [tag for tag, other in form.tags().items() if key in other.model_fields]
    if others and form.tag:
        given = value.get(form.tag, forms.tag_value(table, form.tag))
        where = " or ".join(map(shown, others))
        return f"unknown key with {form.tag} = {shown(given)}; it goes with {where}." + _keys(table)
    return (f"unknown key; did you mean {near!r}?" if near else "unknown key.") + _keys(table)


def _keys(table: type[Part]) -> str:
    return f" Allowed: {', '.join(table.model_fields)}"


def _between(table: type[Part], value: dict, path: Path) -> Iterator[Found]:
    """What the table says itself of keys that do not go together; all else of it is right."""
    try:
        table.model_validate(value)
    except ValidationError as error:
        for entry in error.errors(include_url=False, include_input=False):
            if not entry["loc"]:
                yield path, str(entry.get("ctx", {}).get("error", entry["msg"]))
