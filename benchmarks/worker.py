"""A computation in a process of its own that takes turns with ours, and may run out of time or memory."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import numpy as np

from .serve import resident

ROOT = Path(__file__).parents[1]
POLL = 0.2  # seconds between two looks at the memory of a process


class WorkerFailedError(RuntimeError):
    """The process gave no answer: too slow, too large, or broken; the message says which."""


class Worker:
    """`python -m benchmarks.<module>` with a job (JSON) and arrays (npz) of a folder of its own.

    As a context it starts the process and waits for its first run: then `arrays` has the results and
    `gigabytes` the peak of memory above that of the imports. Every `turn()` is one more run. An
    answer may take `timeout` seconds, the first with imports and compilation; once it
    is seen with more than `memory_gb` resident, the process is given up."""

    def __init__(
        self,
        module: str,
        job: dict[str, Any],
        arrays: dict[str, np.ndarray],
        python: Path | str = sys.executable,
        timeout: float = 600.0,
        memory_gb: float = float("inf"),
    ) -> None:
        self.command = [str(python), "-m", f"{__package__}.{module}"]
        self.job, self.inputs = job, arrays
        self.timeout, self.memory_gb = timeout, memory_gb
        self.arrays: dict[str, np.ndarray] = {}
        self.gigabytes = float("nan")

    def __enter__(self) -> Self:
        self._temporary = tempfile.TemporaryDirectory()
        folder = Path(self._temporary.name)
        (folder / "job.json").write_text(json.dumps(self.job))
        np.savez(folder / "in.npz", **self.inputs)
        self._complaints = open(folder / "stderr", "w+")
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        env = os.environ | {"TMPDIR": str(folder)}  # old JAX leaves a folder behind
        command = [*self.command, str(folder)]
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=self._complaints, **pipes)
        try:
            self.gigabytes = self._answer()["gigabytes"]
            with np.load(folder / "out.npz") as stored:
                self.arrays = dict(stored)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def turn(self) -> float:
        """Seconds of one more run, by the clock of the process."""
        stdin = self._process.stdin
        assert stdin is not None
        print(file=stdin, flush=True)
        return self._answer()["seconds"]

    def _answer(self) -> dict[str, float]:
        stdout = self._process.stdout
        assert stdout is not None
        deadline = time.monotonic() + self.timeout
        while not select.select([stdout], [], [], POLL)[0]:
            if time.monotonic() > deadline:
                raise WorkerFailedError(f"more than {self.timeout:g} s")
            if resident("VmRSS", self._process.pid) > self.memory_gb:
                raise WorkerFailedError(f"more than {self.memory_gb:g} GB")
        line = stdout.readline()
        if not line:
            raise WorkerFailedError(self._last_words())
        return json.loads(line)

    def _last_words(self) -> str:
        code = self._process.wait()
        self._complaints.seek(0)
        lines = [line.strip() for line in self._complaints if line.strip()]
        how = f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        return f"{how}: {lines[-1][:200] if lines else 'no message'}"

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._complaints.close()
        self._temporary.cleanup()


def results(*args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
    """The arrays of one run, where nobody asks for its time."""
    with Worker(*args, **kwargs) as worker:
        return worker.arrays
