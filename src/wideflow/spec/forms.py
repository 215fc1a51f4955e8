"""What may stand at a place of a spec, read off the typed model: which tables, lists and values."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter
from pydantic.fields import FieldInfo

from .base import Listed, Part, Short


@dataclass(frozen=True, eq=False)
class Form:
    """One place. `tables` may stand here, chosen by the value of their key `tag` if there are several;
    `item` is what the elements of a list are, if a list may stand here and of one kind only; `listed`,
    whether one element may stand for the list of it alone."""

    annotation: Any
    tables: tuple[type[Part], ...] = ()
    tag: str | None = None
    item: "Form | None" = None
    listed: bool = False
    description: str = ""
    most: int | None = None  # elements of a list

    @cached_property
    def adapter(self) -> TypeAdapter:
        """Validates what stands here."""
        own = isinstance(self.annotation, type) and issubclass(self.annotation, Part)
        return TypeAdapter(self.annotation, config=None if own else ConfigDict(strict=True))

    @property
    def short(self) -> str | None:
        """The field that a value stands for in place of the table."""
        table = self.tables[0] if len(self.tables) == 1 else None
        return table.short if table is not None and issubclass(table, Short) else None

    def tags(self) -> dict[str, type[Part]]:
        """The value of the tag of each table."""
        return {} if self.tag is None else {tag_value(table, self.tag): table for table in self.tables}

    def is_too_long(self, value: list) -> bool:
        """Whether a list has more elements than may stand here."""
        return self.most is not None and len(value) > self.most

    def default(self) -> type[Part] | None:
        """The table that is meant where the tag is left out."""
        if self.tag is None:
            return self.tables[0] if self.tables else None
        return next((t for t in self.tables if not t.model_fields[self.tag].is_required()), None)

    def chosen(self, value: object) -> type[Part] | None:
        """The table that `value` is meant to be, None if it does not say."""
        if not isinstance(value, dict):
            return None
        if self.tag is None or self.tag not in value:
            return self.default()
        tag = value[self.tag]
        return self.tags().get(tag) if isinstance(tag, str) else None


def tag_value(table: type[Part], tag: str) -> str:
    """The only value that the field `tag` of `table` may have."""
    return get_args(table.model_fields[tag].annotation)[0]


@cache
def of(table: type[Part], name: str) -> Form:
    """The form of a field."""
    info = table.model_fields[name]
    annotated = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
    return _form(annotated, info.description or "")


@cache
def whole(table: type[Part]) -> Form:
    """The form of a file that holds one such table."""
    return Form(table, (table,))


def _form(annotation: object, description: str) -> Form:
    tables: list[type[Part]] = []
    lists: list[tuple[Any, tuple]] = []
    for kind, metadata in branches(annotation):
        if isinstance(kind, type) and issubclass(kind, Part):
            tables.append(kind)
        elif get_origin(kind) is list:
            lists.append((get_args(kind)[0], metadata))
    return Form(
        annotation=annotation,
        tables=tuple(tables),
        tag=_tag(tables) if len(tables) > 1 else None,
        item=_form(lists[0][0], description) if len(lists) == 1 else None,
        listed=len(lists) == 1 and Listed in lists[0][1],
        description=description,
        most=limit(lists[0][1], "max_length") if len(lists) == 1 else None,
    )


def branches(annotation: object, metadata: tuple = ()) -> list[tuple[Any, tuple]]:
    """The kinds of a union, nested ones included, each with what was annotated to it; None left out."""
    if get_origin(annotation) is Annotated:
        kind, *more = get_args(annotation)
        return branches(kind, (*metadata, *flat(more)))
    if get_origin(annotation) in (Union, UnionType):
        return [branch for kind in get_args(annotation) for branch in branches(kind, metadata)]
    return [] if annotation is NoneType else [(annotation, metadata)]


def limit(metadata: tuple, name: str) -> Any:
    """The bound of this name (`ge`, `max_length`, …) among what was annotated; None if there is none."""
    return next((getattr(m, name) for m in metadata if getattr(m, name, None) is not None), None)


def flat(metadata: Iterable) -> list:
    """Metadata, those inside a Field(…) included."""
    return [m for entry in metadata for m in (entry.metadata if isinstance(entry, FieldInfo) else [entry])]


def _tag(tables: list[type[Part]]) -> str | None:
    """The field that has one value in each of the tables, another in each."""
    for name in tables[0].model_fields:
        kinds = [table.model_fields[name].annotation for table in tables if name in table.model_fields]
        words = {get_args(kind) for kind in kinds if get_origin(kind) is Literal and len(get_args(kind)) == 1}
        if len(words) == len(tables):
            return name
    return None
