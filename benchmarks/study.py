"""Whole studies in fresh processes, against an earlier version of this project."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .rows import Row

EARLIER = "e304425"  # before replicas: one program for every width, one call for every seed
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
CODE = """
import sys, time
from wideflow.cli.app import main
begun = time.process_time()
sys.argv = ["wideflow", "run", sys.argv[1], "--out", sys.argv[2]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("seconds", time.process_time() - begun)
"""


def measure(quick: bool) -> list[Row]:
    """CPU seconds of `wideflow run`, the loading of the library apart: a study of 4 widths and 8 seeds
    without a compilation cache (cold), and the preset `single-neuron` cold and with the cache that the cold
    run left (warm). Ratios of the earlier version's to ours; CPU time, so that other work on the machine
    counts against neither."""
    with tempfile.TemporaryDirectory() as folder:
        earlier = _unpacked(Path(folder))
        if earlier is None:
            return [Row("studies against an earlier version", (float("nan"),), note="no git history here")]
        here = Path(__file__).parents[1] / "src"
        spec = Path(folder) / "study.toml"
        spec.write_text(SPEC)
        rows = []
        for what, name in (("4 widths × 8 seeds", str(spec)), ("preset single-neuron", "single-neuron")):
            cold, warm = [], []
            for trial in range(1 if quick else 3):
                times = {source: _seconds(source, name, Path(folder), trial) for source in (earlier, here)}
                cold.append(times[earlier][0] / times[here][0])
                warm.append(times[earlier][1] / times[here][1])
            asked = 5.0 if name == str(spec) else None
            rows.append(Row(f"{what}, cold, times faster than {EARLIER}", tuple(cold), asked))
            rows.append(Row(f"{what}, warm, times faster than {EARLIER}", tuple(warm)))
    return rows


def _unpacked(folder: Path) -> Path | None:
    """The sources of the earlier version."""
    packed = subprocess.run(["git", "archive", EARLIER, "src"], capture_output=True, check=False)
    if packed.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder / "src"


def _seconds(source: Path, name: str, folder: Path, trial: int) -> tuple[float, float]:
    """CPU seconds of a run without a cache, and of another with what the first has left in it."""
    place = folder / f"{source.parent.name}-{Path(name).stem}-{trial}"
    env = os.environ | {
        "PYTHONPATH": str(source),
        "JAX_COMPILATION_CACHE_DIR": str(place / "cache"),
        "XDG_CACHE_HOME": str(place / "cache"),
    }
    seconds = []
    for i in range(2):
        command = [sys.executable, "-c", CODE, name, str(place / f"out-{i}")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=folder)
        seconds.append(float(done.stdout.split()[-1]))
    return seconds[0], seconds[1]
