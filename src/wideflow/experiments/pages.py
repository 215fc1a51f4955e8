"""One page of all reproductions in a folder: every claim beside what was measured."""

from collections.abc import Collection
from pathlib import Path

from markupsafe import Markup

from ..page.document import Section, document
from ..page.numbers import plus_minus, short
from ..page.parts import fold, join, link, paragraph, picture, table, verdict
from ..store.folder import write_text
from ..store.opening import DamagedError
from . import records
from .base import Check
from .catalogue import EXPERIMENTS
from .records import Record
from .sources import text_hash

PAGE = "index.html"
_HEAD = ("Experiment", "What", "Claimed", "Measured", "Allowed", "Verdict")
_COLOURS = {"PASS": "#00664B", "FAIL": "#A63A00", "ERROR": "#A63A00"}  # dark enough to be read on white


def write(out: Path) -> Path:
    """Write `out/index.html` from the records in the folder. What was made by other code is marked so, and
    what is damaged is only named."""
    whole: list[Record] = []
    damaged: list[str] = []
    for name in EXPERIMENTS:
        try:
            record = records.read(out, name)
        except DamagedError:
            damaged.append(name)
        else:
            whole += [] if record is None else [record]
    pictures = {r.name: records.picture(out, r.name).read_bytes() for r in whole if r.figure is not None}
    older = {record.name for record in whole if record.code != text_hash(EXPERIMENTS[record.name].module)}
    write_text(out / PAGE, page(whole, pictures, older, damaged))
    return out / PAGE


def page(
    reproduced: list[Record],
    pictures: dict[str, bytes],
    older: Collection[str] = (),
    damaged: Collection[str] = (),
) -> str:
    """The page as text, with the pictures of the records by name, and the names of those of other code and of
    those that are damaged."""
    rows = [_row(record.name, check) for record in reproduced for check in record.checks]
    rows += [_error_row(record) for record in reproduced if record.error is not None]
    caption = (
        "Each figure measured, ± one standard error unless it is exact, beside the figure claimed and what "
        "is allowed."
    )
    summary = Section("Every claim", table(_HEAD, rows, caption, align="llllll"))
    sections = [summary] if rows else []
    sections += [
        Section(r.name, _body(r, pictures.get(r.name), r.name in older), id=r.name) for r in reproduced
    ]
    if damaged:
        text = f"The records of {', '.join(damaged)} are damaged or were edited: run them again."
        sections.insert(0, Section("Damaged records", paragraph(text)))
    footer = "Made by `wideflow reproduce`."
    return document(
        "Reproductions of published claims", sections, lead=verdict(summed(reproduced)), footer=footer
    )


def summed(reproduced: list[Record]) -> str:
    """ "13 of 14 claims hold; 1 of 15 is not run yet." """
    small, listed = [record for record in reproduced if record.reduced], len(EXPERIMENTS)
    full = [record for record in reproduced if not record.reduced]
    holding, total = sum(record.passed for record in full), len(full)
    text = f"{holding} of {total} claims hold"
    failed = [r.name for r in full if not r.passed]
    text += f" (not: {', '.join(failed)})" if failed else ""
    are = "is" if listed - total == 1 else "are"
    text += f"; {listed - total} of {listed} {are} not run yet." if total < listed else "."
    passed = sum(record.passed for record in small)
    return text + (
        f" At a reduced size, which does not test a claim, {passed} of {len(small)} pass." if small else ""
    )


def _row(name: str, check: Check) -> tuple[str, ...]:
    return (
        link(f"#{name}", name),
        check.what,
        check.claimed,
        _measured(check),
        _allowed(check),
        _verdict(check),
    )


def _error_row(record: Record) -> tuple[str, ...]:
    return link(f"#{record.name}", record.name), record.error or "", "–", "–", "–", _coloured("ERROR")


def _measured(check: Check) -> str:
    exact = check.error == 0  # a count, or a figure without chance in it
    return _unbroken(short(check.measured, 4) if exact else plus_minus(check.measured, check.error))


def _allowed(check: Check) -> str:
    low, high = ("−∞" if check.low == -float("inf") else short(check.low)), short(check.high)
    return _unbroken(f"{low} … {'∞' if check.high == float('inf') else high}")


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _verdict(check: Check) -> Markup:
    return _coloured("PASS" if check.passed else "FAIL")


def _coloured(word: str) -> Markup:
    return Markup('<strong style="color: {}">{}</strong>').format(_COLOURS[word], word)


def _body(record: Record, figure: bytes | None, older: bool) -> Markup:
    took = f"{record.seconds:.0f} s" if record.seconds < 90 else f"{record.seconds / 60:.1f} min"
    passed = sum(check.passed for check in record.checks)
    summary = (
        f" {passed} of {len(record.checks)} checks hold, in {took}." if record.checks else f" After {took}."
    )
    parts = [
        Markup("<p><strong>{}</strong></p>").format(record.claim),
        paragraph(record.source),
        Markup("<p>{}{}</p>").format(_coloured(record.verdict), summary),
    ]
    if record.reduced:
        parts.append(paragraph("This was made at a reduced size: it says nothing about the published claim."))
    if older:
        parts.append(paragraph("This was made by another version of the code; run it again to renew it."))
    if record.error is not None:
        parts.append(Markup("<p>It stopped with <code>{}</code></p>").format(record.error))
    if figure is not None:
        parts.append(picture(figure, f"Figure of {record.name}: {record.claim}"))
    versions = [(name, version) for name, version in record.versions.items()]
    parts.append(fold("Versions", table(("part", "version"), versions, f"Made on {record.date}.")))
    return join(*parts)
