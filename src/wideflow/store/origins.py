"""Whose code it is: that of an installed package, which counts by its name and version, or the user's own,
which counts by content. Packages installed in editable mode, and files that someone put among the packages,
are the user's own."""

import functools
import hashlib
import importlib.machinery
import importlib.metadata
import os
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

_PLACES = tuple(
    os.path.join(place, "")
    for place in (
        str(Path(__file__).parents[1]),
        *{sysconfig.get_path(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")},
    )
)
# Their versions are kept with every run, and another one is told when the run goes on.
VERSIONED = ("wideflow", "jax", "jaxlib", "numpy", "equinox", "diffrax", "optax", "scipy")


def of_file(file: str) -> bool:
    """Whether a file of code lies where Python and installed packages are."""
    among = {"site-packages", "dist-packages"} & set(Path(file).parts)
    return file.startswith(("<frozen", *_PLACES)) or bool(among)


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
    if root in VERSIONED or root in sys.stdlib_module_names:
        return ""
    distributions = _distributions().get(root)
    return None if not distributions else ",".join(sorted(map(importlib.metadata.version, distributions)))


@functools.cache
def _distributions() -> Any:
    return importlib.metadata.packages_distributions()


def public_name(value: object) -> list[str] | None:
    """[module, name, version] by which an installed package has this very object, if it does and if nobody
    has put code of their own into it."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    name = name or getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not installed(module):
        return None
    at: object = sys.modules.get(module)
    for part in name.split("."):
        at = getattr(at, part, None)
    return [module, name, version(module) or ""] if at is value and not _is_patched(value) else None


def _is_patched(value: object) -> bool:
    """Whether a user's function stands in for one of the package, or for a method of this class."""
    if isinstance(value, types.FunctionType):
        return is_own(value)
    bases = value.__mro__ if isinstance(value, type) else ()
    functions = (fn for cls in bases for fn in vars(cls).values() if type(fn) is types.FunctionType)
    return any(is_own(fn) and (_home(fn) or not fn.__code__.co_filename.startswith("<")) for fn in functions)


def is_own(fn: types.FunctionType) -> bool:
    """Whether a function is the user's: by the module that it reads its globals from and by its file. What
    it calls itself (`__module__`) is not asked, as a wrapper takes that from what it wraps."""
    file, home = fn.__code__.co_filename, _home(fn)
    if home is None:  # made by exec in a namespace of its own
        return not of_file(file)
    return not (installed(home) and (of_file(file) or file.startswith("<")))


def _home(fn: types.FunctionType) -> str | None:
    """The module whose globals a function reads."""
    name = fn.__globals__.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    return name if module is not None and vars(module) is fn.__globals__ else None


def extension(name: str | None) -> str | None:
    """The hash of the file of a compiled module of the user's own; None for any other module."""
    module = sys.modules.get(name or "")
    file = getattr(module, "__file__", None) or ""
    if installed(name) or not file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()
