"""Objects as data: JSON for the structure, named arrays for the numbers. No code, no pickle."""

import dataclasses
import hashlib
import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .functions import class_hash
from .functions import function_hash as _function_hash

Fields = Callable[[Any], dict[str, Any]]
_FIELDS: dict[type, Fields] = {}
_BUILD: dict[str, Callable[..., Any]] = {}


def recorded(*classes: type, fields: Fields | None = None, build: Callable[..., Any] | None = None) -> None:
    """Make classes known by name, so that `decode` can build them again. Dataclasses and named
    tuples need no more; else `fields(obj)` says what is stored, and `build(**fields)` undoes it."""
    for cls in classes:
        _BUILD[cls.__name__] = build or _builder(cls)
        if fields is not None:
            _FIELDS[cls] = fields


class Unknown:
    """Stands for a user's function that a file names but cannot hold."""

    def __init__(self, name: str, sha256: str):
        self.__name__ = name
        self.sha256 = sha256

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            f"This run used your own function {self.__name__!r}, which a file cannot hold. Load it "
            f"with wf.load(dir, functions={{{self.__name__!r}: {self.__name__}}})."
        )


def encode(obj: Any, arrays: dict[str, np.ndarray], path: str = "") -> Any:
    """`obj` as JSON data, its arrays put into `arrays` under their paths."""
    inside = lambda value, name: encode(value, arrays, f"{path}.{name}" if path else str(name))
    if obj is None or isinstance(obj, bool | int | str):
        return obj
    if isinstance(obj, float):
        return float(obj) if math.isfinite(obj) else {"number": repr(float(obj))}
    if isinstance(obj, jax.Array | np.ndarray | np.generic):
        return _encode_array(obj, arrays, path or "value")
    if isinstance(obj, dict):
        return {"map": [[k, inside(v, k)] for k, v in obj.items()]}
    fields = _fields(obj)
    if fields is not None:
        code = class_hash(type(obj))
        head = {"type": type(obj).__name__} | ({} if code is None else {"code": code})
        return head | {k: inside(v, k) for k, v in fields.items()}
    if isinstance(obj, tuple | list):
        return {"list": [inside(v, i) for i, v in enumerate(obj)]}
    if callable(obj):
        return {"function": _name(obj), "sha256": function_hash(obj)}
    raise TypeError(f"{path or 'object'}: {type(obj).__name__} cannot be recorded as data.")


def decode(data: Any, arrays: dict[str, np.ndarray], functions: dict[str, Callable] | None = None) -> Any:
    """The object that `encode` described; user functions come from `functions`, by name or hash."""
    inside = lambda value: decode(value, arrays, functions)
    if not isinstance(data, dict):
        return data
    if "type" in data:
        name = data["type"]
        if name not in _BUILD:
            raise ValueError(f"The record names a type {name!r} that this version does not know.")
        return _BUILD[name](**{k: inside(v) for k, v in data.items() if k not in ("type", "code")})
    if "number" in data:
        return float(data["number"])
    if "array" in data:
        return _decode_array(arrays[data["array"]])
    if "key" in data:
        return jax.random.wrap_key_data(jnp.asarray(arrays[data["key"]]), impl=data["impl"])
    if "map" in data:
        return {k: inside(v) for k, v in data["map"]}
    if "list" in data:
        return tuple(inside(v) for v in data["list"])
    return _decode_function(data, functions or {})


def functions_in(obj: Any) -> dict[str, Callable]:
    """The functions inside an object by their hash: with them, `decode` builds it whole again."""
    fields = _fields(obj)
    if fields is None and callable(obj):
        return {function_hash(obj): obj}
    parts = fields if fields is not None else obj
    parts = parts.values() if isinstance(parts, dict) else parts if isinstance(parts, tuple | list) else ()
    return {k: fn for part in parts for k, fn in functions_in(part).items()}


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


def function_hash(fn: Any) -> str:
    """A hash of what a function computes (see `wideflow.store.functions`)."""
    return fn.sha256 if isinstance(fn, Unknown) else _function_hash(fn)


def describe(obj: Any) -> Any:
    """`encode` for reading: large arrays are replaced by shape, dtype and hash."""
    arrays: dict[str, np.ndarray] = {}
    return _inline(encode(obj, arrays), arrays)


def plain(value: Any) -> Any:
    """A report as JSON data, whatever is in it: a run must not fail on what it has to tell."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def revived(value: Any) -> Any:
    """What `plain` was given, up to the kinds of numbers and sequences."""
    if isinstance(value, dict):
        return (
            float(value["number"]) if set(value) == {"number"} else {k: revived(v) for k, v in value.items()}
        )
    return [revived(v) for v in value] if isinstance(value, list) else value


def _inline(data: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(data, list):
        return [_inline(v, arrays) for v in data]
    if not isinstance(data, dict):
        return data
    name = None if "type" in data else data.get("array", data.get("key"))
    if name is None:
        return {k: _inline(v, arrays) for k, v in data.items()}
    value = arrays[name]
    if value.size <= 16 and value.dtype.kind in "fiub" and np.isfinite(value).all():
        return value.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return {"shape": list(value.shape), "dtype": str(value.dtype), "sha256": digest}


def _fields(obj: Any) -> dict[str, Any] | None:
    if type(obj) in _FIELDS:
        return _FIELDS[type(obj)](obj)
    if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
        return {f.name: getattr(obj, f.name) for f in dataclasses.fields(obj)}
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return dict(zip(obj._fields, obj, strict=True))
    return None


def _builder(cls: type) -> Callable[..., Any]:
    if issubclass(cls, tuple):
        return cls

    def build(**fields: Any) -> Any:
        obj = object.__new__(cls)  # the fields were checked when the object was first made
        for name, value in fields.items():
            object.__setattr__(obj, name, value)
        return obj

    return build


def _encode_array(array: Any, arrays: dict[str, np.ndarray], path: str) -> dict[str, str]:
    while path in arrays:  # {"a.b": …} beside {"a": {"b": …}}
        path += "'"
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        arrays[path] = np.asarray(jax.random.key_data(array))
        return {"key": path, "impl": str(jax.random.key_impl(array))}
    arrays[path] = np.asarray(array)
    return {"array": path}


def _decode_array(array: np.ndarray) -> jax.Array:
    out = jnp.asarray(array)
    if out.dtype != array.dtype:
        warnings.warn(
            f"The file holds {array.dtype}, but JAX is set to round it to {out.dtype}. For all digits, "
            'call jax.config.update("jax_enable_x64", True) before anything else.',
            stacklevel=2,
        )
    return out


def _decode_function(data: dict[str, Any], functions: dict[str, Callable]) -> Callable:
    name, sha256 = data["function"], data["sha256"]
    if sha256 in functions:
        return functions[sha256]
    if name not in functions:
        return Unknown(name, sha256)
    if function_hash(functions[name]) != sha256:
        raise ValueError(
            f"The function {name!r} given to load is not the one the run used: its code or the "
            "values it closes over differ."
        )
    return functions[name]


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", type(fn).__name__)
