"""Saved times in few files, however often a run is saved.

A save adds a segment of its new times. One that is less than twice as long as all that comes after it is
merged with that, so that lengths at least halve from each segment to the next (with one time a save they are
the binary digits of their number). So n saved times lie in at most log₂ n + 1 segments, and each has been
written O(log n) times."""

from pathlib import Path

from ._data import Data
from .run import Row, put_rows


def length(entry: Data) -> int:
    """How many saved times a segment holds."""
    return int(entry["arrays"]["holds"]["t"][1][0])


def extended(path: Path, segments: list[Data], rows: tuple[Row, ...]) -> list[Data]:
    """Segments of all `rows`, of which the first are in `segments` already."""
    kept, start = list(segments), sum(map(length, segments))
    if start == len(rows):
        return kept
    while kept and length(kept[-1]) < 2 * (len(rows) - start):
        start -= length(kept.pop())
    return [*kept, put_rows(path, f"rows-{start:05d}", rows[start:])]
