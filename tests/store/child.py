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
from cases import CASES, LONG
from killer import Killer

import wideflow as wf
from wideflow import loop
from wideflow.checkpoint import Ledger
from wideflow.store import folder

for name in wf.__all__:  # each is loaded when it is first asked for
    getattr(wf, name)


def kill_in_save(number: int, operation: int) -> None:
    """Die at an operation of the save with this number."""
    killer, write, saves = Killer(folder, operation, armed=False), Ledger.write, []

    def counted(ledger, run, carry):
        killer.armed = len(saves) == number
        saves.append(run)
        write(ledger, run, carry)

    Ledger.write = counted
    loop._PIECE = (0.0, math.inf)  # one piece a saved time, on any machine


def make(job: dict) -> None:
    """One run; with `kill` = [save, operation] it dies there."""
    # a shell that starts the tests in the background has Ctrl-C ignored in all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", job["cache"])
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # A process that may be killed reads the compilation cache, but must not leave half an entry.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0 if job.get("warm") else 1e9)
    call = (CASES | {"long": LONG})[job["case"]].call(job["rows"])
    if "kill" in job:
        kill_in_save(*job["kill"])
    if "folder" in job:
        call["checkpoint"] = wf.Checkpoint(job["folder"], every=job.get("every", 0.0))
    print("begins", flush=True)
    run = wf.evolve(**call)
    if "save" in job:
        run.save(job["save"])
    print(run.status, flush=True)


def serve() -> None:
    from jax._src import xla_bridge

    for line in sys.stdin:
        assert len(os.listdir("/proc/self/task")) == 1, "a process with threads must not be forked"
        assert not xla_bridge.backends_are_initialized(), "importing wideflow has started JAX"
        pid = os.fork()
        if pid == 0:
            try:
                make(json.loads(line))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(f"pid {pid}", flush=True)
        _, status = os.waitpid(pid, 0)
        print(f"ended {os.waitstatus_to_exitcode(status)}", flush=True)


if __name__ == "__main__":
    serve()
