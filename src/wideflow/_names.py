"""Packages whose names are loaded when they are first asked for, and where a missing name may be."""

import importlib
import importlib.util
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import lazy_loader

from ._shown import shown


def attach(
    package: str, file: str, namespaces: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from the stub beside its file. The error for a
    name that is not in the package but in one of its `namespaces` says so."""
    load, listed, names = lazy_loader.attach_stub(package, file)

    def lookup(name: str) -> Any:
        try:
            return load(name)
        except AttributeError:
            hint = "" if _is_inner(package, name) else _hint(package, name, names, namespaces)
            raise AttributeError(f"{package} has no {shown(name)}.{hint}", name=name, obj=None) from None

    return lookup, listed, names


def _is_inner(package: str, name: str) -> bool:
    """Whether a name is none of the public ones by intent: private, or a module that is about to be imported
    (`from .. import presets` asks for the attribute first). To look for a hint would load much."""
    return name.startswith("_") or importlib.util.find_spec(f"{package}.{name}") is not None


def _hint(package: str, name: str, names: Iterable[str], namespaces: tuple[str, ...]) -> str:
    short = package.replace("wideflow", "wf", 1)
    for space in namespaces:
        if name in importlib.import_module(f"{package}.{space}").__all__:
            return f" {short}.{name} is now {short}.{space}.{name}."
    close = get_close_matches(name[:80], names, 1, 0.5)
    return f" Did you mean {close[0]!r}?" if close else ""
