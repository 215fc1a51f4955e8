"""Names of fields: `dynamics.sgd.step`, the form that errors print and `--set` accepts.

A place in the data is a tuple of keys and indices, ("dynamics", 0, "step"). In its name an element of a list
of tables goes by its name (by its method, if it has none), or by its index where that is not unique; a key
that is not of letters, digits, _ and - is quoted.
"""

import json
import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

_BARE = re.compile(r"[^\W]+(-\w+)*")
_PART = re.compile(r"""\s*(?:("(?:[^"\\]|\\.)*")|'([^']*)'|([^."'\[\]]+))((?:\[\d+\])*)\s*(\.|$)""")


def called(element: object) -> str | None:
    """What an element of a list of tables is called: its name, else its method."""
    if not isinstance(element, dict):
        return None
    return next(
        (element[k] for k in ("name", "method") if element.get(k) and isinstance(element[k], str)), None
    )


def dotted(path: Path, data: object = None) -> str:
    """The name of the place `path` of `data`."""
    return ".".join(_parts(path, data))


def _parts(path: Path, data: object) -> Iterator[str]:
    for key in path:
        inside = data if isinstance(data, dict | list) else {}
        if isinstance(key, int):
            names = [called(element) for element in inside]
            name = names[key] if key < len(names) else None
            alone = name is not None and names.count(name) == 1 and not name.isdigit() and name != "*"
            yield _quoted(name) if name is not None and alone else str(key)
            data = inside[key] if isinstance(inside, list) and key < len(inside) else None
        else:
            yield _quoted(key)
            data = inside.get(key) if isinstance(inside, dict) else None


def _quoted(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def parsed(text: str) -> list[str] | None:
    """The parts of a name, or None if it is not one: `a."b c".0` and `a.'b c'[0]` alike."""
    parts, position = [], 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None or (match[5] == "." and match.end() == len(text)):
            return None
        double, single, bare = match[1], match[2], match[3]
        try:
            parts.append(
                json.loads(double, strict=False) if double else single if bare is None else bare.strip()
            )
        except ValueError:
            return None
        parts += re.findall(r"\d+", match[4])
        position = match.end()
    return parts if parts and all(parts) else None
