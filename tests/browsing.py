"""Headless Chromium for tests of pages: fixtures for `conftest`, which alone imports them (two folders
that did would start two browsers, and a process can have but one)."""

import shutil
import time
from pathlib import Path

import pytest

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Watched:
    """A tab: what it complains of is in `trouble`, what it asks for in `requests`."""

    def __init__(self, page):
        self.page, self.trouble, self.requests = page, [], []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.trouble.append(f"uncaught: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.trouble.append(f"{message.type}: {message.text}")

    def open(self, path: str | Path, width: int = 1280, height: int = 900) -> "Watched":
        """The file `path` in a window so wide, after all it draws at once is drawn."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.goto(Path(path).absolute().as_uri())
        return self.drawn()

    def drawn(self) -> "Watched":
        """After two frames of the screen: what was asked to be drawn is drawn."""
        frames = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.page.evaluate(frames)
        return self

    def until(self, condition: str, seconds: float = 10) -> "Watched":
        """Wait for a condition in JavaScript (asked from outside: the page's policy forbids `eval`)."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"not within {seconds} s: {condition}"
            self.page.wait_for_timeout(20)
        return self

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def ink(self) -> list[str]:
        """What every canvas of the page shows, to be compared."""
        return self.page.evaluate("Array.from(document.querySelectorAll('canvas'), c => c.toDataURL())")

    def outside(self) -> list[str]:
        """Requests that leave the file."""
        return [url for url in self.requests if not url.startswith(("file:", "data:"))]


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window, or a skip that says what is missing."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs the Python package playwright: pip install 'wideflow[test]'"
    )
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip(f"needs Chromium: none of {', '.join(_NAMES)} is on the PATH")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=found, args=_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def browser_page(browser):
    """A fresh tab that is watched, on a screen with two pixels to the point."""
    context = browser.new_context(device_scale_factor=2)
    yield Watched(context.new_page())
    context.close()
