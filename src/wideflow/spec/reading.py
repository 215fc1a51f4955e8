"""A spec read from TOML text: the typed `Spec`, or every mistake at once."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import ValidationError

from .._data import Data
from . import changes as _changes
from .changes import Change
from .checking import Finding, mistakes
from .document import Document
from .errors import MOST, Mistake, SpecError
from .paths import Path
from .study import Spec
from .words import shortened

_PLACE = re.compile(r"^(.*?) \(at (?:line (\d+), column (\d+)|end of document)\)$", re.DOTALL)
_DEEPEST = 32
LARGEST = 2**20  # letters of a spec, or bytes
_HINTED = 120  # letters of a line that a hint may quote
_PARTS = 100  # of a dotted key
_NAME = r"""(?:(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"{_NAME}(?:[ \t]*+\.[ \t]*+{_NAME}){{{_PARTS}}}")
# what 64 bits hold, as TOML promises no more
_LARGEST = 2**63


@dataclass(frozen=True)
class Loaded:
    """A spec, and where each of its fields comes from."""

    spec: Spec
    document: Document

    def error(self, where: str | Path, message: str) -> SpecError:
        """An error at a field, for what is found out later: `loaded.error("problem.x.covariance", "…")`."""
        return self.document.error(where, message)


def read(
    text: str | bytes, source: str = "spec.toml", changes: Sequence[str] = (), seed: int | None = None
) -> Spec:
    """The spec that `text` holds, with the `changes` (`key=value`) made; raises `SpecError`."""
    return load(text, source, changes, seed).spec


def load(
    text: str | bytes, source: str = "spec.toml", changes: Sequence[str] = (), seed: int | None = None
) -> Loaded:
    """Like `read`, and knows the line of every field."""
    text = _decoded(_sized(text, source), source)
    data = parsed(text, source)
    made, failed = _made(data, changes, seed)
    document = Document(source, text, data, made)
    wrong = _wrong(data)
    if wrong or failed:
        told = [document.mistake(path, message()) for path, message in wrong[:MOST]]
        raise SpecError([*failed, *told], more=len(wrong) - len(told))
    return Loaded(Spec.model_validate(data), document)


def _wrong(data: Data) -> list[Finding]:
    """All that is wrong with the data."""
    extreme: list[Finding] = [(path, partial(str, message)) for path, message in _extremes(data, ())]
    if extreme:
        return extreme
    try:
        Spec.model_validate(data)
    except ValidationError as error:
        found = mistakes(data)
        # what the model refuses is never taken for right, even should the walk not see why
        return found or [((), partial(str, entry["msg"])) for entry in error.errors(include_url=False)]
    return []


def _extremes(value: object, path: Path) -> list[tuple[Path, str]]:
    """What no field can hold: whole numbers beyond 64 bits, and tables within tables without end."""
    if len(path) > _DEEPEST:
        return [(path[:4], f"nested more than {_DEEPEST} deep")]
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in _extremes(inner, (*path, key))]
    if isinstance(value, list):
        return [found for i, inner in enumerate(value) for found in _extremes(inner, (*path, i))]
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return [(path, "whole numbers go up to 2^63; for more, write 1e20 or inf")]
    return []


def _sized(text: str | bytes, source: str) -> str | bytes:
    """The text, if it is one that a person may have written."""
    if len(text) > LARGEST:
        message = f"more than {LARGEST:,} letters: a spec is short, and data go into a file of their own"
        raise SpecError([Mistake("", None, f'{message} (x = {{ law = "dataset", file = … }})', source)])
    return text


def _decoded(text: str | bytes, source: str) -> str:
    """Text without the mark that some editors put first; lines end with a newline alone."""
    try:
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        read = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SpecError([Mistake("", line, "no text in UTF-8; is this a TOML file?", source)]) from None
    return read.removeprefix("\ufeff").replace("\r\n", "\n")


def parsed(text: str, source: str) -> Data:
    """TOML as data; a `SpecError` where it is none."""
    if deep := _DOTTED.search(text):  # the parser takes the square of the number of parts
        line = text.count("\n", 0, deep.start()) + 1
        raise SpecError([Mistake("", line, f"nested too deeply: a key of more than {_PARTS} parts", source)])
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SpecError([Mistake("", None, "nested too deeply", source)]) from None
    except ValueError as error:  # also a number of thousands of digits, which is no TOMLDecodeError
        raise SpecError([_syntax(error, text, source)]) from None


def _syntax(error: ValueError, text: str, source: str) -> Mistake:
    match = _PLACE.match(str(error))
    if match is None:
        plain = text.replace("_", "")
        digits = re.search(r"\d{1000}", plain)
        line = plain.count("\n", 0, digits.start()) + 1 if digits else 1
        return Mistake("", line, "no valid TOML: a number of thousands of digits", source)
    line = int(match[2]) if match[2] else text.count("\n") + 1
    column = f" in column {match[3]}" if match[3] else " at the end of the file"
    lines = text.split("\n")
    hint = _hint(match[1], lines[line - 1][:_HINTED] if line <= len(lines) else "")
    return Mistake("", line, f"no valid TOML: {match[1]}{column}{hint}", source)


def _hint(problem: str, line: str) -> str:
    """What to write instead, for the commonest slips."""
    bare = re.match(r"\s*([\w.\-]+)\s*=\s*([A-Za-z_][\w.()\-]*)", line)
    if problem.startswith(("Invalid value", "Expected newline")) and bare:
        value = bare[2]
        fixed = value.lower() if value.lower() in ("true", "false", "inf") else f'"{value}"'
        return f"; write {bare[1]} = {fixed}"
    if problem.startswith("Expected '='"):
        return "; a line is key = value, or [table]"
    if problem.startswith("Cannot overwrite"):
        return "; it is given twice"
    if problem.startswith("Cannot declare"):
        return "; it is given twice (a list of tables has double brackets: [[dynamics]])"
    if problem.startswith(("Unterminated", "Illegal character '\\n'")):
        return "; a quotation mark is missing"
    return ""


def _made(data: Data, changes: Sequence[str], seed: int | None) -> tuple[list[Change], list[Mistake]]:
    """Make the changes in place; those made, and what is wrong with the others."""
    made: list[Change] = []
    failed: list[Mistake] = []
    for text in changes:
        try:
            made.append(_changes.apply(data, text))
        except (_changes.UnclearError, RecursionError) as error:
            said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            where = shortened(text.split("=")[0].strip())
            failed.append(Mistake(where, None, said, f"--set {shortened(text.strip())}"))
    if seed is not None:
        data["seed"] = seed
        made.append(Change(f"--seed {seed}", (("seed",),)))
    return made, failed
