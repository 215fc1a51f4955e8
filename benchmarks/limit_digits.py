"""Time of a limit against digits, of this version and of one before: out/limit-digits.png."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from wideflow.figures import COLOURS, panels

from . import fresh, limit_points

ROOT = Path(__file__).parents[1]
LINK, DIMENSIONS = "erf", ("6", "50")
TOLERANCES = tuple(f"1e-{digits}" for digits in range(3, 11))
CAP = 90  # seconds of CPU for all the points of a version in one dimension, compiling included
OUT = Path("out/limit-digits.png")

Points = list[tuple[float, float]]  # of (tolerance, CPU seconds)


def draw() -> dict[str, dict[str, Points]]:
    """The figure's points, by version and dimension; versions that cannot be had are left out."""
    found = {"now": {d: points(LINK, d, TOLERANCES) for d in DIMENSIONS}}
    with tempfile.TemporaryDirectory() as folder:
        before = fresh.earlier(Path(folder))  # product rules of x and u for every activation
        if before is not None:
            found["before"] = {d: points(LINK, d, TOLERANCES, before) for d in DIMENSIONS}
    figure(found)
    return found


def figure(found: dict[str, dict[str, Points]]) -> None:
    """Draw and save what was measured."""
    OUT.parent.mkdir(exist_ok=True)
    with panels(1, width=5.6, height=4.0) as (drawn, (axis,)):
        for version, (line, mark) in {"before": ("--", "o"), "now": ("-", "s")}.items():
            for colour, (d, measured) in zip(COLOURS, found.get(version, {}).items(), strict=False):
                name = f"d = {'∞' if d == 'inf' else d}, {version}"
                tols, seconds = zip(*measured, strict=True) if measured else ((), ())
                axis.loglog(tols, seconds, line, marker=mark, ms=4, color=colour, label=name)
        axis.invert_xaxis()
        axis.set(xlabel="tolerance asked of the risk", ylabel="CPU seconds of a compiled limit")
        axis.set_title(
            f"{LINK} neurons, t ≤ {limit_points.TS[-1]:g} (lines end where the time given was up)",
            fontsize=10,
        )
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.minorticks_off()
        axis.legend(ncols=2, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))
        drawn.savefig(OUT)


def points(link: str, d: str, tolerances: tuple[str, ...], source: Path = ROOT / "src") -> Points:
    """What a process with this version of the library has measured when its time is up."""
    command = [sys.executable, str(Path(limit_points.__file__)), str(CAP), link, d, *tolerances]
    env = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(float(tol), float(seconds)) for tol, seconds, _ in lines]
