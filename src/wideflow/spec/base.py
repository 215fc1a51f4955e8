"""What all parts of a spec share: no unknown keys, no silent conversions, short forms."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Said:
    """How messages word what is allowed, where the type alone does not say it."""

    text: str


def _whole_or_inf(value: float) -> float:
    if value == math.inf:
        return value
    if not value < 2**53 or value != int(value):
        raise ValueError("neither whole nor inf")
    return int(value)


Dimension = Annotated[
    float, Field(ge=1), AfterValidator(_whole_or_inf), Said("a whole number >= 1 and < 2^53, or inf")
]


class Part(BaseModel):
    """A table of a spec. Unknown keys are errors, and strings are not converted to numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Short(Part):
    """A table that may be written as one value, that of its field `short`: `"erf"` for `{name = "erf"}`."""

    short: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _lengthened(cls, value: object) -> Any:
        return value if isinstance(value, dict | cls) else {cls.short: value}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        table = handler.resolve_ref_schema(handler(core))
        short = handler.resolve_ref_schema(table["properties"][cls.short])
        # the short form of a table that may itself be short, not that table written out
        short = short["anyOf"][0] if "anyOf" in short else short
        return {"anyOf": [short, table]}


def misplaced(field: str, message: str) -> ValidationError:
    """The error of one field, for a validator of the whole table to raise."""
    error = PydanticCustomError("value_error", "{error}", {"error": message})
    return ValidationError.from_exception_data("table", [{"type": error, "loc": (field,), "input": None}])


def _listed(value: object) -> Any:
    return value if isinstance(value, list) else [value]


# `width = 300` for `width = [300]`
Listed = BeforeValidator(_listed)
