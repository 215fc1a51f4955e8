"""Two real processes and one folder: one of them writes, the other is told, and nothing is mixed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cli.specs import TINY
from store.cases import LONG, assert_same_bits
from wideflow import evolve
from wideflow.salvage import load

CHILD, RACER = Path(__file__).parent / "child.py", Path(__file__).parents[1] / "store" / "racer.py"
SECONDS = 180  # for a process, on a machine that is busy
RUN = ("run", "one.toml", "--out", "shared")


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    path = tmp_path_factory.mktemp("writers")
    (path / "one.toml").write_text(TINY, "utf-8")
    return path


def started(work, script, *args, **hooks):
    env = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(work / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        **{name: str(value) for name, value in hooks.items()},
    }
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, script, *args], cwd=work, env=env, text=True, stdout=pipe, stderr=pipe
    )


def ended(process):
    out, error = process.communicate(timeout=SECONDS)
    return process.returncode, out, error


def waited_for(file, process):
    end = time.monotonic() + SECONDS
    while not file.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def contents(path):
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_two_commands_and_one_folder(work):
    looked, held = work / "looked", work / "held"
    other = started(work, CHILD, *RUN, "--seed", "1", LOOKED=looked)
    waited_for(looked, other)  # the folder is empty, as far as it has seen
    holder = started(work, CHILD, *RUN, HOLDS=held)
    waited_for(held, holder)

    before = contents(work / "shared")
    code, out, error = ended(started(work, CHILD, *RUN, "--resume", "--json"))
    assert code == 2 and "shared is being written by another run that is still going on" in error
    assert json.loads(out)["status"] == "error"
    assert contents(work / "shared") == before

    held.unlink()
    assert ended(holder)[0] == 0
    whole = contents(work / "shared")
    looked.unlink()
    code, out, error = ended(other)
    assert (code, out) == (2, "") and "shared holds the finished study of another spec" in error
    assert contents(work / "shared") == whole


def test_a_file_system_without_locks_is_told(work):
    """Told in one line for all runs of the study, which is finished all the same."""
    code, out, error = ended(
        started(work, CHILD, "run", "one.toml", "--out", "unlocked", LOCKS="none", PYTHONWARNINGS="default")
    )
    assert (code, out) == (0, f"{Path('unlocked') / 'report.html'}\n")
    told = [line for line in error.splitlines() if "has no locks" in line]
    assert len(told) == 1 and "No locks available" in told[0] and "no two processes" in told[0]


def test_processes_that_race_for_a_checkpoint(work):
    """Three begin at once. One writes; another is told, or finds the whole run."""
    go, path, rows = work / "go", work / "raced", 30
    racers = [started(work, RACER, str(path), str(rows), GO=go) for _ in range(3)]
    for i, racer in enumerate(racers):
        waited_for(work / f"go.{racer.pid}", racers[i])
    go.touch()
    said = [ended(racer) for racer in racers]
    assert all(code == 0 for code, _, _ in said), said
    words = [out.strip() for _, out, _ in said]
    assert "ok" in words and set(words) <= {"ok", "in use"}
    run = load(path)
    assert len(run.rows) == rows and np.all(np.diff(run.t) > 0)
    assert_same_bits(run, evolve(**LONG.call(rows)))
