"""The page of all fields is that of the model."""

from pathlib import Path

from wideflow.spec.places import places
from wideflow.spec.reference import text

PAGE = Path(__file__).parents[2] / "docs" / "spec.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == text(), "python -m wideflow.spec.reference > docs/spec.md"


def test_every_field_is_on_it():
    page = text()
    for place in places():
        for key in place.table.model_fields:
            assert f"| `{key}` |" in page
