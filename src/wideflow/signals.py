"""Signals that ask a process to end: the piece that runs ends first, and what was reached is saved.

While `heeding` is in force, SIGINT (Ctrl-C), SIGTERM (a queue's time limit) and SIGHUP (a terminal that is
closed) only ask; loops look at `asked()` between their pieces. An exception thrown into code that is being
compiled, or while Python collects garbage, may be lost or crash. A second signal ends at once."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from signal import SIGHUP, SIGINT, SIGTERM, Signals

BY_HAND = (SIGINT,)
ENDING = (SIGINT, SIGTERM, SIGHUP)
_PLAIN = (signal.default_int_handler, signal.SIG_DFL)


@dataclass
class Request:
    """Which signal has asked, if one has."""

    signal: Signals | None = None


_heeded: Request | None = None


def asked() -> Signals | None:
    """The signal that asks what runs in the main thread to end, if one has come."""
    if _heeded is None or threading.current_thread() is not threading.main_thread():
        return None
    return _heeded.signal


def farewell(request: Request | None, message: str) -> None:
    """Tell how what was asked to end has ended; inside of another that heeds, its end is told there."""
    if request is not None:
        with contextlib.suppress(OSError):  # the terminal may be what was closed
            print(message, file=sys.stderr)


@contextlib.contextmanager
def heeding(
    numbers: Sequence[Signals], own: Callable | None = None, deliver: bool = True
) -> Iterator[Request | None]:
    """Within, the first of these signals only asks. The second does what it would have done without us.

    Yields where it is written down; None inside another such context and outside the main thread, where
    nothing changes. Signals that are ignored or have a handler of the user's stay as they are; `own` is a
    handler that may be replaced too. Handlers are restored in the end, and then SIGTERM and SIGHUP have their
    effect unless `deliver` is False. (Of Ctrl-C an interrupted run is the effect.)"""
    global _heeded
    if _heeded is not None or threading.current_thread() is not threading.main_thread():
        yield None
        return
    request = Request()
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: old for number, old in before.items() if old in _PLAIN or (own and old is own)}

    def ask(number: int, frame: object) -> None:
        if request.signal is not None:
            signal.signal(number, before[Signals(number)])
            signal.raise_signal(number)
            return
        request.signal = Signals(number)
        with contextlib.suppress(OSError):
            if number == SIGINT and os.isatty(2):
                os.write(2, b"\nStopping after the piece that is running; Ctrl-C again stops at once.\n")

    _heeded = request
    try:
        for number in before:
            signal.signal(number, ask)
        yield request
    finally:
        _heeded = None
        for number, old in before.items():
            signal.signal(number, old)
        if deliver and request.signal in (SIGTERM, SIGHUP):
            signal.raise_signal(request.signal)
