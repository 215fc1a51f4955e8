"""The command as a process: killed and stopped in the middle it goes on to the same bits; it starts without
what it does not need, and says nothing that was not asked for."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.specs import LONG, TINY
from store.cases import assert_same_bits
from wideflow.salvage import load
from wideflow.store import folder

CHILD = Path(__file__).parent / "child.py"
SECONDS = 120  # for a process, on a machine that is busy


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a spec of a few seconds, and a cache of compiled programs that all processes read."""
    path = tmp_path_factory.mktemp("command")
    (path / "long.toml").write_text(LONG, "utf-8")
    return path


def started(work, *args, warm=False, text=None, largest=0, stop=""):
    """The process. One that may be killed reads the cache, but must not leave half an entry there. Where a
    file would become larger than `largest` bytes, the system refuses it. For `stop` see `child.py`."""
    least = "0" if warm else "1e9"
    env = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(work / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": least,
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "OPENBLAS_NUM_THREADS": "1",
        "LARGEST_FILE": str(largest),
        "STOP": stop,
    }
    pipe = subprocess.PIPE
    given = {"stdin": pipe if text is not None else subprocess.DEVNULL, "stdout": pipe, "stderr": pipe}
    return subprocess.Popen([sys.executable, CHILD, *args], cwd=work, env=env, text=True, **given)


def ended(process, text=None):
    out, error = process.communicate(text, timeout=SECONDS)
    return process.returncode, out, error


def signalled(process, path, by, beyond=0):
    """Wait until the run in `path` has kept more than so many times, then send the signal."""
    end = time.monotonic() + SECONDS
    while not (folder.exists(path) and len(load(path).rows) > beyond):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no checkpoint"
        time.sleep(0.01)
    process.send_signal(by)
    return ended(process)


@pytest.fixture(scope="module")
def whole(work):
    """The run that nobody stops."""
    code, out, error = ended(started(work, "run", "long.toml", "--out", "whole", warm=True))
    assert (code, out, error) == (0, f"{Path('whole') / 'report.html'}\n", "")  # one line and no more
    return load(work / "whole" / "runs" / "gd")


def test_killed_stopped_and_gone_on_it_comes_to_the_same_bits(work, whole):
    run, again = work / "cut" / "runs" / "gd", ("run", "long.toml", "--out", "cut")
    code, out, _ = signalled(started(work, *again), run, signal.SIGKILL)
    assert (code, out) == (-signal.SIGKILL, "")
    first = len(load(run).rows)
    assert 1 <= first < len(whole.rows)

    process = started(work, *again, "--resume", "--json")
    code, out, error = signalled(process, run, signal.SIGINT, beyond=first)
    assert code == 130
    assert json.loads(out) == {"status": "interrupted", "folder": "cut"}
    assert error == "Stopped. To go on: wideflow run long.toml --out cut --resume\n"
    second = len(load(run).rows)
    assert first < second < len(whole.rows)

    # A signal of a queue or a closed terminal, and no checkpoint on the way: all is saved because of it.
    at = second + 5
    code, out, error = ended(started(work, *again, "--resume", stop=f"{int(signal.SIGTERM)}:{at}"))
    assert (code, out) == (128 + signal.SIGTERM, "")
    assert error == "Stopped. To go on: wideflow run long.toml --out cut --resume\n"
    assert len(load(run).rows) == at < len(whole.rows)

    code, out, error = ended(started(work, *again, "--resume", "--json"))
    assert (code, error) == (0, "")
    assert_same_bits(load(run), whole)
    found, expected = json.loads(out), json.loads((work / "whole" / "results.json").read_text("utf-8"))
    assert found["groups"] == expected["groups"]
    assert found["verdict"] == expected["verdict"]


@pytest.mark.slow
def test_a_disk_that_refuses_the_runs_but_not_the_results(work, whole):
    """Code 4 and not 0, no results.json; the command that it names completes the study, to the same bits."""
    smaller = (work / "whole" / "results.json").stat().st_size + 2000
    slow = ("run", "long.toml", "--out", "refused", "--set", "observe.test=200")
    code, out, error = ended(started(work, *slow, "--json", largest=smaller))
    assert code == 4
    told = json.loads(out)
    assert told["status"] == "unsaved" and "File too large" in told["message"]
    again = "wideflow run long.toml --set observe.test=200 --out refused --resume"
    assert error.startswith("warning: The checkpoint in ")  # told when it happens
    assert "\nNot finished, as not everything could be saved: gd " in error
    assert error.endswith(f"Make room, then: {again}\n")
    assert not (work / "refused" / "results.json").exists()
    code, out, error = ended(started(work, *slow, "--resume"))
    assert (code, error) == (0, "")
    sizes = {p.name.split("-")[0]: p.stat().st_size for p in (work / "refused").rglob("*.*")}
    assert sizes["results.json"] < smaller < sizes["rows"]  # what could have been written, and what not
    run = load(work / "refused" / "runs" / "gd")
    assert run.t.tobytes() == whole.t.tobytes() and run["risk"].tobytes() == whole["risk"].tobytes()


def test_stopped_before_anything_was_begun(work):
    """While it reads standard input, say: 130, and no folder."""
    for seconds in (1, 4, 16):  # until then the interpreter itself may not have started
        process = started(work, "run", "-", "--out", "never", text="")
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        code, out, error = ended(process)
        if code == 130:
            break
    assert (code, out, error) == (130, "", "Stopped.\n")
    assert not (work / "never").exists()


def test_nonsense_ends_with_2_and_names_field_and_line(work):
    text = TINY.replace("step = 0.1", "stepp = 0.1").replace("d = 4", 'd = "four"')
    code, out, error = ended(started(work, "run", "-", text=text), text)
    assert (code, out) == (2, "")
    lines = error.splitlines()
    assert lines[0].startswith("<stdin>:4: problem.x.d: ")
    assert lines[1].startswith("<stdin>:15: dynamics.gd.stepp: ") and "'step'" in lines[1]


LIGHT = {
    "help": ["--help"],
    "help of run": ["run", "--help"],
    "version": ["--version"],
    "presets": ["presets"],
    "schema": ["show", "--schema"],
    "claims": ["reproduce", "--list"],
}
HEAVY = ["jax", "scipy", "matplotlib", "equinox", "diffrax", "optax"]


def test_what_needs_no_numbers_does_not_load_them():
    """An import takes a second; the command answers before that."""
    code = f"""
import sys, io
from contextlib import redirect_stdout
from wideflow.cli.app import app
loaded = {{}}
for name, args in {LIGHT!r}.items():
    with redirect_stdout(io.StringIO()) as said:
        try:
            app(args)
        except SystemExit as error:
            assert not error.code, (name, error.code)
    assert said.getvalue().strip(), name
    loaded[name] = [m for m in {HEAVY!r} if m in sys.modules]
print(loaded)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == repr({name: [] for name in LIGHT})


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_it(shell):
    env = os.environ | {"_WIDEFLOW_COMPLETE": f"source_{shell}", "SHELL": f"/bin/{shell}"}
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'wideflow'; from wideflow.cli.app import main; main()",
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0 and f"complete_{shell}" in done.stdout
    if shell == "bash":
        asked = {"_WIDEFLOW_COMPLETE": "complete_bash", "COMP_WORDS": "wideflow run ", "COMP_CWORD": "2"}
        done = subprocess.run(command, env=env | asked, capture_output=True, text=True, timeout=SECONDS)
        assert "single-neuron" in done.stdout.split()
