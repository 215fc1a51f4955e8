"""A progress bar with the time left, on a terminal only."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from ._typing import Scalar

Update = Callable[..., None]


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@contextlib.contextmanager
def bar(label: str, start: float, end: float, show: bool | None, unit: str = "t =") -> Iterator[Update]:
    """Yields `update(t, risk)`, for a run that goes from `start` to `end` now. `show=None` shows a bar
    only where there is a terminal to see it. `unit` says what t is."""
    show = sys.stderr.isatty() if show is None else show
    if not show:
        yield lambda t, risk=None: None
        return
    begun, shown, before = time.monotonic(), 0.0, ""

    def update(t: float, risk: Scalar | None = None) -> None:
        nonlocal shown, before
        now = time.monotonic()
        done = 1.0 if end <= 0 else min(1.0, max(0.0, t / end))
        if done < 1.0 and now - shown < 0.1:
            return
        shown, spent = now, now - begun
        left = f"{_clock(spent * (end - t) / (t - start))} left" if start < t < end else _clock(spent)
        filled = "█" * int(24 * done)
        known = "" if risk is None else f"  risk {np.mean(np.asarray(risk)):.4g}"
        text = f"{label} {filled:·<24} {done:4.0%}  {unit} {t:.4g} of {end:.4g}{known}  {left}"
        with contextlib.suppress(OSError):  # a terminal that was closed must not end the run
            print(f"\r{text:<{len(before)}}", end="", file=sys.stderr, flush=True)
        before = text

    try:
        yield update
    finally:
        with contextlib.suppress(OSError):
            print(file=sys.stderr, flush=True)
