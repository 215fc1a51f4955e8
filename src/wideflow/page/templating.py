"""The room's templates and static files."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2 import Environment

_ROOM = Path(__file__).parent


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(_ROOM / "templates")
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def render(template: str, **values: object) -> Markup:
    """A template filled in; every value that is not `Markup` is escaped."""
    return Markup(_environment().get_template(template).render(**values).strip())


@cache
def static(name: str) -> Markup:
    """A style or script of our own, to stand inside <style> or <script>."""
    text = (_ROOM / "static" / name).read_text(encoding="utf-8")
    assert "</" not in text, f"{name} would end the element it stands in"
    return Markup(text)
