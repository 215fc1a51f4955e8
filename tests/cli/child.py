"""The command in a process of its own that writes a checkpoint after each piece, so that it can be stopped
between two of them. Every ten seconds, as it is, a short run would have none."""

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
    sys.argv[0] = "wideflow"
    main()
