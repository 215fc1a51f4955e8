"""The far end of a `Worker`: one computation in a process of its own, once more on every demand."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
Prepare = Callable[[dict, dict[str, np.ndarray]], Callable[[], Arrays]]


def serve(prepare: Prepare) -> None:
    """`prepare(job, arrays)` gives the call to be measured. Its first run, compilation included, writes
    out.npz and says the peak of memory; then one run for every line of standard input says its seconds.
    Turning a result into a numpy array waits for it, whatever library made it."""
    before = resident("VmRSS")
    folder = Path(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not be taken for an answer
    job = json.loads((folder / "job.json").read_text())
    with np.load(folder / "in.npz") as stored:
        arrays = dict(stored)
    call = prepare(job, arrays)
    np.savez(folder / "out.npz", **_awaited(call()))
    _say(answers, gigabytes=resident("VmHWM") - before)
    for _ in sys.stdin:
        begun = time.perf_counter()
        _awaited(call())
        _say(answers, seconds=time.perf_counter() - begun)


def resident(field: str, process: int | str = "self") -> float:
    """A line of the process's status in GB (VmRSS: now, VmHWM: at most so far); NaN where there is none."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1e6 for line in lines if line.startswith(field)), float("nan"))


def _awaited(results: Arrays) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in results.items()}


def _say(answers: Any, **said: float) -> None:
    print(json.dumps(said), file=answers, flush=True)
