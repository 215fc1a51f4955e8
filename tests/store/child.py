"""Runs that may be killed, each in a process of its own.

Started as a script, this imports everything once and then, for every line of JSON on standard input,
forks a process that makes one run. That is done before JAX has started a thread (a fork would be
unsafe after), and it spares each run the second that importing takes."""

import json
import math
import os
import signal
import sys
import traceback

import jax
from cases import CASES, LONG, OTHERS, limit_call
from killer import Killer

import wideflow as wf
import wideflow.cli.run
import wideflow.report.page_of_study
from wideflow import loop
from wideflow.checkpoint import Ledger
from wideflow.cli import app
from wideflow.store import folder
from wideflow.study import perform, together

for name in wf.__all__:  # each is loaded when it is first asked for
    getattr(wf, name)


def say(text: str) -> None:
    """A line in one piece: two processes write to the same pipe."""
    os.write(1, f"{text}\n".encode())


def kill_in_save(number: int, operation: int) -> None:
    """Die at an operation of the save with this number."""
    killer, write, saves = Killer(folder, operation, armed=False), Ledger.write, []

    def counted(ledger, run, carry):
        killer.armed = len(saves) == number
        saves.append(run)
        write(ledger, run, carry)

    Ledger.write = counted
    loop._PIECE = (0.0, math.inf)  # one piece a saved time, on any machine


def told_rows() -> None:
    """Print a line at each saved time, before it can be saved."""
    append = loop._Loop.save_if_due

    def save_if_due(self):
        while self.ledger is not None and getattr(self, "printed", 0) < len(self.rows):
            self.printed = getattr(self, "printed", 0) + 1
            say("row")
        append(self)

    loop._Loop.save_if_due = save_if_due


def make(job: dict) -> None:
    """One run; with `kill` = [save, operation] it dies there."""
    # a shell that starts the tests in the background has signals ignored in all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", job["cache"])
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # A process that may be killed reads the compilation cache, but must not leave half an entry.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0 if job.get("warm") else 1e9)
    if "kill" in job:
        kill_in_save(*job["kill"])
    {"limit": make_limit, "command": make_study}.get(job["case"], make_run)(job)


def make_run(job: dict) -> None:
    call = (CASES | OTHERS | {"long": LONG})[job["case"]].call(job["rows"])
    if "folder" in job:
        told_rows()
        call["checkpoint"] = wf.Checkpoint(job["folder"], every=job.get("every", 0.0))
    say("begins")
    run = wf.evolve(**call)
    if "save" in job:
        run.save(job["save"])
    say(run.status)


def make_limit(job: dict) -> None:
    call = limit_call()
    if "folder" in job:
        call["checkpoint"] = wf.Checkpoint(job["folder"], every=job.get("every", 0.0))
    say("begins")
    run = wf.limit(**call)
    if "save" in job:
        run.save(job["save"])
    say(run.status)


def make_study(job: dict) -> None:
    """`wideflow run`, as the command does it."""
    perform.EVERY = together.EVERY = job.get("every", 0.0)
    say("begins")
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    sys.argv = ["wideflow", "run", job["spec"], "--out", job["folder"], "--resume"]
    app.main()


def serve() -> None:
    from jax._src import xla_bridge

    for line in sys.stdin:
        assert len(os.listdir("/proc/self/task")) == 1, "a process with threads must not be forked"
        assert not xla_bridge.backends_are_initialized(), "importing wideflow has started JAX"
        pid = os.fork()
        if pid == 0:
            try:
                make(json.loads(line))
            except SystemExit as left:
                os._exit(left.code or 0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        say(f"pid {pid}")
        _, status = os.waitpid(pid, 0)
        say(f"ended {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    serve()
