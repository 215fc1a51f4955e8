"""Experiments performed one by one: what is done is kept, and not done again unless the code has changed."""

import datetime
import io
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__
from ..store.folder import SaveError
from ..store.opening import DamagedError
from ..store.retrying import retried
from . import pages, records
from .base import Check
from .catalogue import Experiment, chosen
from .records import Record
from .sources import text_hash

OUT, OUT_REDUCED = Path("out/reproductions"), Path("out/reproductions-reduced")
Say = Callable[[str, str], None]


class Result(NamedTuple):
    """The record of one experiment, and whether it was there already."""

    record: Record
    already: bool


def reproduce(
    names: Iterable[str] = (),
    out: str | Path | None = None,
    *,
    fresh: bool = False,
    reduced: bool = False,
    say: Say | None = None,
) -> Iterator[Result]:
    """Perform experiments (all, if no names are given) in float64, and yield the result of each.

    `out/NAME.json` is the record, `out/NAME.png` the figure, and `out/index.html` the page of all records in
    the folder, written anew after each experiment. One whose record is whole, and was made by the same text
    of its module and of all that it imports from the package, with the same settings, is not performed again
    unless `fresh`; of one that was damaged or edited a warning tells why it is. One that raises is recorded
    as an error, and the next goes on. `say(name, text)` is told how far each is. An unknown name is a
    ValueError, raised at once. A record that the disk does not take is a `SaveError`.

    `reduced` performs each at the small size of the tests (its `REDUCED` settings), into a folder of its own
    by default; such a record says so, and never stands for the published claim."""
    out = (OUT_REDUCED if reduced else OUT) if out is None else Path(out)
    return _results(chosen(names), out, fresh, reduced, say or (lambda name, text: None))


def _results(
    experiments: list[Experiment], out: Path, fresh: bool, reduced: bool, say: Say
) -> Iterator[Result]:
    for experiment in experiments:
        code = text_hash(experiment.module)
        known = None if fresh else _known(experiment, code, out, reduced)
        already = known is not None
        if known is None:
            record, figure = _performed(experiment, code, reduced, say)
            known = _saved(out, record, figure)
        pages.write(out)
        yield Result(known, already)


def _known(experiment: Experiment, code: str, out: Path, reduced: bool) -> Record | None:
    """What is there of this very experiment, whole and of the same code and settings."""
    try:
        record = records.read(out, experiment.name)
    except DamagedError as error:
        warnings.warn(f"{error} The experiment is performed again.", stacklevel=4)
        return None
    if record is None or record.error is not None or record.code != code or record.reduced != reduced:
        return None
    listed = (experiment.claim, experiment.source, experiment.settings(reduced))
    return record if (record.claim, record.source, record.settings) == listed else None


def _saved(out: Path, record: Record, figure: bytes | None) -> Record:
    try:
        return retried(lambda: records.write(out, record, figure))
    except OSError as error:
        why = error.strerror or error
        raise SaveError(
            error.errno, f"{record.name} was performed ({record.verdict}), but not saved: {why}", str(out)
        ) from error


def _performed(experiment: Experiment, code: str, reduced: bool, say: Say) -> tuple[Record, bytes | None]:
    import jax

    from ..provenance import versions

    say(experiment.name, "loading")
    begun, picture, error = time.monotonic(), None, None
    checks: tuple[Check, ...] = ()
    try:
        with jax.enable_x64(True):  # slopes of small gaps want digits
            outcome = experiment.load(reduced)(lambda text: say(experiment.name, text))
            checks, picture = tuple(outcome.checks), _png(outcome.figure)
    except Exception as raised:
        checks, error = (), f"{type(raised).__name__}: {raised}"
    finally:
        jax.clear_caches()  # or the compiled programs of all experiments fill gigabytes
    record = Record(
        name=experiment.name,
        claim=experiment.claim,
        source=experiment.source,
        checks=checks,
        seconds=round(time.monotonic() - begun, 2),
        version=__version__,
        versions=versions(),
        code=code,
        settings=experiment.settings(reduced),
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        error=error,
        reduced=reduced,
    )
    return record, picture


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()
