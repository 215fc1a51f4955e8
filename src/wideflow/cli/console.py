"""What the command says, and where: words on a terminal, JSON when asked for, errors on standard error."""

import contextlib
import json
import math
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from .. import signals
from .._data import Data
from .._shown import readable

GOOD, FAILED, BAD_INPUT, DIVERGED, UNSAVED, INTERRUPTED = 0, 1, 2, 3, 4, 130


class OutputError(OSError):
    """Standard output does not take what was asked for."""


def on_terminal() -> bool:
    """Whether a person is looking at the output."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """A line for a person; nothing where no one looks."""
    if on_terminal():
        answer(text)


def tell(text: str) -> None:
    """A line on standard error, for a person."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def answer(text: str) -> None:
    """What was asked for, on standard output in any case."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror, "Standard output") from None


def as_json(data: object) -> None:
    """One JSON document on standard output; what JSON has no number for is text, "inf" or "nan"."""
    answer(json.dumps(_strict(data), indent=1, ensure_ascii=False, allow_nan=False))


def _strict(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(inner) for inner in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns side by side: framed by rich on a terminal, else plain text."""
    rows = [list(row) for row in rows]
    if on_terminal():
        from rich.console import Console
        from rich.table import Table

        made = Table(*head, box=None, pad_edge=False, header_style="bold")
        for row in rows:
            made.add_row(*[cell.replace("[", r"\[") for cell in row])
        console = Console()
        with console.capture() as captured:
            console.print(made)
        return captured.get().rstrip()
    wide = [max(len(row[i]) for row in [list(head), *rows]) for i in range(len(head))]
    line = lambda row: "  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip()
    return "\n".join(line(row) for row in [list(head), *rows])


def reopen_streams() -> None:
    """Let standard streams that were closed lead nowhere. Else the next files that are opened would get their
    numbers, and whatever a library says would be written into them."""
    lowest = os.open(os.devnull, os.O_RDWR)
    while lowest <= 2:
        lowest = os.dup(lowest)
    os.close(lowest)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))


_farewell: Data = {"words": "Stopped.", "data": None}


def if_stopped(words: str, data: object = None) -> None:
    """What to say when a signal ends the command from now on: on standard error, and data as JSON."""
    _farewell.update(words=words, data=data)


def leave_when_stopped() -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP end the process at once: an exception thrown into code that is being
    compiled may be lost, or crash. What is on the disk is whole at any time. Signals that are ignored (Ctrl-C
    in the background, SIGHUP under nohup) stay so."""
    for number in signals.ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: object) -> NoReturn:
    """Say goodbye and end: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP, as shells have it."""
    words = [(2, f"{_farewell['words']}\n")]
    if _farewell["data"] is not None:
        words.append((1, f"{json.dumps(_farewell['data'], indent=1)}\n"))
    for descriptor, text in words:
        with contextlib.suppress(OSError):  # the terminal may be what was closed
            os.write(descriptor, text.encode())  # print may be what was interrupted
    os._exit(128 + number)


@contextlib.contextmanager
def stopping_softly() -> Iterator[None]:
    """Within, the first signal lets what runs come to the end of its piece and be saved; then the command
    ends as it does elsewhere. A second signal ends it at once."""
    with signals.heeding(signals.ENDING, own=_stop, deliver=False) as request:
        yield
    if request is not None and request.signal is not None:
        sys.stdout.flush()
        _stop(request.signal, None)


def leave(code: int) -> NoReturn:
    """End the command with an exit code."""
    import typer

    raise typer.Exit(code)


def refuse(message: str, json_too: bool = False, **more: object) -> NoReturn:
    """Bad input: say what is wrong on standard error (as JSON too, if that was asked for), leave with 2."""
    message = readable(message)
    print(message, file=sys.stderr, flush=True)
    if json_too:
        as_json({"status": "error", "message": message, **more})
    leave(BAD_INPUT)
