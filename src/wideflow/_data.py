"""`Data`: an object of JSON or TOML, or of something that is to become one; it is read field by field."""

from typing import Any

Data = dict[str, Any]
