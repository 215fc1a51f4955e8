"""A study of several widths and seeds in a fresh process, against an earlier version of this project."""

import tempfile
from pathlib import Path

from . import fresh
from .rows import Row

SPEC = """
[problem]
x = { law = "gaussian", d = 10 }
target = { kind = "single_index", link = "erf" }
neuron = "erf"

[times]
end = 1.0

[[dynamics]]
name = "network"
method = "sgd"
step = 1e-2
width = [10, 20, 40, 80]
seeds = 8
"""


def measure(quick: bool) -> list[Row]:
    """CPU seconds of `wideflow run` of a study of 4 widths and 8 seeds, without kept programs (cold) and with
    those of the cold run (warm): the earlier version's over ours."""
    what = f"4 widths × 8 seeds, {{}}, times faster than {fresh.EARLIER}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = fresh.earlier(folder)
        if before is None:
            return [Row(what.format("cold"), (float("nan"),), note="no git history here")]
        spec = folder / "study.toml"
        spec.write_text(SPEC)
        ratios = []
        for trial in range(1 if quick else 3):
            theirs = fresh.command(before, str(spec), folder / f"theirs-{trial}")
            ours = fresh.command(fresh.OURS, str(spec), folder / f"ours-{trial}")
            ratios.append([a / b for a, b in zip(theirs, ours, strict=True)])
    cold, warm = zip(*ratios, strict=True)
    return [Row(what.format("cold"), tuple(cold), 5.0), Row(what.format("warm"), tuple(warm))]
