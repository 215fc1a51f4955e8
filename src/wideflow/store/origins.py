"""Whose code it is: that of an installed package, which counts by its name and version, or the user's own."""

import functools
import importlib.metadata
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

_PLACES = (
    str(Path(__file__).parents[1]),
    *{sysconfig.get_path(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")},
)
# Their versions are kept with every run, and another one is told when the run goes on.
_KEPT = frozenset(("wideflow", "jax", "jaxlib", "numpy", "equinox", "diffrax", "optax", "scipy"))


def of_file(file: str) -> bool:
    """Whether a file of code belongs to Python or to an installed package."""
    return file.startswith(("<frozen", *_PLACES)) or "site-packages" in file or "dist-packages" in file


def installed(name: str | None) -> bool:
    """Whether the module of this name is installed, with a version that tells it from another."""
    name = name or ""
    root = name.partition(".")[0]
    if name in sys.builtin_module_names or root in sys.builtin_module_names:
        return True
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None) or getattr(sys.modules.get(root), "__file__", None) or ""
    return of_file(file) and version(name) is not None


@functools.cache
def version(name: str) -> str | None:
    """The version that an installed module counts with: "" where it is kept elsewhere, None if there is none
    (a file that someone put among the packages)."""
    root = name.partition(".")[0]
    if root in _KEPT or root in sys.stdlib_module_names:
        return ""
    distributions = _distributions().get(root)
    return None if not distributions else ",".join(sorted(map(importlib.metadata.version, distributions)))


@functools.cache
def _distributions() -> Any:
    return importlib.metadata.packages_distributions()


def public_name(value: object) -> list[str] | None:
    """[module, name, version] by which an installed package has this very object, if it does."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    name = name or getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not installed(module):
        return None
    at: object = sys.modules.get(module)
    for part in name.split("."):
        at = getattr(at, part, None)
    return [module, name, version(module) or ""] if at is value else None


def is_own_module(value: object) -> bool:
    """Whether this is a module of the user's."""
    return isinstance(value, types.ModuleType) and not installed(value.__name__)
