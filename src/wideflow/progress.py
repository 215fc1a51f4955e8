"""A progress bar with the time left, on a terminal only."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

Update = "Callable[[float, float | None], None]"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@contextmanager
def bar(label: str, start: float, end: float, show: bool | None) -> Iterator:
    """Yields `update(t, risk)`. `show=None` shows a bar only where there is a terminal to see it."""
    show = sys.stderr.isatty() if show is None else show
    if not show:
        yield lambda t, risk=None: None
        return
    begun, last = time.monotonic(), [0.0, ""]

    def update(t: float, risk: float | None = None) -> None:
        now = time.monotonic()
        done = 1.0 if end <= start else min(1.0, max(0.0, (t - start) / (end - start)))
        if done < 1.0 and now - last[0] < 0.1:
            return
        last[0], spent = now, now - begun
        left = f"{_clock(spent * (1 - done) / done)} left" if 0 < done < 1 else _clock(spent)
        filled = "█" * int(24 * done)
        known = "" if risk is None else f"  risk {risk:.4g}"
        text = f"{label} {filled:·<24} {done:4.0%}  t = {t:.4g} of {end:.4g}{known}  {left}"
        print(f"\r{text:<{len(str(last[1]))}}", end="", file=sys.stderr, flush=True)
        last[1] = text

    try:
        yield update
    finally:
        print(file=sys.stderr, flush=True)
