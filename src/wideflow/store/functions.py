"""What a user's function depends on beside its code: the globals, modules and imports that it reads."""

import builtins
import dis
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._data import Data
from . import origins

# Doors to what no analysis of a function can see: code that is made as it runs, files, the environment.
_DOORS = {
    id(value): name
    for name, value in {
        **{
            name: getattr(builtins, name)
            for name in ("eval", "exec", "globals", "open", "input", "__import__")
        },
        **{f"np.{name}": getattr(np, name) for name in ("load", "loadtxt", "genfromtxt", "fromfile")},
        "importlib.import_module": importlib.import_module,
        "os.environ": os.environ,
        "os.getenv": os.getenv,
        "sys.argv": sys.argv,
    }.items()
}
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
MISSING = "a name that is not bound"


def dependencies(fn: types.FunctionType) -> Iterator[tuple[str, object]]:
    """Pairs (name, value) of all that `fn`, and the functions written inside it, may read from outside.

    A module of the user's counts by those of its values that are read, `module.sub.value`; where it is
    handed on as a whole, by all of it (the walk over values sees to that)."""
    seen: Data = {}
    for code in codes(fn.__code__):
        steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
        for i, step in enumerate(steps):
            if step.opname in _GLOBALS:
                seen.update(_chain(step.argval, _global(fn, step.argval), steps[i + 1 :]))
            elif step.opname == "IMPORT_NAME":
                level, names = steps[i - 2].argval, steps[i - 1].argval
                seen.update(_imported(fn, step.argval, level, names))
    yield from sorted(seen.items())


def door(value: object) -> str | None:
    """What a function that uses this value may read, unseen."""
    return _DOORS.get(id(value))


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code and all that are inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def _global(fn: types.FunctionType, name: str) -> Any:
    return fn.__globals__.get(name, getattr(builtins, name, MISSING))


def _chain(name: str, value: object, following: list[dis.Instruction]) -> Data:
    """What `name.a.b` reads, as far as these are modules: of the user's the value, of others the module,
    unless it is a door."""
    read = {name: value}
    for step in following:
        if not isinstance(value, types.ModuleType) or step.opname not in _ATTRIBUTES:
            break
        own = origins.is_own_module(value)
        name, value = f"{name}.{step.argval}", getattr(value, step.argval, MISSING)
        if own or door(value):
            read = {name: value}
    return read


def _imported(fn: types.FunctionType, name: str, level: int, names: tuple[str, ...] | None) -> Data:
    """What an import inside a function brings: names, or the module as a whole."""
    package = fn.__globals__.get("__package__") or ""
    try:
        full = importlib.util.resolve_name("." * level + name, package)
    except ImportError:
        return {f"import {name}": MISSING}
    module = _module(full)
    if not names:
        return {f"import {full}": (module, _module(full.partition(".")[0]))}
    values = {f"from {full} import {k}": getattr(module, k, None) for k in names}
    if origins.is_own_module(module):
        return {k: _module(f"{full}.{k.rpartition(' ')[2]}") if v is None else v for k, v in values.items()}
    return {f"import {full}": module} | {k: v for k, v in values.items() if door(v)}


def _module(full: str) -> Any:
    """The module that the function will import; it is imported now, if it is the user's own."""
    if full in sys.modules:
        return sys.modules[full]
    if origins.version(full) == "":
        return f"module {full}"
    try:
        return importlib.import_module(full)
    except ImportError:
        return MISSING
