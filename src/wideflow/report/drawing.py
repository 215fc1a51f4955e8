"""What a figure of a report is made of, and what it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..study.groups import Group


@dataclass(frozen=True)
class Shown:
    """What there is to draw: the groups of runs, the label of the coordinate that is looked at as a feature,
    and the names of the coordinates of the clouds of neurons."""

    groups: list[Group]
    feature: str = ""
    cloud: tuple[str, ...] = ()

    @property
    def ready(self) -> list[Group]:
        """The groups that have runs with something saved."""
        return [group for group in self.groups if group.runs and len(group.times())]


@dataclass(frozen=True)
class Drawing:
    """A figure for a section of the page, what it shows in words, and what to read in it."""

    section: str
    name: str
    figure: Any
    alt: str
    caption: str


Maker = Callable[[Shown], Sequence[Drawing]]  # none, where there is nothing to draw
