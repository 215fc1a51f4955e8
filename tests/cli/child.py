"""The command in a process of its own that writes a checkpoint after each piece, so that it can be stopped
between two of them. Every ten seconds, as it is, a short run would have none. With STOP="15:30" it writes
none on the way, and sends itself signal 15 at the 30th saved time. With LOOKED=file it stops after its look
at the folder, before the lock, and with HOLDS=file within it, at the second saved time: it makes the file,
and goes on when that has been removed. With LOCKS="none" it is on a file system that has none."""

import errno
import fcntl
import os
import resource
import signal
import sys
import time
from pathlib import Path

# a shell that starts the tests in the background has Ctrl-C ignored in all that it starts
signal.signal(signal.SIGINT, signal.default_int_handler)

from wideflow.cli.app import main  # noqa: E402


def wait(file):
    Path(file).touch()
    end = time.monotonic() + 300
    while Path(file).exists() and time.monotonic() < end:
        time.sleep(0.02)


def looks(file):
    from wideflow.study.folder import StudyFolder

    lock = StudyFolder.lock

    def after_a_look(self):
        wait(file)
        return lock(self)

    StudyFolder.lock = after_a_look


def holds(file):
    from wideflow import loop

    save_if_due, held = loop._Loop.save_if_due, []

    def holding(self):
        save_if_due(self)
        if len(self.rows) == 2 and not held:
            held.append(True)
            wait(file)

    loop._Loop.save_if_due = holding


def no_locks(*args):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


if __name__ == "__main__":
    if os.environ.get("LOCKS") == "none":
        fcntl.flock = no_locks
    for name, hook in {"LOOKED": looks, "HOLDS": holds}.items():
        if name in os.environ:
            hook(os.environ[name])
    if largest := int(os.environ.get("LARGEST_FILE", "0")):  # bytes, from which on the system refuses a file
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
    from wideflow.study import perform

    perform.EVERY = 0.0
    if stop := os.environ.get("STOP"):
        from wideflow import loop

        number, at = map(int, stop.split(":"))
        perform.EVERY, save_if_due = 1e9, loop._Loop.save_if_due

        def stopping(self):
            if len(self.rows) == at:
                os.kill(os.getpid(), number)
            save_if_due(self)

        loop._Loop.save_if_due = stopping
    sys.argv[0] = "wideflow"
    main()
