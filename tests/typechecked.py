"""The types and shapes in the library's signatures, checked while the tests run.

`jaxtyping` decorates every function of the rooms below as it is imported, and beartype checks what goes in
and out; shapes that share a name must agree within a call. Inside `pytest.raises` nothing is checked: there a
wrong argument is given on purpose, and the library's own message is what is tested."""

from contextlib import contextmanager
from pathlib import Path
from types import UnionType
from typing import Any, Self, Union, get_args, get_origin

import numpy as np
import pytest
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, Array, config, install_import_hook

ROOMS = ("problems", "states", "functionals", "kernels", "distances")
# Functions made in these are data: they are compared, hashed and found again by their code.
DATA = ("wideflow.problems.named_activations",)

# An int is a float, as for a static checker.
_checker = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(fn):
    """beartype, with hints as `_readable` makes them."""
    hints = getattr(fn, "__annotations__", {})
    hints.update({name: _readable(hint) for name, hint in hints.items()})
    return _checker(fn)


def _readable(hint):
    """A hint that beartype can check. `Self` it knows only in classes that it decorates as a whole, and
    jaxtyping decorates the methods; NumPy's `ArrayLike` is made of protocols that even a tuple of numbers
    does not meet at run time. Arrays may be NumPy's wherever they may be JAX's, which takes both."""
    if hint is Self or any(
        getattr(part, "__module__", "").startswith("numpy._typing") for part in get_args(hint)
    ):
        return Any
    if hint is Array:
        return Array | np.ndarray
    if isinstance(hint, type) and issubclass(hint, AbstractArray) and hint.array_type is Array:
        return hint.dtype[Array | np.ndarray, hint.dim_str]
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(map(_readable, get_args(hint)))]  # noqa: UP007 (made of a tuple)
    return hint


def install():
    """Before anything imports the library."""
    install_import_hook([*_modules()], "typechecked.checked")
    pytest.raises = _raises(pytest.raises)


def _modules():
    """The modules of the rooms. The hook takes a package with all that is in it, so that a room is listed
    module by module."""
    source = Path(__file__).parents[1] / "src"
    for room in ROOMS:
        for path in sorted((source / "wideflow" / room).rglob("*.py")):
            name = ".".join(path.relative_to(source).with_suffix("").parts)
            if path.name != "__init__.py" and name not in DATA:
                yield name


def _raises(original):
    @contextmanager
    def raises(*args, **kwargs):
        before = config.jaxtyping_disable
        config.update("jaxtyping_disable", True)
        try:
            with original(*args, **kwargs) as info:
                yield info
        finally:
            config.update("jaxtyping_disable", before)

    return raises
