"""`wideflow presets --warm-up`."""

import tempfile
import time
from pathlib import Path

from .. import _compiled
from .console import INTERRUPTED, answer, as_json, leave, refuse, stopping_softly, tell
from .sources import source, study_of


def warm_up(names: list[str], json_too: bool) -> None:
    """Run presets in a temporary folder, so that the programs that they compile are kept."""
    from .. import _tracing  # noqa: F401 (turns the cache on)

    place = _compiled.kept_in()
    if place is None:
        refuse(
            f"Compiled programs are not kept ({_compiled.SWITCH}=off, or no folder for them can be written): "
            f"nothing to warm up. Set {_compiled.SWITCH} to a folder.",
            json_too,
        )
    took = {name: _seconds(name, i, len(names), json_too) for i, name in enumerate(names)}
    if json_too:
        as_json({"folder": str(place), "seconds": took})
        return
    answer("\n".join(f"{name}: {seconds:.0f} s" for name, seconds in took.items()))
    answer(f"Their programs are kept in {place}.")


def _seconds(name: str, i: int, total: int, json_too: bool) -> float:
    tell(f"[{i + 1}/{total}] {name}")
    begun, study = time.monotonic(), study_of(source(name, json_too), [], None, json_too)
    from ..study.folder import StudyFolder
    from ..study.study import run_study

    with tempfile.TemporaryDirectory() as folder, stopping_softly():
        if run_study(study, StudyFolder(Path(folder) / name)) is None:
            leave(INTERRUPTED)
    return time.monotonic() - begun
