"""Distances between measures: `w2` chooses among the ways to compute W2, one per file; `mmd` beside it.

The public names are listed in `__init__.pyi`; each is loaded when it is first asked for."""

from .. import _names

__getattr__, __dir__, __all__ = _names.attach(__name__, __file__)
