"""Time of a limit against digits, of this version and of one before: out/limit-digits.png."""

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from wideflow.figures import COLOURS, panels

from . import limit_points

ROOT = Path(__file__).parents[1]
BEFORE = "e304425"  # product rules of x and u for every activation
LINK, DIMENSIONS = "erf", ("6", "50")
TOLERANCES = tuple(f"1e-{digits}" for digits in range(3, 11))
CAP = 90  # seconds of CPU for all the points of a version in one dimension, compiling included
OUT = Path("out/limit-digits.png")

Points = list[tuple[float, float]]  # of (tolerance, CPU seconds)


def draw() -> dict[str, dict[str, Points]]:
    """The figure's points, by version and dimension; versions that cannot be had are left out."""
    found = {"now": {d: _points(ROOT / "src", d) for d in DIMENSIONS}}
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True)
        if archive.returncode == 0:
            subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
            found["before"] = {d: _points(Path(folder) / "src", d) for d in DIMENSIONS}
    OUT.parent.mkdir(exist_ok=True)
    with panels(1, width=5.6, height=4.0) as (figure, (axis,)):
        for version, (line, mark) in {"before": ("--", "o"), "now": ("-", "s")}.items():
            for colour, (d, points) in zip(COLOURS, found.get(version, {}).items(), strict=False):
                name = f"d = {'∞' if d == 'inf' else d}, {version}"
                tols, seconds = zip(*points, strict=True) if points else ((), ())
                axis.loglog(tols, seconds, line, marker=mark, ms=4, color=colour, label=name)
        axis.invert_xaxis()
        axis.set(xlabel="tolerance asked of the risk", ylabel="CPU seconds of a compiled limit")
        axis.set_title(f"{LINK} neurons, t ≤ {limit_points.TS[-1]:g}")
        axis.legend(ncols=2, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))
        figure.savefig(OUT)
    return found


def _points(source: Path, d: str) -> Points:
    """What a process with this version has measured when its time is up."""
    command = [sys.executable, str(Path(limit_points.__file__)), LINK, d, *TOLERANCES]
    env = os.environ | {"PYTHONPATH": str(source)}
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (CAP, CAP))
    done = subprocess.run(command, env=env, capture_output=True, text=True, preexec_fn=limit)
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(float(tol), float(seconds)) for tol, seconds, _ in lines]
