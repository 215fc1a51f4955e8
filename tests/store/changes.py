"""The observers of `ways`, `outside` and `alike`, made from files of their own. As a script it prints the
fingerprints of all of them, to be compared from process to process."""

import contextlib
import importlib
import importlib.util
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))
from store.alike import PAIRS, READABLE
from store.outside import OUTSIDE
from store.ways import UNREADABLE, WAYS
from wideflow.store.fingerprints import UnreadableError, fingerprint

SOURCES = WAYS | OUTSIDE | READABLE | {f"{k}, {i}": pair[i] for k, pair in PAIRS.items() for i in (0, 1)}
_HELPER = """VALUE = {0}
OTHER = 1
def look(): return VALUE
class Look:
    def look(self): return look()
"""


def is_possible(way: str) -> bool:
    """Whether the packages that a way needs are installed: some are of no extra of the tests."""
    needed = re.findall(r"\b(torch|sympy|pyarrow|beartype)\b", SOURCES[way])
    return all(importlib.util.find_spec(name) for name in needed)


def possible(table: Any) -> list[str]:
    return [way for way in table if is_possible(way)]


@contextlib.contextmanager
def made(way: str, value: int, folder: Path) -> Iterator[Any]:
    """The observer `f` of a way with this number, from files of its own in the folder."""
    name = f"way{list(SOURCES).index(way)}"
    here = folder / f"{name}_{value}"
    source = textwrap.dedent(SOURCES[way]).replace("MODULE", name)
    files = {
        f"{name}.py": re.sub(r"V(?!ALUE|al|ar)", str(value), source),
        f"helper_{name}.py": _HELPER.format(value),
        f"lazy_{name}.py": f"def __getattr__(name): return {value}\n",
        f"package_{name}/__init__.py": "from . import inner\n",
        f"package_{name}/inner.py": f"VALUE = {value}\n",
    }
    (here / f"package_{name}").mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (here / file).write_text(text)
    for loaded in [m for m in sys.modules if m.partition(".")[0].partition("_")[2] == name]:
        del sys.modules[loaded]
    importlib.invalidate_caches()
    sys.path.insert(0, str(here))
    spec = importlib.util.spec_from_file_location(name, here / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        yield module.f
    finally:
        sys.path.remove(str(here))
        getattr(module, "undo", lambda: None)()


def mark(way: str, value: int, folder: Path) -> str:
    """The fingerprint of an observer, or "refused"."""
    with made(way, value, folder) as fn:
        return marked(fn)


def marked(fn: Any) -> str:
    try:
        return fingerprint(fn)
    except UnreadableError as error:
        assert 'wf.named("scale-3", fn)' in str(error)
        return "refused"


def must_be_refused(way: str) -> bool:
    return way in OUTSIDE or way in UNREADABLE


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)  # as the tests do
    print(json.dumps({way: mark(way, 3, Path(sys.argv[1])) for way in possible(SOURCES)}))
