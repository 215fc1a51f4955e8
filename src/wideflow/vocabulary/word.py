"""One row of the vocabulary, and a table of rows."""

import contextlib
import enum
import importlib
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._data import Data
from .._shown import shown


class Kind(enum.Enum):
    """What may stand for an option; `spec.kinds` says how each is checked and described."""

    NUMBER = enum.auto()  # finite
    POSITIVE = enum.auto()  # finite and > 0
    NOT_NEGATIVE = enum.auto()  # finite and >= 0
    FRACTION = enum.auto()  # >= 0 and < 1
    COUNT = enum.auto()  # a whole number >= 1
    INDEX = enum.auto()  # a whole number >= 0
    FLAG = enum.auto()  # true or false
    DIMENSION = enum.auto()  # a whole number >= 1, or inf
    VECTOR = enum.auto()  # a list of finite numbers
    MATRIX = enum.auto()  # a list of such lists
    COVARIANCE = enum.auto()  # a number > 0, a vector or a matrix
    ACTIVATION = enum.auto()  # the name of an activation, or a table with its options
    OPTIMISER = enum.auto()  # a name in `vocabulary.optimisers`
    TEMPERATURE = enum.auto()  # β > 0, inf for no noise
    SCHEDULE = enum.auto()  # β, or a table that says how it changes in time
    COORDINATES = enum.auto()  # names of coordinates of θ


REQUIRED = object()  # the default of an option that must be given


@dataclass(frozen=True)
class Option:
    """An option of a word: the parameter of the same name of its constructor, with the same default.

    `symbol` is what a report calls it (none: a report leaves it out); `latex(value)` how it stands in the
    word's formula, where that is not the value itself; `on_grid`, whether it is for densities alone."""

    name: str
    kind: Kind
    meaning: str
    default: Any = REQUIRED
    symbol: str = ""
    latex: Callable[..., str] | None = None
    on_grid: bool = False

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True)
class Word:
    """A name that a user writes, and all that is known about it.

    - `made_by`: the constructor, as a dotted path inside the library (or the callable itself, for a word that
      is added at run time); it takes the options by name.
    - `formula`: in plain text, as docstrings and the reference have it; `latex` the same for reports, where
      `$name` stands for the value of an option.
    - `about`: a few words beside the formula, where it needs any.
    - `sources`: keys of `wideflow.references`."""

    name: str
    made_by: str | Callable
    formula: str
    latex: str
    options: tuple[Option, ...] = ()
    about: str = ""
    sources: tuple[str, ...] = ()

    def constructor(self) -> Callable:
        """What makes it; a path is imported when it is first needed."""
        if callable(self.made_by):
            return self.made_by
        module, _, name = self.made_by.rpartition(".")
        return getattr(importlib.import_module(f"wideflow.{module}"), name)

    def defaults(self) -> Data:
        """The options that may be left out, with their default values."""
        return {option.name: option.default for option in self.options if not option.required}

    @property
    def doc(self) -> str:
        """What it is, in one line."""
        return f"{self.formula}; {self.about}." if self.about else f"{self.formula}."

    def typeset(self, options: Mapping[str, object], show: Callable[[object], str] = str, **more: str) -> str:
        """The formula in LaTeX with these values of its options (the defaults of others), as `show` writes
        them; `more` fills the other placeholders of the formula."""
        template = string.Template(self.latex)
        used = [option for option in self.options if option.name in template.get_identifiers()]
        values = self.defaults() | dict(options)
        texts = {option.name: (option.latex or show)(values[option.name]) for option in used}
        return template.substitute(texts | more)

    def check(self, kind: str, options: Mapping[str, object]) -> None:
        """Raise for options that it does not have, and for those that are missing. `kind` is what it is."""
        takes = ", ".join(option.name for option in self.options) or "no options"
        if unknown := sorted(set(options) - {option.name for option in self.options}):
            raise ValueError(f"{kind} {self.name!r} has no option {shown(unknown)}; it takes {takes}.")
        if missing := sorted(o.name for o in self.options if o.required and o.name not in options):
            raise ValueError(f"{kind} {self.name!r} needs the option {missing}; it takes {takes}.")


class Vocabulary(Mapping[str, Word]):
    """Words by their names, in order. `kind` says what they are: "activation", "loss", …"""

    def __init__(self, kind: str, *words: Word):
        self.kind = kind
        self._words: dict[str, Word] = {}
        for word in words:
            self.add(word)

    def add(self, word: Word) -> None:
        """Add a word. Specs know those that existed when `wideflow.spec` was imported."""
        if word.name in self._words:
            raise ValueError(f"There is already {self.kind} {word.name!r}; give it another name.")
        self._words[word.name] = word

    @contextlib.contextmanager
    def adding(self, word: Word) -> Iterator[None]:
        """The word, for as long as the context lasts."""
        self.add(word)
        try:
            yield
        finally:
            del self._words[word.name]

    def __getitem__(self, name: str) -> Word:
        return self._words[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __len__(self) -> int:
        return len(self._words)
