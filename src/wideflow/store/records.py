"""Objects as data: JSON for the structure, named arrays for the numbers. No code, no pickle."""

import dataclasses
import hashlib
import json
import math
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_TYPES: dict[str, type] = {}


def recorded(*classes: type) -> None:
    """Make classes known by name, so that `decode` can build them again."""
    for cls in classes:
        _TYPES[cls.__name__] = cls


class Unknown:
    """Stands for a user's function that a file names but cannot hold."""

    def __init__(self, name: str):
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            f"This run used your own function {self.__name__!r}, which a file cannot hold. Load it "
            f"with wf.load(dir, functions={{{self.__name__!r}: {self.__name__}}})."
        )


def encode(obj: Any, arrays: dict[str, np.ndarray], path: str = "") -> Any:
    """`obj` as JSON data, its arrays put into `arrays` under their paths."""
    inside = lambda value, name: encode(value, arrays, f"{path}.{name}" if path else str(name))  # noqa: E731
    if obj is None or isinstance(obj, bool | int | str):
        return obj
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else {"number": repr(obj)}
    if isinstance(obj, np.generic):
        return inside(np.asarray(obj), "value")
    if isinstance(obj, jax.Array | np.ndarray):
        if jnp.issubdtype(obj.dtype, jax.dtypes.prng_key):
            arrays[path] = np.asarray(jax.random.key_data(obj))
            return {"key": path, "impl": str(jax.random.key_impl(obj))}
        arrays[path] = np.asarray(obj)
        return {"array": path}
    if isinstance(obj, dict):
        return {"map": [[k, inside(v, k)] for k, v in obj.items()]}
    fields = _fields(obj)
    if fields is not None:
        return {"type": type(obj).__name__} | {k: inside(v, k) for k, v in fields.items()}
    if isinstance(obj, tuple | list):
        return {"list": [inside(v, i) for i, v in enumerate(obj)]}
    if callable(obj):
        return {"function": _name(obj), "sha256": function_hash(obj)}
    raise TypeError(f"{path or 'object'}: {type(obj).__name__} cannot be recorded as data.")


def decode(data: Any, arrays: dict[str, np.ndarray], functions: dict[str, Callable] | None = None) -> Any:
    """The object that `encode` described; user functions come from `functions`, by name."""
    inside = lambda value: decode(value, arrays, functions)  # noqa: E731
    if not isinstance(data, dict):
        return data
    if "number" in data:
        return float(data["number"])
    if "array" in data:
        return jnp.asarray(arrays[data["array"]])
    if "key" in data:
        impl = data["impl"]
        return jax.random.wrap_key_data(jnp.asarray(arrays[data["key"]]), impl=impl)
    if "map" in data:
        return {k: inside(v) for k, v in data["map"]}
    if "list" in data:
        return tuple(inside(v) for v in data["list"])
    if "function" in data:
        return _function(data, functions or {})
    name = data["type"]
    if name not in _TYPES:
        raise ValueError(f"The record names a type {name!r} that this version does not know.")
    return _build(_TYPES[name], {k: inside(v) for k, v in data.items() if k != "type"})


def fingerprint(*objs: Any) -> str:
    """A hash of everything in the objects: structure, numbers, arrays, and code of functions."""
    arrays: dict[str, np.ndarray] = {}
    data = encode(objs, arrays)
    digest = hashlib.sha256(json.dumps(data).encode())
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}:{value.dtype.str}:{value.shape}".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def describe(obj: Any) -> Any:
    """`encode` for reading: large arrays are replaced by shape, dtype and hash."""
    arrays: dict[str, np.ndarray] = {}
    return _inline(encode(obj, arrays), arrays)


def _inline(data: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(data, list):
        return [_inline(v, arrays) for v in data]
    if not isinstance(data, dict):
        return data
    name = data.get("array", data.get("key"))
    if name is None:
        return {k: _inline(v, arrays) for k, v in data.items()}
    value = arrays[name]
    if value.size <= 16 and value.dtype.kind in "fiub" and np.isfinite(value).all():
        return value.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return {"shape": list(value.shape), "dtype": str(value.dtype), "sha256": digest}


def _fields(obj: Any) -> dict[str, Any] | None:
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj)}
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return dict(zip(obj._fields, obj, strict=True))
    return None


def _build(cls: type, fields: dict[str, Any]) -> Any:
    rebuild = getattr(cls, "from_record", None)  # e.g. a named activation finds its own function
    if rebuild is not None:
        return rebuild(**fields)
    if issubclass(cls, tuple):
        return cls(**fields)
    obj = object.__new__(cls)  # the fields were checked when the object was first made
    for name, value in fields.items():
        object.__setattr__(obj, name, value)
    return obj


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _function(data: dict[str, Any], functions: dict[str, Callable]) -> Callable:
    name = data["function"]
    if name not in functions:
        return Unknown(name)
    if function_hash(functions[name]) != data["sha256"]:
        raise ValueError(
            f"The function {name!r} given to load is not the one the run used: its code or the "
            "values it closes over differ."
        )
    return functions[name]


def function_hash(fn: Any, depth: int = 0) -> str:
    """A hash of a function's code, defaults, and what it closes over."""
    digest = hashlib.sha256()
    if depth > 8:
        return ""
    fn = getattr(fn, "__wrapped__", fn)
    if hasattr(fn, "func") and hasattr(fn, "keywords"):  # functools.partial
        pieces = [fn.func, *fn.args, *sorted(fn.keywords.items())]
    elif isinstance(fn, types.FunctionType):
        cells = [c.cell_contents for c in fn.__closure__ or ()]
        named = [fn.__globals__.get(n) for n in fn.__code__.co_names]
        numbers = [v for v in named if isinstance(v, int | float | str | np.ndarray | jax.Array)]
        pieces = [fn.__code__, fn.__defaults__ or (), fn.__kwdefaults__ or {}, *cells, *numbers]
    else:
        pieces = [_name(fn), type(fn).__name__]
    for piece in pieces:
        digest.update(_piece(piece, depth + 1).encode())
    return digest.hexdigest()


def _piece(value: Any, depth: int) -> str:
    if isinstance(value, types.CodeType):
        constants = "".join(_piece(c, depth) for c in value.co_consts)
        return value.co_code.hex() + ",".join(value.co_names) + constants
    if isinstance(value, jax.Array | np.ndarray):
        return fingerprint(value)
    if isinstance(value, tuple | list):
        return "[" + ",".join(_piece(v, depth) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{k}:{_piece(v, depth)}" for k, v in value.items()) + "}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if _fields(value) is not None:
        return "".join(f"{k}:{_piece(v, depth)}" for k, v in _fields(value).items())
    return function_hash(value, depth) if callable(value) else type(value).__name__
