"""What a record may name. A class is declared beside its definition, by `recorded`; a user's own class or
function by `wf.register`. The name in a record is enough to find it again."""

import dataclasses
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from .._data import Data
from .._shown import shown

Fields = Callable[[Any], Data]
Build = Callable
Thing = TypeVar("Thing", bound=Callable)

# The modules that declare the library's classes: each is imported when a record first names one of them.
_HOMES = {
    "problems.activations": ("Activation",),
    "problems.neurons": ("Neuron", "CustomNeuron", "Ridge"),
    "problems.radial": ("RadialNeuron",),
    "parametrisations.parametrisation": ("Parametrisation",),
    "states.layers.average_pool": ("AveragePool",),
    "states.layers.conv": ("Conv",),
    "states.layers.dense": ("Dense",),
    "states.layers.elementwise": ("Elementwise",),
    "states.layers.flatten": ("Flatten",),
    "states.layers.forward": ("Weights",),
    "states.layers.global_average": ("GlobalAverage",),
    "states.layers.residual": ("Residual",),
    "states.family": ("Family",),
    "states.network": ("Network",),
    "states.particles": ("Particles",),
    "states.grid": ("GridDensity",),
    "states.linearisation": ("Linearisation",),
    "states.kernel_function": ("KernelFunction",),
    "kernels.infinite.kernels": ("InfiniteKernel",),
}
HOMES = {name: module for module, listed in _HOMES.items() for name in listed}


@dataclass(frozen=True)
class Recipe:
    """How an object of a class is stored under `name`: `fields(obj)`, and `build(**fields)` to undo it."""

    name: str
    cls: type
    fields: Fields
    build: Build
    own: bool = False  # not of the library: its code is kept too


_BY_NAME: dict[str, Recipe] = {}
_BY_CLASS: dict[type, Recipe] = {}
_FUNCTIONS: dict[str, Callable] = {}


def recorded(cls: Any = None, *, fields: Fields | None = None, build: Callable | None = None) -> Any:
    """Declare a class of the library, as a decorator or by a call. A dataclass or named tuple is stored by
    its fields and made again by its constructor, checks and all; else `fields` and `build` say how."""
    if cls is None:
        return lambda cls: recorded(cls, fields=fields, build=build)
    _add(Recipe(cls.__name__, cls, fields or fields_of, build or cls))
    return cls


def register(name: str, thing: Thing) -> Thing:
    """Make a function or class of your own known to `wf.load`: `wf.register("softsign", softsign)`.

    A file holds names and numbers, and no code. Runs of your own activation, target, kernel or neuron
    function, or of a neuron class of your own (an `eqx.Module` or dataclass), are whole again when they are
    loaded, if what they name has been registered, in the module that defines it, say. A function that has
    changed since the run was saved is refused.

    >>> def softsign(h):
    ...     return h / (1 + jnp.abs(h))
    >>> neuron = wf.Neuron(wf.register("softsign", softsign))"""
    if not isinstance(name, str) or not name:
        raise ValueError(f'register(name) must be a text such as "softsign", got {shown(name)}.')
    if name in HOMES:
        raise ValueError(f"register(name): {shown(name)} is a class of wideflow; take another name.")
    if not callable(thing):
        raise ValueError(f"register needs a function or a class, got {shown(thing)}.")
    if not isinstance(thing, type):
        _FUNCTIONS[name] = thing
    elif dataclasses.is_dataclass(thing) or hasattr(thing, "_fields"):
        _add(Recipe(name, thing, fields_of, assembled(thing), own=True))
    else:
        raise ValueError(
            f"register needs a dataclass or an eqx.Module, so that its fields are known; {thing.__name__} is "
            "neither."
        )
    return thing


def _add(recipe: Recipe) -> None:
    _BY_NAME[recipe.name] = recipe
    _BY_CLASS[recipe.cls] = recipe


def recipe_named(name: str) -> Recipe | None:
    """The recipe of this name; the module that declares it is imported, if it is one of the library."""
    if name not in _BY_NAME and name in HOMES:
        importlib.import_module(f"{__package__.rpartition('.')[0]}.{HOMES[name]}")
    return _BY_NAME.get(name)


def recipe_for(obj: object) -> Recipe | None:
    """The recipe for an object; one made up for a dataclass or named tuple that nobody has declared."""
    cls = type(obj)
    if cls in _BY_CLASS:
        return _BY_CLASS[cls]
    plain = dataclasses.is_dataclass(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    return Recipe(cls.__name__, cls, fields_of, assembled(cls), own=True) if plain else None


def registered(name: str) -> Callable | None:
    """The function that a user registered under this name."""
    return _FUNCTIONS.get(name)


def name_of(fn: object) -> str:
    """The name under which a record keeps a function."""
    known = next((name for name, one in _FUNCTIONS.items() if one is fn), None)
    return str(known or getattr(fn, "__name__", type(fn).__name__))


def fields_of(obj: Any) -> Data:
    """The fields of a dataclass or a named tuple."""
    names = getattr(obj, "_fields", None) or [f.name for f in dataclasses.fields(obj)]
    return {name: getattr(obj, name) for name in names}


def assembled(cls: type) -> Callable:
    """Makes objects of `cls` from all its fields, past its constructor: for a class whose constructor takes
    something else. What the constructor checks is the caller's to check."""
    names = set(getattr(cls, "_fields", None) or (f.name for f in dataclasses.fields(cls)))

    def build(**fields: object) -> Any:
        if set(fields) != names:
            raise ValueError(f"{cls.__name__} has the fields {sorted(names)}, got {sorted(fields)}.")
        if issubclass(cls, tuple):
            return cls(**fields)
        made: Any = object.__new__(cls)
        for name, value in fields.items():
            object.__setattr__(made, name, value)
        return made

    return build


def must_be(name: str, value: object, kind: type) -> Any:
    """`value`, if it is of this kind."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be a {kind.__name__}, got a {type(value).__name__}.")
    return value
