"""What all answers share: their form, and numbers in words."""

from collections.abc import Sequence
from typing import NamedTuple

from ..._data import Data
from ...page.numbers import estimate, plus_minus, short

MOST = 5  # runs that an answer tells in full

Row = Data


class Answer(NamedTuple):
    """A leading sentence, and points that tell single runs."""

    lead: str
    points: tuple[str, ...] = ()


def picked(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """At most `MOST` rows, both ends of a sweep among them, and a sentence on how many more there are."""
    if len(rows) <= MOST:
        return list(rows), ""
    places = sorted({round(i * (len(rows) - 1) / (MOST - 1)) for i in range(MOST)})
    more = len(rows) - len(places)
    return [rows[i] for i in places], f"{more} more in the table of results."


def network(row: Row) -> str:
    """A group by its method, width and scale."""
    some = "" if row["ended"] == row["seeds"] else f", {row['ended']} of {row['seeds']} seeds"
    return f"{row['method name']} (n = {row['width']}, {row['scaling']}{some})"


def percent(entry: Data) -> str:
    """A share with its error, in percent."""
    of_hundred = {key: None if v is None else 100 * v for key, v in entry.items()}
    return f"{estimate(of_hundred, 2)} %"


def between(values: Sequence[float]) -> str:
    """The range of some numbers."""
    low, high = short(min(values), 2), short(max(values), 2)
    return low if low == high else f"{low} to {high}"


def value(entry: Data) -> str:
    """A settled value with its error, if it has one."""
    return plus_minus(entry["value"], entry["error"]) if entry["error"] else short(entry["value"], 3)


def sentence(text: str) -> str:
    """With a capital at its beginning and one full stop at its end."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
