"""A spec written as TOML, all defaults filled in."""

from typing import Any

from .study import Spec

# the keys that say which kind a table is come first in it
_FIRST = ("law", "kind", "way", "method", "name")


def written(spec: Spec) -> str:
    """The text from which `read` makes the same spec; what is left to the library (None) is left out."""
    import tomli_w

    return tomli_w.dumps(_ordered(spec.model_dump(exclude_none=True)))


def _ordered(value: object) -> Any:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: _FIRST.index(key) if key in _FIRST else len(_FIRST))
        return {key: _ordered(value[key]) for key in keys}
    return [_ordered(element) for element in value] if isinstance(value, list) else value
