"""Around every command: warnings are told, and what the system refuses is a message and an exit code."""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

from .._shown import readable
from .console import OutputError, leave


@contextlib.contextmanager
def warnings_told() -> Iterator[None]:
    """Tell each warning once, in one line on standard error."""
    said: set[str] = set()

    def tell(message, category, filename, lineno, file=None, line=None) -> None:
        text = " ".join(str(message).split())
        if text not in said:
            said.add(text)
            print(f"warning: {text}", file=sys.stderr, flush=True)

    with warnings.catch_warnings():
        if not sys.warnoptions:
            for kind in (UserWarning, RuntimeWarning):
                warnings.simplefilter("default", kind)
        warnings.showwarning = tell
        yield


@contextlib.contextmanager
def refusals_told(code: int) -> Iterator[None]:
    """End with this code and a line on standard error where the system refuses a file or the output: a full
    disk, a fault of a device. A reader that went away (`| head`) is none."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error, OutputError):
            _let_go(sys.stdout.fileno())
        what = error.filename or "A file"
        told = readable(f"{what} cannot be written or read: {error.strerror or error}.")
        print(told, file=sys.stderr, flush=True)
        leave(code)


def _let_go(descriptor: int) -> None:
    """What is still in the buffer would be tried again, and fail again, when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
