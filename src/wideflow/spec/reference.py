"""Every field of a spec in one page of Markdown, from the typed model itself.

python -m wideflow.spec.reference > docs/spec.md
"""

from pydantic_core import PydanticUndefined

from . import forms
from .base import Part
from .places import Place, places
from .words import allowed, shown

_HEAD = """# Every field of a spec

A spec is one TOML file. `wideflow show SPEC` prints it with all defaults filled in; `--set table.key=value`
reaches every field below (`dynamics.NAME.key` for one of the dynamics, `dynamics.*.key` for all). An editor
that reads JSON schemas completes it: `wideflow show --schema` prints the schema, and the first line of a file
may tell where it lies: `#:schema schema.json`.

Time is t = kη after k steps of size η. Start and noise of seed i are those of `jax.random.key(seed + i)`.
"""


def text() -> str:
    """The page."""
    seen: dict[type[Part], str] = {}
    parts = [_HEAD]
    for place in places():
        if place.table not in seen:
            seen[place.table] = place.name
            parts.append(_section(place))
    return "\n".join(parts)


def _section(place: Place) -> str:
    doc = " ".join((place.table.__doc__ or "").split())
    lines = [
        f"## {_title(place)}",
        "",
        doc,
        "",
        "| key | what it may be | default | meaning |",
        "|---|---|---|---|",
    ]
    for key, field in place.table.model_fields.items():
        cells = [f"`{key}`", allowed(forms.of(place.table, key)), _default(field), field.description or ""]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*lines, ""])


def _title(place: Place) -> str:
    name = f"`[{place.name}]`" if place.name else "The file"
    if place.name.endswith(".*"):
        name = f"`[[{place.name.removesuffix('.*')}]]`"
    tag = place.form.tag
    return f"{name}, {tag} = `{forms.tag_value(place.table, tag)}`" if tag else name


def _default(field: object) -> str:
    made = field.get_default(call_default_factory=True)  # type: ignore[attr-defined]
    if field.is_required() or made is PydanticUndefined:  # type: ignore[attr-defined]
        return "**must be given**"
    if made is None:
        return "–"
    if isinstance(made, Part):
        short = getattr(type(made), "short", None)
        return f"`{shown(getattr(made, short))}`" if short else "its own defaults"
    return f"`{shown(made)}`"


if __name__ == "__main__":
    print(text(), end="")
