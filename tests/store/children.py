"""Runs in processes of their own, one at a time, that may be sent a signal (see `child.py`)."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


class Children:
    """Starts children from one process that has imported everything, and listens to what they say."""

    def __init__(self, cache: Path):
        self.cache, self.lasted = str(cache), 0.0
        self.rows = 0  # saved times that the last child has told of
        script = Path(__file__).parent / "child.py"
        pipe, env = subprocess.PIPE, os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # no thread before a fork
        command = [sys.executable, str(script)]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env)
        self.lines: queue.Queue[str] = queue.Queue()
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put("gone")

    def run(self, case: str, rows: int = 0, when=None, by=signal.SIGKILL, **job) -> int:
        """Make a run; send it a signal `when` so many seconds have passed since its beginning, or a
        condition holds. Returns its exit code."""
        job |= {"case": case, "rows": rows, "cache": self.cache}
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        pid, begun, asked, self.rows = 0, None, time.monotonic(), 0
        due = when if callable(when) else lambda: time.monotonic() - begun >= when
        while True:
            with contextlib.suppress(queue.Empty):
                line = self.lines.get(timeout=0.005)
                assert line != "gone", "the process that starts the children has ended"
                word, _, number = line.partition(" ")
                pid = int(number) if word == "pid" else pid
                if word == "ended":
                    self.lasted = time.monotonic() - (begun or asked)
                    return int(number)
                begun = time.monotonic() if line == "begins" else begun
                self.rows += word == "row"
            if begun and pid and when is not None and due():
                with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                    os.kill(pid, by)
                when = None
            assert time.monotonic() - asked < 240.0, "the child does not end"

    def close(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        self.listener.join()
        self.process.stdout.close()
