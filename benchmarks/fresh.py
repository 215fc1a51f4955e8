"""Whole programs in fresh processes, of this version and an earlier one, without and with kept programs."""

import os
import subprocess
import sys
from pathlib import Path

EARLIER = "e304425"  # before replicas, and before programs were kept by the library
_RUN = """
import sys, time
begun = time.process_time()
from wideflow.cli.app import main
sys.argv = ["wideflow", "run", sys.argv[1], "--out", sys.argv[2]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("seconds", time.process_time() - begun)
"""
_SCRIPT = """
import sys, time
begun = time.process_time()
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
print("seconds", time.process_time() - begun)
"""
OURS = Path(__file__).parents[1] / "src"


def earlier(folder: Path) -> Path | None:
    """The sources of the earlier version, unpacked into a folder; None without git's history."""
    pack = ["git", "archive", EARLIER, "src"]
    packed = subprocess.run(pack, capture_output=True, check=False, cwd=OURS.parent)
    if packed.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder / "src"


def command(source: Path, spec: str, place: Path, times: int = 2) -> list[float]:
    """CPU seconds of `wideflow run spec`, from `import` on: the first of them with nothing compiled, the
    others with what those before have kept. CPU time, so that other work on the machine counts less."""
    return [_seconds(source, _RUN, [spec, str(place / f"out-{i}")], place) for i in range(times)]


def script(source: Path, file: Path, place: Path, times: int = 2) -> list[float]:
    """The same of a Python file."""
    return [_seconds(source, _SCRIPT, [str(file)], place) for _ in range(times)]


def _seconds(source: Path, code: str, args: list[str], place: Path) -> float:
    place.mkdir(parents=True, exist_ok=True)
    unset = ("JAX_COMPILATION_CACHE_DIR", "WIDEFLOW_CACHE")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    env |= {"PYTHONPATH": str(source), "XDG_CACHE_HOME": str(place / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True, env=env, cwd=place
    )
    return float(done.stdout.split()[-1])
