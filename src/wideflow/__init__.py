"""Gradient flow of wide neural networks: finite width, mean-field limit, lazy limit.

The public names are listed in `__init__.pyi`; each is loaded when it is first asked for."""

import lazy_loader

__version__ = "0.1.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str):
    try:
        return _load(name)
    except AttributeError:
        from difflib import get_close_matches

        close = get_close_matches(name, __all__, 1, 0.5)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"wideflow has no {name!r}.{hint}", name=name, obj=None) from None
