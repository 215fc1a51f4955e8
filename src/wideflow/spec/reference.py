"""Every field and word of a spec in one page of Markdown, from the typed model and the vocabulary.

python -m wideflow.spec.reference > docs/spec.md
"""

from pydantic_core import PydanticUndefined

from ..references import REFERENCES
from ..vocabulary.activations import ACTIVATIONS
from ..vocabulary.laws import LAWS
from ..vocabulary.losses import LOSSES
from ..vocabulary.methods import METHODS
from ..vocabulary.optimisers import OPTIMISERS
from ..vocabulary.word import Vocabulary
from . import forms
from .base import Part
from .places import Place, places
from .words import allowed, shown

_WORDS = {"Activations φ(h)": ACTIVATIONS, "Losses ℓ(f, y)": LOSSES, "Optimisers of optax": OPTIMISERS}
_HEAD = """# Every field of a spec

A spec is one TOML file. `wideflow show SPEC` prints it with all defaults filled in; `--set table.key=value`
reaches every field below (`dynamics.NAME.key` for one of the dynamics, `dynamics.*.key` for all). An editor
that reads JSON schemas completes it: `wideflow show --schema` prints the schema, and the first line of a file
may say where it is: `#:schema schema.json`.

Time is t = kη after k steps of size η. Start and noise of seed i are those of `jax.random.key(seed + i)`.
"""


def text() -> str:
    """The page."""
    written: dict[type[Part], str] = {}
    parts = [_HEAD]
    for place in places():
        if place.table not in written:
            written[place.table] = place.name
            parts.append(_section(place))
    parts += [_words(title, words) for title, words in _WORDS.items()]
    parts.append(_papers())
    return "\n".join(parts)


def _section(place: Place) -> str:
    doc = " ".join((place.table.__doc__ or "").split()) + _cited(place)
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


def _cited(place: Place) -> str:
    """The papers of the method that a table is of."""
    word = METHODS.get(forms.tag_value(place.table, place.form.tag)) if place.form.tag == "method" else None
    return f" ({', '.join(_key(source) for source in word.sources)})" if word and word.sources else ""


def _words(title: str, words: Vocabulary) -> str:
    """All words of a kind with their formulas."""
    lines = [f"## {title}", "", "| name | formula | options | papers |", "|---|---|---|---|"]
    for word in words.values():
        options = ", ".join(f"`{option.name}`: {option.meaning}" for option in word.options)
        formula = f"{word.formula}; {word.about}" if word.about else word.formula
        papers = ", ".join(map(_key, word.sources))
        row = [f"`{word.name}`", formula, options, papers]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join([*lines, ""])


def _papers() -> str:
    """The papers that are cited above."""
    listed = (METHODS, LAWS, *_WORDS.values())
    keys = sorted({source for words in listed for word in words.values() for source in word.sources})
    return "\n".join(["## Papers", "", *(f"- {_key(key)} {REFERENCES[key]}" for key in keys), ""])


def _key(source: str) -> str:
    return f"[{source}]"


def _title(place: Place) -> str:
    name = f"`[{place.name}]`" if place.name else "The file"
    if place.name.endswith(".*"):
        name = f"`[[{place.name.removesuffix('.*')}]]`"
    tag = place.form.tag
    return f"{name}, {tag} = `{forms.tag_value(place.table, tag)}`" if tag else name


def _default(field: object) -> str:
    default = field.get_default(call_default_factory=True)  # type: ignore[attr-defined]
    if field.is_required() or default is PydanticUndefined:  # type: ignore[attr-defined]
        return "**must be given**"
    if default is None:
        return "–"
    if isinstance(default, Part):
        short = getattr(type(default), "short", None)
        return f"`{shown(getattr(default, short))}`" if short else "its own defaults"
    return f"`{shown(default)}`"


if __name__ == "__main__":
    print(text(), end="")
