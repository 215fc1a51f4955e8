"""Hashes of objects and functions: the same in every process, another one when something else would be
computed. They fail closed: what cannot be read is refused by name, never taken for equal.

Numbers, arrays and containers count by their content; objects by their class, attributes and slots, and
by what their class gives to be copied (`__reduce_ex__`); the user's functions by their code and all that it
reads (see `functions`); what an installed package has under a public name by that name."""

import contextlib
import dataclasses
import functools
import hashlib
import logging
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from .._checks import is_traced
from . import origins
from .functions import MISSING, dependencies, door
from .naming import Named, Unknown

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
        "__path__",
    )
)


class UnreadableError(ValueError):
    """An object whose content cannot be read, and how to name it."""

    def __init__(self, where: str, what: str):
        super().__init__(
            f"{where or 'It'} is {what}, so that it cannot be told from another one when the run goes on. "
            "Give the function that uses it a name, and change the name whenever it computes something else: "
            'wf.named("scale-3", fn). A run without a checkpoint needs no name.'
        )


def fingerprint(*objs: object, called: str = "") -> str:
    """A hash of everything in the objects: structure, numbers, arrays, and code of functions. `called` is how
    an error names them."""
    walk = Walk(called)
    try:
        return walk.of(objs)
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


class Walk:
    """One walk over what objects are made of; shared parts are hashed once, cycles are cut."""

    def __init__(self, called: str = "") -> None:
        self.seen: dict[int, str] = {}
        self.alive: list[object] = []  # an id means something as long as its object lives
        self.trail = [called] if called else []
        self.depth = 0

    def of(self, value: object, name: str = "") -> str:
        """The hash of a value; `name` is what it is called in what holds it."""
        if value is None or type(value) in (bool, float, complex, str, bytes):
            return f"{type(value).__name__}:{value!r}"
        if type(value) is int:
            return f"int:{value:x}"  # no limit on digits
        if id(value) not in self.seen:
            self.seen[id(value)] = f"back to {self.depth}"
            self.alive.append(value)
            with self._inside(name):
                text = ";".join(self._parts(value))
            self.seen[id(value)] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return self.seen[id(value)]

    def all(self, values: Iterable[object], name: str = "") -> list[str]:
        return [self.of(value, name) for value in values]

    def named(self, pairs: Iterable[tuple[object, object]]) -> list[str]:
        return [f"{self.of(k)}={self.of(v, str(k))}" for k, v in pairs]

    def refuse(self, what: str) -> UnreadableError:
        return UnreadableError(" → ".join(self.trail), what)

    @contextlib.contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        self.depth += 1
        self.trail += [name] if name else []
        yield
        self.depth -= 1
        del self.trail[len(self.trail) - bool(name) :]

    def _parts(self, value: object) -> list[str]:
        """What the hash of a value is made of."""
        if type(value) is np.ndarray:  # a subclass may compute something else
            return ["array", *_array(self, value)]
        rule = _RULES.get(type(value))
        if rule is not None:
            return [type(value).__name__, *rule(self, value)]
        for kind, word, of_kind in _KINDS:
            if isinstance(value, kind):
                return [word, *of_kind(self, value)]
        public = origins.public_name(value) if callable(value) else None
        return ["named", *public] if public is not None else _object(self, value)


def _array(walk: Walk, value: Any) -> list[str]:
    if is_traced(value):
        raise walk.refuse("traced by JAX and has no value yet")
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return [str(jax.random.key_impl(value)), *_array(walk, jax.random.key_data(value))]
    if value.dtype.hasobject:
        return [str(value.shape), *walk.all(np.asarray(value).ravel().tolist())]
    array = np.ascontiguousarray(value)
    digest = hashlib.sha256(array.tobytes()).hexdigest()
    return [str(array.dtype), array.dtype.str, str(np.shape(value)), digest]


def _code(walk: Walk, code: types.CodeType) -> list[str]:
    signature = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    parts = [code.co_code, code.co_exceptiontable, code.co_names, code.co_freevars, signature, arguments]
    return [*walk.all(parts), *walk.all(code.co_consts)]


def _function(walk: Walk, fn: types.FunctionType) -> list[str]:
    public = origins.public_name(fn)
    if public is not None:
        return public
    walk.trail.append(fn.__qualname__.rpartition(".")[2])
    closed = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    values = [(name, _content(cell)) for name, cell in closed]
    defaults = [("defaults", fn.__defaults__), ("keywords", fn.__kwdefaults__), ("attributes", vars(fn))]
    parts = [walk.of(fn.__code__), *walk.named(values), *walk.named(defaults)]
    if not origins.of_file(fn.__code__.co_filename):
        for name, value in dependencies(fn):
            if door(value):
                raise walk.refuse(f"a function that uses {door(value)}, by which it may read anything")
            parts.append(f"{name}={walk.of(value, name)}")
    walk.trail.pop()
    return parts


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return MISSING


def _builtin(walk: Walk, fn: Any) -> list[str]:
    """A function of C: by its name in its module, or of an object, as `table.get`."""
    owner = getattr(fn, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        return [str(getattr(fn, "__module__", "")), fn.__qualname__]
    return [fn.__name__, walk.of(owner, f"the object of {fn.__name__}")]


def _ufunc(walk: Walk, fn: np.ufunc) -> list[str]:
    import scipy.special

    owner = next((m.__name__ for m in (np, scipy.special) if getattr(m, fn.__name__, None) is fn), None)
    if owner is None:  # np.frompyfunc and numba's hide what they call
        raise walk.refuse(f"the compiled ufunc {fn.__name__!r}")
    return [owner, fn.__name__]


def _jitted(walk: Walk, fn: Any) -> list[str]:
    public = origins.public_name(fn)
    if public is not None:
        return public
    info = fn._jit_info
    options = (info.static_argnums, info.static_argnames, info.compiler_options_kvs, info.backend)
    return walk.all((fn.__wrapped__, options))


def _module(walk: Walk, module: types.ModuleType) -> list[str]:
    name = module.__name__
    if origins.installed(name):
        return [name, origins.version(name) or ""]
    inside = sorted((k, v) for k, v in vars(module).items() if k not in _MADE)
    return walk.named(inside)


def _class(walk: Walk, cls: type) -> list[str]:
    public = origins.public_name(cls)
    if public is not None:
        return public
    walk.trail.append(cls.__name__)
    inside = sorted((k, v) for k, v in vars(cls).items() if k not in _MADE)
    parts = [cls.__qualname__, *walk.all(cls.__bases__), walk.of(type(cls)), *walk.named(inside)]
    walk.trail.pop()
    return parts


def _descriptor(walk: Walk, value: Any) -> list[str]:
    """A method or slot of a class of C, or a slot of the class that is being read."""
    return [value.__objclass__.__qualname__, value.__name__]


def _object(walk: Walk, value: object) -> list[str]:
    """Any other object: its class, what it gives to be copied, its attributes and its slots."""
    cls = type(value)
    try:
        reduced: Any = value.__reduce_ex__(4)
    except Exception:  # whatever a class says that does not let itself be read
        raise walk.refuse(f"a {cls.__module__}.{cls.__qualname__}, whose content cannot be read") from None
    parts = [walk.of(cls, "its class"), *walk.named(_attributes(value))]
    if isinstance(reduced, str):
        return [*parts, reduced]
    make, args, state, items, pairs = (*reduced, None, None, None)[:5]
    if not _reads_its_attributes(cls):
        parts += walk.all((make, state))
    return [*parts, *walk.all(args), *walk.all(items or ()), *walk.named(pairs or ())]


def _reads_its_attributes(cls: type) -> bool:
    """Whether the class leaves it to Python to say what its objects are made of."""
    own = ("__reduce_ex__", "__reduce__", "__getstate__")
    return all(getattr(cls, name, None) is getattr(object, name, None) for name in own)


def _attributes(value: object) -> list[tuple[str, object]]:
    """Attributes and slots by name, without what a cached_property has kept."""
    kept = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            at = f"_{cls.__name__.lstrip('_')}{name}" if name[:2] == "__" != name[-2:] else name
            if name not in ("__dict__", "__weakref__") and hasattr(value, at):
                kept[at] = getattr(value, at)
        for name, inner in vars(cls).items():
            if isinstance(inner, functools.cached_property):
                kept.pop(name, None)
    return sorted(kept.items())


def _unknown(walk: Walk, value: Unknown) -> list[str]:
    if value.sha256 is None:
        raise walk.refuse(f"the function {value.__name__!r} of a saved run, which was not given to load")
    return [value.sha256]


def _in_order(walk: Walk, value: Any) -> list[str]:
    return walk.all(value)


def _by_names(*names: str) -> Callable[[Walk, Any], list[str]]:
    """The rule for an object that is its attributes of these names."""
    return lambda walk, value: walk.named((name, getattr(value, name, None)) for name in names)


_RULES: dict[type, Callable[[Walk, Any], list[str]]] = {
    tuple: _in_order,
    list: _in_order,
    set: lambda walk, value: sorted(walk.all(value)),  # their order differs from process to process
    frozenset: lambda walk, value: sorted(walk.all(value)),
    dict: lambda walk, value: walk.named(value.items()),
    types.MappingProxyType: lambda walk, value: walk.named(value.items()),
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
    type(functools.cache(lambda: None)): _by_names("__wrapped__"),
    type(jax.jit(lambda x: x)): _jitted,
    np.ufunc: _ufunc,
    np.vectorize: _by_names("pyfunc", "otypes", "excluded", "signature"),
    dataclasses.Field: _by_names(
        "name", "default", "default_factory", "init", "compare", "kw_only", "metadata"
    ),
    logging.Logger: _by_names("name"),
    Named: _by_names("name"),
    Unknown: _unknown,
}
_KINDS: tuple[tuple[Any, str, Callable[[Walk, Any], list[str]]], ...] = (
    ((jax.Array, np.generic), "array", _array),
    (type, "class", _class),
    (types.ModuleType, "module", _module),
)
