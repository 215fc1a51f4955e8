"""JSON files with a hash of their own data: however laid out, no value is changed unnoticed."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from .._data import Data
from .._shown import shown
from .bounds import TEXT, parsed
from .opening import DamagedError, content


def digest(data: Data) -> str:
    """A hash of JSON data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def sealed(data: Data) -> Data:
    """The data with their hash among their hashes."""
    hashes = data.get("hashes", {})
    return data | {"hashes": hashes | {"results": digest(data | {"hashes": hashes})}}


def read_sealed(path: Path, kind: str, version: int, fields: Mapping[str, type]) -> Data:
    """What `sealed` made, of this kind and format and with these fields, if nobody has changed it since."""
    data = parsed(content(path, TEXT), path)
    if not isinstance(data, dict) or data.get("kind") != kind:
        raise DamagedError(f"{path} is damaged: it does not hold a {kind} of wideflow.")
    if data.get("format") != version:
        raise DamagedError(
            f"{path} is damaged, or of a later or earlier version of wideflow: its format is "
            f"{str(data.get('format'))[:40]}, and this version reads {version}."
        )
    wrong = [name for name, wanted in fields.items() if not isinstance(data.get(name), wanted)]
    if wrong or data["hashes"].get("results") != digest(_unsealed(data)):
        where = f" (see {shown(wrong[0])})" if wrong else ""
        raise DamagedError(f"{path} is damaged: its content does not have the hash it carries{where}.")
    return data


def _unsealed(data: Data) -> Data:
    return data | {"hashes": {name: value for name, value in data["hashes"].items() if name != "results"}}
