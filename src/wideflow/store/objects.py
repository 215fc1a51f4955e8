"""Objects of classes that have no rule of their own: by class, attributes, slots, what they give to be
copied, and what they hold as a number, text or container."""

import copyreg
import dataclasses
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import origins
from .walking import Part, Walk

# What a subclass of Python's own types holds, whatever it says about itself.
_HOLDS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (complex, complex.__complex__),
    (str, str.__str__),
    (bytes, bytes.__bytes__),
    (bytearray, lambda value: bytes(memoryview(value))),
    (tuple, lambda value: list(tuple.__iter__(value))),
    (list, lambda value: list(list.__iter__(value))),
    (dict, lambda value: list(dict.items(value))),
    (set, lambda value: frozenset(set.__iter__(value))),
    (frozenset, lambda value: set(frozenset.__iter__(value))),
)


def content(walk: Walk, value: Any) -> list[Part]:
    """The parts of any object."""
    cls = type(value)
    if hasattr(cls, "__next__"):
        raise walk.refuse(f"a {cls.__module__}.{cls.__qualname__}, which is another one after each reading")
    parts = [walk.of(cls, "its class"), *walk.named(_attributes(walk, value))]
    parts += [walk.of(read(value)) for base, read in _HOLDS if isinstance(value, base)]
    try:
        reduce = copyreg.dispatch_table.get(cls)
        reduced: Any = reduce(value) if reduce else value.__reduce_ex__(4)
    except Exception:  # whatever a class says that does not let itself be read
        raise walk.refuse(f"a {cls.__module__}.{cls.__qualname__}, whose content cannot be read") from None
    if isinstance(reduced, str):
        return [*parts, reduced]
    make, args, state, items, pairs = (*reduced, None, None, None)[:5]
    if not _leaves_it_to_python(cls):
        parts += walk.all((make, state))
    return [*parts, *walk.all(args), *walk.all(items or ()), *walk.named(pairs or ())]


def is_hash_of_fields(cls: object, method: object) -> bool:
    """Whether this is the `__hash__` that `dataclasses` writes for a frozen class: a function of the fields,
    which count by themselves. It calls `hash`, for which a user's own one is refused."""
    if not (dataclasses.is_dataclass(cls) and isinstance(method, types.FunctionType)):
        return False
    if method.__name__ != "__hash__":
        return False
    hashed = [f.name for f in dataclasses.fields(cls) if (f.compare if f.hash is None else f.hash)]
    made = dataclasses.make_dataclass("Made", hashed, frozen=True).__hash__.__code__
    code = method.__code__
    return (code.co_code, code.co_names, code.co_consts) == (made.co_code, made.co_names, made.co_consts)


def _leaves_it_to_python(cls: type) -> bool:
    """Whether the class lets Python say what its objects are made of."""
    own = ("__reduce_ex__", "__reduce__", "__getstate__")
    return all(getattr(cls, name, None) is getattr(object, name, None) for name in own)


def _attributes(walk: Walk, value: object) -> list[tuple[str, object]]:
    """Attributes and slots by name, read past whatever the class says about them."""
    attributes: dict[str, object] = {}
    for cls in reversed(type(value).__mro__):
        for name, descriptor in _stores(cls):
            try:
                inner = descriptor.__get__(value)
            except (AttributeError, TypeError):  # a slot that is not filled
                continue
            attributes |= dict(inner) if name == "__dict__" else {f"{cls.__qualname__}.{name}": inner}
    for cls in type(value).__mro__:
        for name, inner in vars(cls).items():
            if isinstance(inner, functools.cached_property) and _is_renewable(walk, value, cls, name, inner):
                attributes.pop(name, None)
    return sorted(attributes.items())


def _stores(cls: type) -> Iterator[tuple[str, Any]]:
    """The places where objects of a class keep attributes: a dictionary and slots."""
    for name, inner in vars(cls).items():
        is_dict = name == "__dict__" and isinstance(inner, types.GetSetDescriptorType)
        is_slot = isinstance(inner, types.MemberDescriptorType) and not _is_address(cls, name)
        if is_dict or is_slot:
            yield name, inner


def _is_address(cls: type, name: str) -> bool:
    """Whether this is a slot that Python made for itself, as `__vectorcalloffset__`."""
    return name.startswith("__") and name.endswith("__") and name not in vars(cls).get("__slots__", ())


def _is_renewable(walk: Walk, value: object, cls: type, name: str, prop: functools.cached_property) -> bool:
    """Whether a cached property keeps what it would compute: then it does not matter whether it was asked."""
    kept = getattr(value, "__dict__", {})
    if name not in kept or origins.installed(cls.__module__):
        return True
    try:
        fresh = prop.func(value)
    except Exception:  # the user's own code: whatever it raises, the kept value is another one
        return False
    return type(walk)(walk.parts).hash(fresh) == type(walk)(walk.parts).hash(kept[name])
