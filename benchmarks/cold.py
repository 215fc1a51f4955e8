"""Cold starts: the README's example and the presets with nothing compiled, against warm ones and against an
earlier version."""

import re
import tempfile
from pathlib import Path

from wideflow import presets

from . import fresh
from .rows import Row

README = Path(__file__).parents[1] / "README.md"
MAIN = "single-neuron"  # what `make run` runs


def measure(quick: bool) -> list[Row]:
    """CPU seconds from `import` on, in fresh processes. Cold means that no program is kept; warm is the next
    process. The earlier version kept programs of the command alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before, example = fresh.earlier(folder), folder / "example.py"
        example.write_text(readme_example())
        rows = []
        cold, *warm = fresh.script(fresh.OURS, example, folder / "example", 2 if quick else 4)
        rows += _rows("README example", cold, warm, 4.0)
        if before is not None:
            theirs = fresh.script(before, example, folder / "example-before", 1)[0]
            rows.append(_against("README example", cold, theirs))
        for preset in [MAIN] if quick else presets.names():
            cold, *warm = fresh.command(fresh.OURS, preset, folder / preset)
            rows += _rows(f"preset {preset}", cold, warm, 3.0)
            if preset == MAIN and before is not None:
                theirs = fresh.command(before, preset, folder / f"{preset}-before", 1)[0]
                rows.append(_against(f"make run (preset {preset})", cold, theirs))
    return rows


def readme_example() -> str:
    """The Python example of the README."""
    found = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    return next(code for code in found if "wf.limit" in code)


def _rows(what: str, cold: float, warm: list[float], asked: float) -> list[Row]:
    seconds = f"{cold:.2g} s cold, {min(warm):.2g} s warm"
    ratios = tuple(cold / one for one in warm)
    return [Row(f"{what}, CPU cold over warm", ratios, asked, at_most=True, note=seconds)]


def _against(what: str, cold: float, theirs: float) -> Row:
    seconds = f"{cold:.2g} s and {theirs:.2g} s"
    name = f"{what}, cold CPU over that of {fresh.EARLIER}"
    return Row(name, (cold / theirs,), 0.35, at_most=True, note=seconds)
