"""Hashes of objects and functions: the same in every process, another one when something else would be
computed. They fail closed: what cannot be read is refused by name, never taken for equal.

Numbers, arrays and containers count by their content; objects by their class and all that they hold (see
`objects`); the user's functions by what their code does (`bytecode`) and all that it reads (`functions`);
what an installed package has under a public name by that name (`origins`), unless it is a door to what lies
outside (`doors`)."""

import dataclasses
import functools
import hashlib
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from .._checks import is_traced
from . import doors, origins
from .bytecode import flow, signature
from .functions import MISSING, Outside, cached, dependencies, dispatched, unchecked, words
from .graphs import Node
from .naming import Named, Unknown
from .objects import content, is_hash_of_fields
from .walking import Part, UnreadableError, Walk

__all__ = ["UnreadableError", "class_hash", "fingerprint", "function_hash"]

# What Python and its class makers put into a class or a module, and what does not change what it computes.
_MADE = frozenset(
    (
        *(
            "__module__",
            "__dict__",
            "__weakref__",
            "__doc__",
            "__qualname__",
            "__abstractmethods__",
            "_abc_impl",
        ),
        *("__annotations__", "__annotate__", "__annotations_cache__", "__parameters__", "__orig_bases__"),
        *("__firstlineno__", "__static_attributes__", "__match_args__", "__signature__"),
        *("__builtins__", "__spec__", "__loader__", "__cached__", "__file__", "__name__", "__package__"),
        *("__path__", "__warningregistry__", "__slotnames__"),
    )
)


def fingerprint(*objs: object, called: str = "") -> str:
    """A hash of everything in the objects: structure, numbers, arrays, and code of functions. `called` is how
    an error names them."""
    walk = Walk(_parts, called)
    try:
        return walk.hash(objs)
    except RecursionError:
        raise walk.refuse("nested too deeply to be read") from None


def function_hash(fn: object) -> str | None:
    """The fingerprint of one function; None if it cannot be read."""
    try:
        return fn.sha256 if type(fn) is Unknown else fingerprint(fn)
    except UnreadableError:
        return None


def class_hash(cls: type) -> str | None:
    """The same for a user's class; None also for a class of an installed package."""
    return None if origins.installed(cls.__module__) else function_hash(cls)


def _parts(walk: Walk, value: object) -> Node:
    """What the hash of a value is made of."""
    if type(value) is np.ndarray:  # a subclass may compute something else
        return Node(["array", *_array(walk, value)])
    rule = _RULES.get(type(value))
    if rule is not None:
        return Node([type(value).__name__, *rule(walk, value)], ordered=type(value) not in (set, frozenset))
    if "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
        return Node(["tensor", walk.of(type(value)), *_array(walk, value.detach().cpu().numpy())])
    for kind, word, of_kind in _KINDS:
        if isinstance(value, kind):
            return Node([word, *of_kind(walk, value)])
    public = _public(walk, value) if callable(value) else None
    return Node(["named", *public] if public is not None else content(walk, value))


def _public(walk: Walk, value: object) -> list[str] | None:
    """The name by which an installed package has this object, unless it is a door."""
    public = origins.public_name(value)
    if public is not None and doors.leads_outside(public[0], public[1]):
        raise walk.outside(f"{public[0]}.{public[1]}")
    return public


def _array(walk: Walk, value: Any) -> list[Part]:
    if is_traced(value):
        raise walk.refuse("traced by JAX and has no value yet")
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return [str(jax.random.key_impl(value)), *_array(walk, jax.random.key_data(value))]
    if value.dtype.hasobject:
        return [str(value.dtype), str(value.shape), *walk.all(np.asarray(value).ravel().tolist())]
    array = np.ascontiguousarray(value)
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    weak = "weak" if getattr(value, "weak_type", False) else ""
    return [str(array.dtype), array.dtype.str, weak, str(np.shape(value)), digest]


def _code(walk: Walk, code: types.CodeType) -> list[Part]:
    return [signature(code), flow(code, walk.of)]


def _function(walk: Walk, fn: types.FunctionType) -> list[Part]:
    inner = unchecked(fn)
    if inner is not fn:
        return _function(walk, inner) if isinstance(inner, types.FunctionType) else [walk.of(inner)]
    public = _public(walk, fn)
    if public is not None:
        return [*public]
    if dispatched(fn) is not None:
        return walk.named(dispatched(fn).items())
    with walk.inside(fn.__qualname__.rpartition(".")[2]):
        closed = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
        values = [(name, _held(cell)) for name, cell in closed]
        notes = {k: v for k, v in vars(fn).items() if not k.startswith("__beartype")}
        defaults = [("defaults", fn.__defaults__), ("keywords", fn.__kwdefaults__), ("attributes", notes)]
        parts = [walk.of(fn.__code__), *walk.named(values), *walk.named(defaults)]
        if origins.is_own(fn):
            walk.words |= words(fn)
            for name, value in dependencies(fn):
                if isinstance(value, Outside):
                    raise walk.outside(value.name)
                parts += [name, walk.of(value, name)]
    return parts


def _held(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return MISSING


def _builtin(walk: Walk, fn: Any) -> list[Part]:
    """A function of C: by its name in its module, or of an object, as `table.get`."""
    owner, module = getattr(fn, "__self__", None), getattr(fn, "__module__", None)
    if isinstance(owner, types.ModuleType):
        module = owner.__name__
    elif owner is not None:
        if isinstance(owner, type) and doors.leads_outside(owner.__module__, fn.__qualname__):
            raise walk.outside(f"{owner.__module__}.{owner.__qualname__}.{fn.__name__}")
        return [fn.__name__, walk.of(owner, f"the object of {fn.__name__}")]
    if module is None:
        raise walk.refuse(f"the compiled function {fn.__name__!r}, which is in no module")
    if origins.installed(module) and doors.leads_outside(module, fn.__name__):
        raise walk.outside(f"{module}.{fn.__name__}")
    return [module, fn.__qualname__, *_compiled(walk, module)]


def _compiled(walk: Walk, module: str) -> list[str]:
    """What a compiled module counts by: its version, or the content of its file."""
    if origins.installed(module):
        return [origins.version(module) or ""]
    digest = origins.extension(module)
    if digest is None:
        raise walk.refuse(f"a compiled function of {module}, a module without a version and without a file")
    return [digest]


def _ufunc(walk: Walk, fn: np.ufunc) -> list[Part]:
    import scipy.special

    owner = next((m.__name__ for m in (np, scipy.special) if getattr(m, fn.__name__, None) is fn), None)
    if owner is None:  # np.frompyfunc and numba's hide what they call
        raise walk.refuse(f"the compiled ufunc {fn.__name__!r}")
    return [owner, fn.__name__]


def _jitted(walk: Walk, fn: Any) -> list[Part]:
    public = _public(walk, fn)
    if public is not None:
        return [*public]
    info = fn._jit_info
    options = (info.static_argnums, info.static_argnames, info.compiler_options_kvs, info.backend)
    return walk.all((fn.__wrapped__, options))


def _module(walk: Walk, module: types.ModuleType) -> list[Part]:
    name = module.__name__
    if not origins.installed(name):
        return [origins.extension(name) or "", *walk.named(_inside(module))]
    if doors.is_closed(name):
        raise walk.outside(name)
    walk.hands_on(module)
    return [name, origins.version(name) or ""]


def _class(walk: Walk, cls: type) -> list[Part]:
    public = _public(walk, cls)
    if public is not None:
        walk.hands_on(cls)
        return [*public]
    compiled = origins.extension(cls.__module__) or ""
    with walk.inside(cls.__name__):
        parts = [cls.__qualname__, compiled, *walk.all(cls.__bases__), walk.of(type(cls))]
        return [*parts, *walk.named(_inside(cls))]


def _inside(value: types.ModuleType | type) -> list[tuple[str, object]]:
    """What a user's class or module has, by name."""
    inside = sorted((k, v) for k, v in vars(value).items() if k not in _MADE)
    return [(k, v) for k, v in inside if not is_hash_of_fields(value, v)]


def _descriptor(walk: Walk, value: Any) -> list[Part]:
    """A method or slot of a class of C, or a slot of the class that is being read."""
    return [
        value.__objclass__.__qualname__,
        value.__name__,
        origins.extension(value.__objclass__.__module__) or "",
    ]


def _cache(walk: Walk, fn: Any) -> list[Part]:
    return walk.all(cached(fn))


def _logger(walk: Walk, value: logging.Logger) -> list[Part]:
    """Its name, and what a user has put on it: where it writes to changes no number."""
    usual = {"manager", *vars(logging.Logger(""))}
    return walk.named([("name", value.name), *((k, v) for k, v in vars(value).items() if k not in usual)])


def _unknown(walk: Walk, value: Unknown) -> list[Part]:
    if value.sha256 is None:
        raise walk.refuse(f"the function {value.__name__!r} of a saved run, which was not given to load")
    return [value.sha256]


def _in_order(walk: Walk, value: Any) -> list[Part]:
    return walk.all(value)


def _pairs(walk: Walk, value: Any) -> list[Part]:
    return walk.named(value.items())


def _by_names(*names: str) -> Callable[[Walk, Any], list[Part]]:
    """The rule for an object that is its attributes of these names."""
    return lambda walk, value: walk.named((name, getattr(value, name, None)) for name in names)


_RULES: dict[type, Callable[[Walk, Any], list[Part]]] = {
    tuple: _in_order,
    list: _in_order,
    set: _in_order,
    frozenset: _in_order,
    dict: _pairs,
    types.MappingProxyType: _pairs,
    types.CodeType: _code,
    types.FunctionType: _function,
    types.BuiltinFunctionType: _builtin,
    types.MethodWrapperType: _builtin,
    types.MethodType: _by_names("__func__", "__self__"),
    types.WrapperDescriptorType: _descriptor,
    types.MethodDescriptorType: _descriptor,
    types.ClassMethodDescriptorType: _descriptor,
    types.GetSetDescriptorType: _descriptor,
    types.MemberDescriptorType: _descriptor,
    property: _by_names("fget", "fset", "fdel"),
    staticmethod: _by_names("__func__"),
    classmethod: _by_names("__func__"),
    functools.cached_property: _by_names("func"),
    type(functools.cache(lambda: None)): _cache,
    type(jax.jit(lambda x: x)): _jitted,
    type(jax.config): lambda walk, value: [],  # its settings are compared by themselves
    np.ufunc: _ufunc,
    np.vectorize: _by_names("pyfunc", "otypes", "excluded", "signature"),
    dataclasses.Field: _by_names(
        "name", "default", "default_factory", "init", "compare", "kw_only", "metadata"
    ),
    logging.Logger: _logger,
    Named: _by_names("name"),
    Unknown: _unknown,
}
_KINDS: tuple[tuple[Any, str, Callable[[Walk, Any], list[Part]]], ...] = (
    ((jax.Array, np.generic), "array", _array),
    (type, "class", _class),
    (types.ModuleType, "module", _module),
)
