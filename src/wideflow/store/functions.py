"""What a user's function depends on beside its code: the globals, modules and imports that it reads."""

import builtins
import dis
import functools
import gc
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data import Data
from . import doors, origins
from .bytecode import codes, instructions

_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_SILENT = ("PRECALL", "NOP", "PUSH_NULL")
MISSING = "a name that is not bound"
_CHECKERS = ("jaxtyping", "beartype", "typeguard")
_DISPATCHER = functools.singledispatch(lambda x: x).__code__  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Outside:
    """Stands for what a function reads by a door, of this name."""

    name: str


def dependencies(fn: types.FunctionType) -> Iterator[tuple[str, object]]:
    """Pairs (name, value) of all that `fn`, and the functions written inside it, may read from outside.

    A module counts by those of its values that are read, `module.sub.value`; where it is handed on as a
    whole, by all of it (the walk over values sees to that)."""
    values: Data = {}
    for code in codes(fn.__code__):
        steps = instructions(code)
        for i, step in enumerate(steps):
            if step.opname in _GLOBALS and not _is_own_name(steps[i : i + 2]):
                values.update(_chain(step.argval, _global(fn, step.argval), steps[i + 1 :]))
            elif step.opname == "IMPORT_NAME":
                level, names = steps[i - 2].argval, steps[i - 1].argval
                values.update(_imported(fn, step.argval, level, names))
            if _is_unseen(step):
                values[str(step.argval)] = Outside(str(step.argval))
    yield from sorted(values.items())


def words(fn: types.FunctionType) -> set[str]:
    """The names and texts in the code of a function: by them it may ask for attributes."""
    inside = list(codes(fn.__code__))
    texts = {const for code in inside for const in code.co_consts if isinstance(const, str)}
    return texts.union(*(code.co_names for code in inside))


def unchecked(fn: Callable) -> Callable:
    """The function that a checker of types is wrapped around: it computes the same, or nothing."""
    while isinstance(fn, types.FunctionType) and hasattr(fn, "__wrapped__") and _is_checker(fn):
        fn = fn.__wrapped__
    return fn


def dispatched(fn: types.FunctionType) -> Any:
    """The functions that `functools.singledispatch` chooses from, by type; None for any other function."""
    return fn.registry if fn.__code__ is _DISPATCHER else None  # type: ignore[attr-defined]


def cached(fn: object) -> list[object]:
    """The function inside a `functools.cache`. What `__wrapped__` says need not be it."""
    inside = [value for value in gc.get_referents(fn) if callable(value)]
    return [value for value in inside if getattr(value, "__module__", None) != "functools"] or inside


def _is_checker(fn: types.FunctionType) -> bool:
    home = str(fn.__globals__.get("__name__")).partition(".")[0]
    own = home in _CHECKERS and origins.of_file(fn.__code__.co_filename)
    return own or fn.__code__.co_filename.startswith("<@beartype")


def _is_unseen(step: dis.Instruction) -> bool:
    reads = step.opname in (*_ATTRIBUTES, "LOAD_GLOBAL") or step.opcode in dis.hasconst
    return reads and isinstance(step.argval, str) and step.argval in doors.UNSEEN


def _is_own_name(steps: list[dis.Instruction]) -> bool:
    """Whether a class body only notes in which module it stands: __module__ = __name__."""
    return steps[0].argval == "__name__" and steps[1].argval == "__module__"


def _global(fn: types.FunctionType, name: str) -> Any:
    return fn.__globals__.get(name, getattr(builtins, name, MISSING))


def _chain(name: str, value: Any, following: list[dis.Instruction]) -> Data:
    """What `name.a.b` reads, as far as these are modules, or functions and classes of installed packages,
    which somebody may have given other attributes."""
    for i, step in enumerate(following):
        if step.opname not in _ATTRIBUTES or not _has_names(value):
            break
        is_module = isinstance(value, types.ModuleType)
        module = value.__name__ if is_module else str(value.__module__)
        inside = step.argval if is_module else f"{value.__name__}.{step.argval}"
        name, value = f"{name}.{step.argval}", getattr(value, step.argval, MISSING)
        if value is sys.stdout or value is sys.stderr:
            return {name: "a stream to write to"}
        if not isinstance(value, types.ModuleType) and origins.installed(module):
            if _is_seeded(value, following[i + 1 :]):
                return {name: "a generator with a seed"}
            if doors.leads_outside(module, inside):
                return {name: Outside(name)}
    return {name: value}


def _has_names(value: Any) -> bool:
    return isinstance(value, types.ModuleType) or (callable(value) and origins.public_name(value) is not None)


def _is_seeded(value: object, following: list[dis.Instruction]) -> bool:
    """Whether this is `np.random.default_rng(0)`, with a number in the code."""
    if value is not np.random.default_rng and value is not np.random.RandomState:
        return False
    steps = [step for step in following[:4] if step.opname not in _SILENT]
    seeded = steps[0].opname == "LOAD_CONST" and isinstance(steps[0].argval, int)
    return seeded and steps[1].opname == "CALL" and steps[1].arg == 1


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
    return {f"from {full} import {k}": _member(module, full, k) for k in names}


def _member(module: Any, full: str, name: str) -> object:
    """What `from full import name` brings."""
    if origins.installed(full) and doors.leads_outside(full, name):
        return Outside(f"{full}.{name}")
    value = getattr(module, name, None)
    return _module(f"{full}.{name}") if value is None else value


def _module(full: str) -> Any:
    """The module that the function will import; it is imported now, as it will be anyway."""
    if full in sys.modules:
        return sys.modules[full]
    try:
        return importlib.import_module(full)
    except ImportError:
        return MISSING
