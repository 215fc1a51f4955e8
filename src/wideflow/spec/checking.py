"""Every mistake of a spec's data, each at its own place and reported once.

The typed model decides what is right; this walk says what is wrong, table by table in the user's own words. A
table whose kind is unknown is not looked into, as all its other keys may be right for the kind that was
meant.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from pydantic import ValidationError

from . import forms
from .base import Part
from .errors import MOST
from .forms import Form
from .paths import Path
from .places import homes
from .study import Spec
from .suggestions import nearest
from .words import allowed, choices, shown

# A place, and what makes its message: words for all mistakes of a huge file would take minutes.
Finding = tuple[Path, Callable[[], str]]
_HOMES = 5  # tables that are named as the home of a key


def mistakes(data: object) -> list[Finding]:
    """What is wrong with the data of a spec: places, and what makes their messages; empty if nothing is."""
    return list(_value(forms.whole(Spec), data, ()))


def _value(form: Form, value: object, path: Path) -> Iterator[Finding]:
    """A value of any kind at a place."""
    if isinstance(value, dict) and form.tables:
        yield from _table(form, value, path)
    elif isinstance(value, list) and form.item is not None and not form.is_too_long(value):
        inside = [
            finding for i, element in enumerate(value) for finding in _value(form.item, element, (*path, i))
        ]
        yield from inside or _plain(form, value, path)
    elif form.listed and form.item is not None and not isinstance(value, list):
        yield from _value(form.item, value, path)
    elif form.short is not None and form.tables:
        if any(_value(forms.of(form.tables[0], form.short), value, path)):
            yield path, partial(_refused, form, value)
    else:
        yield from _plain(form, value, path)


def _plain(form: Form, value: object, path: Path) -> Iterator[Finding]:
    """A value that is not a table, or may not be one."""
    try:
        form.adapter.validate_python(value)
    except ValidationError:
        yield path, partial(_refused, form, value)


def _refused(form: Form, value: object) -> str:
    if isinstance(value, dict) and form.item is not None and form.item.tables:
        return "must be a list of tables, got one table: write it in double brackets, as in [[dynamics]]"
    close = nearest(value, choices(form)) if isinstance(value, str) else None
    meaning = f" ({form.description})" if form.description else ""
    hint = f"; did you mean {shown(close)}?" if close else ""
    return f"must be {allowed(form)}, got {shown(value)}{hint}{meaning}"


def _table(form: Form, value: dict, path: Path) -> Iterator[Finding]:
    """A table: its kind, its keys, what they hold, and what holds between them."""
    misspelt = _misspelt_tag(form, value)
    if misspelt is not None:
        message = f"unknown key; did you mean {form.tag!r}? It says which table this is"
        yield (*path, misspelt), lambda: message
        return
    table = form.chosen(value)
    if table is None:
        yield (*path, str(form.tag)), partial(_unknown_kind, form, value)
        return
    meant = _meant(table, value)
    findings: list[Finding] = []
    for key in value:
        if key in table.model_fields:
            findings += _value(forms.of(table, key), value[key], (*path, key))
        else:
            findings.append(((*path, key), partial(_unknown_key, form, table, key, value)))
    for key, info in table.model_fields.items():
        if info.is_required() and key not in value and key not in meant:
            findings.append(((*path, key), partial(_missing, forms.of(table, key))))
    yield from findings
    yield from _between(table, value, path, {place[: len(path) + 1] for place, _ in findings})


def _missing(field: Form) -> str:
    return f"missing: {field.description} ({allowed(field)})"


def _meant(table: type[Part], value: dict) -> set[str | None]:
    """The keys of the table that unknown ones, the first few of them, were meant to be."""
    unknown = (key for key in value if key not in table.model_fields)
    return {nearest(key, table.model_fields, value) for key in islice(unknown, MOST)}


def _unknown_kind(form: Form, value: dict) -> str:
    tag, known = str(form.tag), list(form.tags())
    if tag not in value:
        return f"missing: it says which table this is. Allowed: {', '.join(map(shown, known))}"
    tagged = value[tag]
    close = nearest(tagged, known) if isinstance(tagged, str) else None
    hint = f"; did you mean {shown(close)}?" if close else "."
    return f"unknown {tag} {shown(tagged)}{hint} Allowed: {', '.join(map(shown, known))}"


def _misspelt_tag(form: Form, value: dict) -> str | None:
    """The key that was meant to be the tag, if that is not there."""
    if form.tag is None or form.tag in value:
        return None
    known = list(dict.fromkeys(key for table in form.tables for key in table.model_fields))
    unknown = islice((key for key in value if key not in known), MOST)
    return next((key for key in unknown if nearest(key, known, value) == form.tag), None)


def _unknown_key(form: Form, table: type[Part], key: str, value: dict) -> str:
    near = nearest(key, table.model_fields, value)
    others = [tag for tag, other in form.tags().items() if key in other.model_fields]
    if others and form.tag:
        tagged = value.get(form.tag, forms.tag_value(table, form.tag))
        where = " or ".join([*map(shown, others[:_HOMES]), *(["others"] if len(others) > _HOMES else [])])
        return f"unknown key with {form.tag} = {shown(tagged)}; it goes with {where}." + _keys(table)
    elsewhere = [name or "the top of the file" for name in homes(key)][:3]
    known = f" ({key!r} is a key of {', '.join(elsewhere)})" if elsewhere else ""
    return (f"unknown key; did you mean {near!r}?" if near else "unknown key.") + known + _keys(table)


def _keys(table: type[Part]) -> str:
    return f" Allowed: {', '.join(table.model_fields)}"


def _between(table: type[Part], value: dict, path: Path, wrong: set[Path]) -> Iterator[Finding]:
    """What the table's own validators say about keys that do not go together, where nothing else is wrong."""
    try:
        table.model_validate(value)
    except ValidationError as error:
        for entry in error.errors(include_url=False, include_input=False):
            place = (*path, *entry["loc"])
            if entry["type"] == "value_error" and len(entry["loc"]) <= 1 and place not in wrong:
                yield place, partial(str, entry["ctx"]["error"])
