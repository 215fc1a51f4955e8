"""Specs from a file, a preset or standard input, as the user named them."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import presets
from .._shown import shown
from .console import refuse


@dataclass(frozen=True)
class Source:
    """A spec's text, what to call it in errors and folders, and where its data files lie."""

    text: bytes
    called: str
    name: str
    folder: Path


def source(given: str, json_too: bool = False) -> Source:
    """What `given` stands for: `-`, a file, or the name of a preset."""
    from ..spec.reading import LARGEST
    from ..store.opening import content

    if given == "-":
        return Source(sys.stdin.buffer.read(LARGEST + 1), "<stdin>", "stdin", Path.cwd())
    path = Path(given)
    try:
        if path.is_file():
            text = content(path, LARGEST, "Is this a spec?", links=True)
            return Source(text, given, path.stem, path.resolve().parent)
    except ValueError as error:
        refuse(str(error), json_too)
    except OSError as error:  # a name of hundreds of letters, a file of someone else
        refuse(f"{given} cannot be read: {error.strerror}.", json_too)
    if given in presets.names():
        file = presets.file(given)
        return Source(file.read_bytes(), f"{given}.toml", given, file.parent)
    if path.is_dir() and (path / "spec.toml").is_file():
        refuse(
            f"{given} is the folder of a study: try {given}/spec.toml, or `wideflow report {given}`.",
            json_too,
        )
    from ..spec.suggestions import nearest

    close = nearest(given, presets.names())
    hint = f" Did you mean {close!r}?" if close else ""
    refuse(
        f"There is no file and no preset {shown(given)}; presets: {', '.join(presets.names())}.{hint}",
        json_too,
    )


def spec_of(given: Source, changes: list[str], seed: int | None, json_too: bool) -> Any:
    """The spec with where each field stands; every mistake at once, else."""
    from ..spec.errors import SpecError
    from ..spec.reading import load

    try:
        loaded = load(given.text, given.called, changes, seed)
    except SpecError as error:
        refuse_spec(error, json_too)
    return loaded


def study_of(given: Source, changes: list[str], seed: int | None, json_too: bool) -> Any:
    """The study that a spec stands for; what the library objects to is told with its field and line."""
    loaded = spec_of(given, changes, seed, json_too)
    from ..spec.errors import SpecError
    from ..study.build import NotBuiltError, build, located
    from ..study.perform import in_precision

    spec = located(loaded.spec, given.folder)
    try:
        with in_precision(spec):
            return build(spec, given.folder)
    except NotBuiltError as error:
        found = [m for place, text in error.found for m in loaded.error(place, text).mistakes]
        refuse_spec(SpecError(found), json_too)


def refuse_spec(error: Any, json_too: bool) -> Any:
    """Leave with every mistake of a spec."""
    mistakes = [{"where": m.where, "line": m.line, "message": m.message} for m in error.mistakes]
    refuse(str(error), json_too, mistakes=mistakes, **({"more": error.more} if error.more else {}))
