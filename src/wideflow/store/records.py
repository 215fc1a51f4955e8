"""Objects as data: JSON for the structure, named arrays for the numbers. No code, no pickle."""

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._data import Data
from .._shown import shown
from .fingerprints import class_hash, fingerprint, function_hash
from .folder import DamagedError
from .naming import Named, Unknown
from .registry import Recipe, name_of, recipe_for, recipe_named, registered

__all__ = ["decode", "describe", "encode", "fingerprint", "function_hash", "functions_in", "plain", "revived"]

Functions = dict[str, Callable]


class UnknownNameError(DamagedError):
    """A record names a class that is not known here: a newer version's, a user's own, or none."""


def encode(obj: object, arrays: dict[str, np.ndarray], path: str = "") -> Any:
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
    recipe = None if _is_function(obj) else recipe_for(obj)
    if recipe is not None:
        head = {"type": recipe.name} | ({"code": class_hash(recipe.cls)} if recipe.own else {})
        return head | {"fields": {k: inside(v, k) for k, v in recipe.fields(obj).items()}}
    if isinstance(obj, tuple | list):
        return {"list": [inside(v, i) for i, v in enumerate(obj)]}
    if callable(obj):
        return {"function": name_of(obj), "sha256": function_hash(obj)}
    raise TypeError(f"{path or 'object'}: {type(obj).__name__} cannot be recorded as data.")


def decode(data: Any, arrays: dict[str, np.ndarray], functions: Functions | None = None, at: str = "") -> Any:
    """The object that `encode` described; user functions come from `functions`, by name or hash, or from
    those registered. What does not fit is a DamagedError that names the field, `at`."""
    if data is None or isinstance(data, bool | int | float | str):
        return data
    kind = next(iter(data), None) if isinstance(data, dict) else None
    reader = _READERS.get(str(kind))
    if reader is None or not set(data) <= reader[1]:
        raise DamagedError(f"{at or 'the record'} is no description of an object: {str(data)[:80]}.")
    try:
        return reader[0](data, arrays, functions or {}, at)
    except (DamagedError, _RefusedError):
        raise
    except Exception as error:  # whatever a class says to fields that do not belong together
        raise DamagedError(f"{at or 'the record'}: {str(error)[:300] or type(error).__name__}") from error


class _RefusedError(ValueError):
    """A function that is not the one a run used."""


def array_names(data: object) -> Iterator[str]:
    """The names of the arrays that encoded data refer to."""
    if isinstance(data, list):
        for value in data:
            yield from array_names(value)
    elif isinstance(data, dict):
        name = data.get("array", data.get("key")) if next(iter(data), "") in ("array", "key") else None
        if isinstance(name, str):
            yield name
        for value in data.values():
            yield from array_names(value)


def functions_in(obj: object) -> Functions:
    """The functions inside an object by their hash: with them, `decode` builds it whole again."""
    recipe = None if _is_function(obj) else recipe_for(obj)
    if recipe is None and callable(obj):
        sha256 = function_hash(obj)
        return {} if sha256 is None else {sha256: obj}
    parts = recipe.fields(obj) if recipe is not None else obj
    parts = parts.values() if isinstance(parts, dict) else parts if isinstance(parts, tuple | list) else ()
    return {k: fn for part in parts for k, fn in functions_in(part).items()}


def describe(obj: object) -> Any:
    """`encode` for reading: large arrays are replaced by shape, dtype and hash."""
    arrays: dict[str, np.ndarray] = {}
    return _inline(encode(obj, arrays), arrays)


def plain(value: object) -> Any:
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


def revived(value: object) -> Any:
    """What `plain` was given, up to the kinds of numbers and sequences."""
    if isinstance(value, dict):
        return _number(value, "") if set(value) == {"number"} else {k: revived(v) for k, v in value.items()}
    return [revived(v) for v in value] if isinstance(value, list) else value


def _inline(data: object, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(data, list):
        return [_inline(v, arrays) for v in data]
    if not isinstance(data, dict):
        return data
    if "type" in data:
        return {"type": data["type"]} | _inline(data["fields"], arrays)
    name = next((data[k] for k in ("array", "key") if isinstance(data.get(k), str)), None)
    if name is None or name not in arrays:
        return {k: _inline(v, arrays) for k, v in data.items()}
    value = arrays[name]
    if value.size <= 16 and value.dtype.kind in "fiub" and np.isfinite(value).all():
        return value.tolist()
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return {"shape": list(value.shape), "dtype": str(value.dtype), "sha256": digest}


def _is_function(obj: object) -> bool:
    return isinstance(obj, Named | Unknown | type)


def _encode_array(array: Any, arrays: dict[str, np.ndarray], path: str) -> dict[str, str]:
    while path in arrays:  # {"a.b": …} beside {"a": {"b": …}}
        path += "'"
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        arrays[path] = np.asarray(jax.random.key_data(array))
        return {"key": path, "impl": str(jax.random.key_impl(array))}
    arrays[path] = np.asarray(array)
    return {"array": path}


def _object(data: Data, arrays: dict[str, np.ndarray], functions: Functions, at: str) -> Any:
    name, fields = data["type"], data["fields"]
    recipe: Recipe | None = recipe_named(name)
    if recipe is None or recipe.own != ("code" in data):
        raise UnknownNameError(
            f"{at or 'The record'} names a type {shown(name)} that this version does not know. If it is a "
            f"class of yours, make it known first: wf.register({shown(name)}, {name})."
        )
    if recipe.own and data["code"] != class_hash(recipe.cls):
        warnings.warn(
            f"The class {shown(name)} has changed since the run was saved; its objects are loaded with the "
            "class as it is now.",
            stacklevel=2,
        )
    return recipe.build(**{k: decode(v, arrays, functions, f"{at}.{k}") for k, v in fields.items()})


def _number(data: Data, at: str) -> float:
    if data["number"] not in ("inf", "-inf", "nan"):
        raise DamagedError(f"{at or 'a number'} must be inf, -inf or nan, got {shown(data['number'])}.")
    return float(data["number"])


def _stored(name: object, arrays: dict[str, np.ndarray], at: str) -> np.ndarray:
    if name not in arrays:
        raise DamagedError(f"{at} refers to the array {shown(name)}, which the file does not hold.")
    return arrays[name]


def _array(data: Data, arrays: dict[str, np.ndarray], functions: Functions, at: str) -> jax.Array:
    array = _stored(data["array"], arrays, at)
    out = jnp.asarray(array)
    if out.dtype != array.dtype:
        warnings.warn(
            f"The file holds {array.dtype}, but JAX is set to round it to {out.dtype}. For all digits, "
            'call jax.config.update("jax_enable_x64", True) before anything else.',
            stacklevel=2,
        )
    return out


def _key(data: Data, arrays: dict[str, np.ndarray], functions: Functions, at: str) -> jax.Array:
    return jax.random.wrap_key_data(jnp.asarray(_stored(data["key"], arrays, at)), impl=data["impl"])


def _function(data: Data, arrays: dict[str, np.ndarray], functions: Functions, at: str) -> Callable:
    name, sha256 = data["function"], data["sha256"]
    if not isinstance(name, str) or not isinstance(sha256, str | None):
        raise DamagedError(f"{at} must name a function and its hash, got {str(data)[:80]}.")
    if sha256 in functions:
        return functions[sha256]
    fn = functions.get(name, registered(name))
    if fn is None:
        return Unknown(name, sha256)
    for one in (fn, Named(name, fn)):
        if sha256 is None or function_hash(one) == sha256:
            return one
    where = "given to load" if name in functions else "that is registered"
    raise _RefusedError(
        f"The function {shown(name)} {where} is not the one the run used: its code or the values it closes "
        "over differ."
    )


_READERS: dict[str, tuple[Callable, set[str]]] = {
    "type": (_object, {"type", "code", "fields"}),
    "number": (lambda data, arrays, functions, at: _number(data, at), {"number"}),
    "array": (_array, {"array"}),
    "key": (_key, {"key", "impl"}),
    "map": (
        lambda data, arrays, functions, at: {
            k: decode(v, arrays, functions, f"{at}.{k}") for k, v in data["map"]
        },
        {"map"},
    ),
    "list": (
        lambda data, arrays, functions, at: tuple(
            decode(v, arrays, functions, f"{at}[{i}]") for i, v in enumerate(_list(data["list"]))
        ),
        {"list"},
    ),
    "function": (_function, {"function", "sha256"}),
}


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise DamagedError(f"a list was expected, got {str(value)[:80]}.")
    return value
