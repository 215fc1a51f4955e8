"""`wideflow presets`."""

import tomllib
from pathlib import Path

from .. import presets
from .._shown import shown
from .console import answer, as_json, refuse, say, table


def presets_command(name: str | None, copy: Path | None, warm_up: bool, json_too: bool) -> None:
    """List presets, print one, copy its files, or compile its programs."""
    if name is not None and name not in presets.names():
        from ..spec.suggestions import nearest

        close = nearest(name, presets.names())
        hint = f" Did you mean {close!r}?" if close else ""
        refuse(f"There is no preset {shown(name)}; there are {', '.join(presets.names())}.{hint}", json_too)
    if warm_up:
        from .warm_up import warm_up as compiled

        if copy is not None:
            refuse("--warm-up and --copy are two things to do: give one of them.", json_too)
        compiled(presets.names() if name is None else [name], json_too)
        return
    if name is None:
        rows = [
            (one, tomllib.loads(presets.file(one).read_text(encoding="utf-8"))) for one in presets.names()
        ]
        if json_too:
            as_json(
                [{"name": one, "title": data["title"], "about": _flat(data["about"])} for one, data in rows]
            )
            return
        answer(table(["preset", "what it shows"], [(one, data["title"]) for one, data in rows]))
        say("\nRun one with `wideflow run NAME`, print it with `wideflow presets NAME`,")
        say("copy it to change it with `wideflow presets NAME --copy DIR`.")
        return
    if copy is None:
        text = presets.file(name).read_text(encoding="utf-8")
        as_json(tomllib.loads(text)) if json_too else answer(text.rstrip())
        return
    files = [presets.file(name), *presets.data(name)]
    for file in files:
        if (copy / file.name).exists():
            refuse(f"{copy / file.name} is there already; choose another folder.", json_too)
    _copy(files, copy, json_too)
    if json_too:
        as_json([str(copy / file.name) for file in files])
        return
    answer("\n".join(str(copy / file.name) for file in files))
    say(f"\nChange a number, then: wideflow run {copy / files[0].name}")


def _copy(files: list[Path], folder: Path, json_too: bool) -> None:
    """Each file whole or not there."""
    from ..store.folder import make, write

    for file in files:
        try:
            make(folder)
            write(folder / file.name, file.read_bytes())
        except OSError as error:
            refuse(f"{folder / file.name} cannot be written: {error.strerror or error}.", json_too)


def _flat(text: str) -> str:
    return " ".join(text.split())
