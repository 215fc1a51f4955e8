"""The command in a process of its own that writes a checkpoint after each piece, so that it can be stopped
between two of them. Every ten seconds, as it is, a short run would have none. With STOP="15:30" it writes
none on the way, and sends itself signal 15 at the 30th saved time."""

import os
import resource
import signal
import sys

# a shell that starts the tests in the background has Ctrl-C ignored in all that it starts
signal.signal(signal.SIGINT, signal.default_int_handler)

from wideflow.cli.app import main  # noqa: E402

if __name__ == "__main__":
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
