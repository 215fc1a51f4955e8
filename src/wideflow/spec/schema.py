"""The JSON schema of a spec, by which editors complete and check a file as it is typed.

    python -m wideflow.spec.schema

writes it to `schema.json` beside this file. It holds what the typed model holds, short forms included, but
not the conditions between keys; `read` has the last word.
"""

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from .._data import Data
from .base import Listed
from .study import Spec

FILE = Path(__file__).with_name("schema.json")


class _Generator(GenerateJsonSchema):
    """Knows that one element may stand for a list with it alone."""

    def function_before_schema(self, schema: Any) -> JsonSchemaValue:
        inner = super().function_before_schema(schema)
        if schema["function"]["function"] is not Listed.func:
            return inner
        items = inner["items"]
        return {"anyOf": [*items.get("anyOf", [items]), inner]}


def schema() -> Data:
    """The schema as data."""
    generated = Spec.model_json_schema(schema_generator=_Generator)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_tidy(generated)}


def text() -> str:
    """The schema as the text of its file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def _tidy(value: object) -> Any:
    """Without null, which TOML does not have, and without titles that only repeat the key."""
    if isinstance(value, list):
        return [_tidy(entry) for entry in value if entry != {"type": "null"}]
    if not isinstance(value, dict):
        return value
    kept = {key: _tidy(entry) for key, entry in value.items() if not _redundant(key, entry)}
    options = kept.get("anyOf")
    if isinstance(options, list) and len(options) == 1 and not kept.keys() & options[0].keys():
        kept = {**{key: entry for key, entry in kept.items() if key != "anyOf"}, **options[0]}
    return kept


def _redundant(key: str, entry: object) -> bool:
    return (key == "title" and isinstance(entry, str)) or (key == "default" and entry is None)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
    print(f"{FILE} written")
