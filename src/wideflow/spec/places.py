"""Every table of a spec, and where it may stand."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from . import forms
from .base import Part
from .forms import Form
from .study import Spec


@dataclass(frozen=True)
class Place:
    """A `table` that may stand at `name` (`dynamics.*` for an element of the list), whose form is `form`, if
    the table `parent` stands around it."""

    name: str
    form: Form
    table: type[Part]
    parent: "Place | None" = None

    def field(self, key: str) -> str:
        """The name of a field of the table."""
        return f"{self.name}.{key}".removeprefix(".")


@cache
def places() -> tuple[Place, ...]:
    """All of them, the whole first."""
    return tuple(_inside("", forms.whole(Spec), None))


def homes(key: str) -> list[str]:
    """The names of the tables that have such a key."""
    return list(dict.fromkeys(place.name for place in places() if key in place.table.model_fields))


def _inside(name: str, form: Form, parent: Place | None) -> Iterator[Place]:
    for table in form.tables:
        place = Place(name, form, table, parent)
        yield place
        for key in table.model_fields:
            yield from _inside(place.field(key), forms.of(table, key), place)
    if form.item is not None:
        yield from _inside(f"{name}.*", form.item, parent)
