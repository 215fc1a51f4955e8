"""Tables of a spec made from rows of the vocabulary: one per word, told apart by a tag."""

from typing import Annotated, Any, Literal, Union

from pydantic import Field, create_model

from .._data import Data
from ..vocabulary.word import Kind, Option, Vocabulary, Word
from .base import Part
from .kinds import TYPES, Activation


def tables(
    words: Vocabulary, tag: str, meaning: str, suffix: str = "", module: str = __name__
) -> dict[str, type[Part]]:
    """The table of each word, by its name: the tag, then its options."""
    return {word.name: table(word, tag, meaning, suffix, Part, module) for word in words.values()}


def table(word: Word, tag: str, meaning: str, suffix: str, base: type[Part], module: str) -> type[Part]:
    """The table of one word: the fields of `base`, the tag, then the options."""
    fields: Data = {tag: (Literal[word.name], Field(description=meaning))}
    fields |= {option.name: field(option) for option in word.options}
    title = "".join(part.capitalize() for part in word.name.split("_")) + suffix
    return create_model(title, __base__=base, __doc__=word.doc, __module__=module, **fields)


def field(option: Option) -> tuple[Any, Any]:
    """The type of an option, and its default and meaning."""
    kind = TYPES[option.kind]
    if option.required:
        return kind, Field(description=option.meaning)
    if option.default is None:
        return kind | None, Field(None, description=option.meaning)
    if option.kind is Kind.ACTIVATION:
        name = option.default
        return kind, Field(default_factory=lambda: Activation(name=name), description=option.meaning)
    return kind, Field(option.default, description=option.meaning)


def union(listed: dict[str, type[Part]], tag: str, *others: type[Part]) -> Any:
    """The type of a value that is one of these tables, as its tag says."""
    return Annotated[Union[(*listed.values(), *others)], Field(discriminator=tag)]
