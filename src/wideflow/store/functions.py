"""Hashes of functions: the same in every process, another one when the function would compute
something else."""

import dis
import functools
import hashlib
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

import jax
import numpy as np

_INSTALLED = (
    str(Path(__file__).parents[1]),
    *{sysconfig.get_path(k) for k in ("stdlib", "platstdlib", "purelib", "platlib")},
)
# Where staticmethod and classmethod, property, equinox and functools.wraps keep a class's function.
_INSIDE = ("__func__", "fget", "method", "__wrapped__")


def function_hash(fn: Any) -> str:
    """A hash of a function's code, defaults, what it closes over, and the constants and functions
    that it names in the user's own modules. Functions of installed packages count by their names:
    another version of a package is not another function."""
    return _Hasher().of(fn)


def class_hash(cls: type) -> str | None:
    """The same for the methods of a user's class; None for a class of an installed package."""
    return None if _installed_module(cls.__module__) else _Hasher().of(cls)


def _installed(file: str) -> bool:
    return file.startswith(("<frozen", *_INSTALLED)) or "site-packages" in file or "dist-packages" in file


def _installed_module(name: str | None) -> bool:
    module = sys.modules.get(name or "")
    return name in sys.builtin_module_names or _installed(getattr(module, "__file__", None) or "")


class _Hasher:
    """One walk over what a function is made of; shared parts are hashed once, cycles are cut."""

    def __init__(self) -> None:
        self.seen: dict[int, str] = {}
        self.alive: list[Any] = []  # an id means something as long as its object lives

    def of(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return f"{type(value).__name__}:{value!r}"
        if id(value) not in self.seen:
            self.seen[id(value)] = "itself"
            self.alive.append(value)
            text = f"{type(value).__qualname__}({';'.join(self.parts(value))})"
            self.seen[id(value)] = hashlib.sha256(text.encode()).hexdigest()
        return self.seen[id(value)]

    def all(self, *values: Any) -> list[str]:
        return [self.of(v) for v in values]

    def parts(self, value: Any) -> list[str]:
        """What the hash of a value is made of."""
        if isinstance(value, type):
            return self.cls(value)
        if isinstance(value, jax.Array | np.ndarray | np.generic):
            return _array(value)
        if isinstance(value, tuple | list):
            return self.all(*value)
        if isinstance(value, set | frozenset):
            return sorted(self.all(*value))  # their order differs from process to process
        if isinstance(value, dict | types.MappingProxyType):
            return sorted(f"{self.of(k)}={self.of(v)}" for k, v in value.items())
        if isinstance(value, types.CodeType):
            return [value.co_code.hex(), *value.co_names, *self.all(*value.co_consts)]
        if isinstance(value, types.ModuleType):
            return [value.__name__]
        if isinstance(value, functools.partial):
            return self.all(value.func, value.args, value.keywords)
        if isinstance(value, types.MethodType):
            return self.all(value.__func__, value.__self__)
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if hasattr(value, "__wrapped__"):  # jax.jit, jax.custom_jvp, functools.cache
            return self.all(value.__wrapped__)
        installed = _installed_module(type(value).__module__)
        if installed and callable(value) and hasattr(value, "__name__"):  # a builtin, a ufunc
            return [str(getattr(value, "__module__", "")), value.__name__]
        known = hasattr(value, "__dataclass_fields__") or isinstance(value, types.SimpleNamespace)
        if known or not installed:
            return self.all(type(value), getattr(value, "__dict__", {}))
        return []  # a lock, a file, a logger: nothing in it that is the same in another process

    def function(self, fn: types.FunctionType) -> list[str]:
        code = fn.__code__
        given = self.all(fn.__defaults__, fn.__kwdefaults__, *(_content(c) for c in fn.__closure__ or ()))
        if not _installed(code.co_filename):
            return [self.of(code), *given, *self.named(fn)]
        # co_qualname is its own: functools.wraps gives the wrapper another function's name
        inner = [self.of(code)] if "<lambda>" in code.co_qualname else []
        return [Path(code.co_filename).stem, code.co_qualname, *inner, *given]

    def named(self, fn: types.FunctionType) -> list[str]:
        """The globals that a user's function reads, and what it may read of the user's modules."""
        codes = _codes(fn.__code__)
        attributes = sorted({name for code in codes for name in code.co_names})
        steps = (step for code in codes for step in dis.get_instructions(code))
        names = sorted({s.argval for s in steps if s.opname in ("LOAD_GLOBAL", "LOAD_NAME")})
        parts = []
        for name in names:
            value = fn.__globals__.get(name)
            parts.append(f"{name}={self.of(value)}")
            if isinstance(value, types.ModuleType) and not _installed_module(value.__name__):
                parts.append(self.of({k: vars(value)[k] for k in attributes if k in vars(value)}))
        return parts

    def cls(self, cls: type) -> list[str]:
        if _installed_module(cls.__module__):
            return [str(cls.__module__), cls.__qualname__]
        inner = lambda v: next((getattr(v, k) for k in _INSIDE if hasattr(v, k)), v)
        methods = {k: inner(v) for k, v in vars(cls).items()}
        written = {  # by the user: what dataclasses make themselves comes from a "<string>"
            k: v
            for k, v in methods.items()
            if isinstance(v, types.FunctionType) and v.__code__.co_filename != "<string>"
        }
        return [cls.__qualname__, self.of(written), *self.all(*cls.__bases__)]


def _array(value: Any) -> list[str]:
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return [str(jax.random.key_impl(value)), *_array(jax.random.key_data(value))]
    array = np.ascontiguousarray(value)
    return [array.dtype.str, str(np.shape(value)), hashlib.sha256(array.tobytes()).hexdigest()]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return None


def _codes(code: types.CodeType) -> list[types.CodeType]:
    inner = [c for const in code.co_consts if isinstance(const, types.CodeType) for c in _codes(const)]
    return [code, *inner]
