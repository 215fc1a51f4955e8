"""Where the fields of a spec come from: a line of the file, or a change made on the command line."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .._data import Data
from .changes import Change, located
from .errors import Mistake, SpecError
from .lines import lines_of
from .paths import Path, dotted
from .words import shortened


@dataclass(frozen=True)
class Document:
    """A file as it was written, and the data after the changes."""

    source: str
    text: str
    data: Data
    changes: Sequence[Change] = field(default=())

    @cached_property
    def lines(self) -> dict[Path, int]:
        """The line of every key and list element that stands in the file."""
        return lines_of(self.text)

    def mistake(self, where: str | Path, message: str) -> Mistake:
        """A mistake at a field, named as errors name it or by its place in the data."""
        path = located(where, self.data) if isinstance(where, str) else where
        name = shortened(where if isinstance(where, str) else dotted(where, self.data))
        origin = self._origin(path)
        if isinstance(origin, Change):
            return Mistake(name, None, message, origin.said)
        return Mistake(name, origin, message, self.source)

    def error(self, where: str | Path, message: str) -> SpecError:
        """An error with this one mistake."""
        return SpecError([self.mistake(where, message)])

    def _origin(self, path: Path) -> Change | int | None:
        """What wrote a field: the last change that set it, or its line; or those of the table around it."""
        for change in reversed(self.changes):
            if any(_within(path, place) for place in change.paths):
                return change
        for around in (path[:n] for n in range(len(path), 0, -1)):
            if around in self.lines:
                return self.lines[around]
            for change in reversed(self.changes):
                if any(_within(place, around) for place in change.paths):
                    return change
        return None


def _within(path: Path, table: Path) -> bool:
    return path[: len(table)] == table
