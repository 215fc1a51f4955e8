"""A progress bar with the time left, on a terminal only."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ._typing import Scalar

Update = Callable[..., None]
_OFTEN = 0.1  # seconds between two looks at a bar
_SELDOM = 30.0  # between two lines of a part where there is no terminal


@dataclass(frozen=True)
class Part:
    """A run that is part of something longer: what it is called, and how much comes after it, in units of the
    run (None if that is not known: then no time left is told). Its bar goes when it is done; where there is
    no terminal, it is a line every half minute."""

    label: str
    after: float | None = 0.0


def clock(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@contextlib.contextmanager
def bar(
    label: str, start: float, end: float, show: bool | Part | None, unit: str = "t ="
) -> Iterator[Update]:
    """Yields `update(t, risk)`, for a run that goes from `start` to `end` now. `show=None` shows a bar
    only where there is a terminal to see it. `unit` says what t is."""
    part = show if isinstance(show, Part) else None
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda t, risk=None: None
        return
    lines = part is not None and not sys.stderr.isatty()
    begun, before = time.monotonic(), ""
    shown, pause = (begun, _SELDOM) if lines else (0.0, _OFTEN)
    after, label = (0.0, label) if part is None else (part.after, part.label)

    def left(t: float, spent: float) -> str:
        if not start < t < end or after is None:
            return clock(spent)
        return f"{clock(spent * (end - t + after * (end - start)) / (t - start))} left"

    def update(t: float, risk: Scalar | None = None) -> None:
        nonlocal shown, before
        now = time.monotonic()
        done = 1.0 if end <= 0 else min(1.0, max(0.0, t / end))
        if now - shown < pause and (done < 1.0 or lines):
            return
        shown = now
        filled = "█" * int(24 * done)
        known = "" if risk is None else f"  risk {np.mean(np.asarray(risk)):.4g}"
        text = (
            f"{label} {filled:·<24} {done:4.0%}  {unit} {t:.4g} of {end:.4g}{known}  {left(t, now - begun)}"
        )
        with contextlib.suppress(OSError):  # a terminal that was closed must not end the run
            if lines:
                print(text, file=sys.stderr, flush=True)
            else:
                print(f"\r{text:<{len(before)}}", end="", file=sys.stderr, flush=True)
        before = text

    try:
        yield update
    finally:
        with contextlib.suppress(OSError):
            if part is None:
                print(file=sys.stderr, flush=True)
            elif not lines:
                print(f"\r{'':<{len(before)}}\r", end="", file=sys.stderr, flush=True)
