"""What may be written for each kind of option, as types; and the small tables that options may be."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, create_model

from .._data import Data
from ..vocabulary.activations import ACTIVATIONS
from ..vocabulary.optimisers import OPTIMISERS
from ..vocabulary.word import Kind, Vocabulary
from .base import Count, Dimension, Listed, NotNegative, Number, Part, Positive, Short

Temperature = Annotated[float, Field(gt=0)]


class Named(Short):
    """One word of a vocabulary by its name, with its options where it has some."""

    short: ClassVar[str] = "name"
    if TYPE_CHECKING:
        name: str

    def options(self) -> Data:
        """What was given beside the name."""
        return self.model_dump(exclude={"name"}, exclude_none=True)


class Annealing(Part):
    """β(t) from `start` at t = 0 to `end` at t = `over`, and `end` from then on."""

    start: Positive = Field(description="β at t = 0")
    end: Positive = Field(description="β from t = over on")
    over: Positive = Field(description="how long it takes")
    kind: Literal["linear", "geometric", "logarithmic", "power"] = Field(
        "geometric", description="the way from start to end"
    )
    power: Positive = Field(2.0, description="power: 1 is linear, the larger the nearer to geometric")


def named_table(title: str, doc: str, meaning: str, words: Vocabulary, types: dict[Kind, Any]) -> Any:
    """The table of all words of a vocabulary, and of their options by name."""
    fields: Data = {"name": (one_of(words), Field(description=meaning))}
    for word in words.values():
        for option in word.options:
            description = f"{word.name}: {option.meaning}"
            fields[option.name] = (types[option.kind] | None, Field(None, description=description))
    return create_model(title, __base__=Named, __doc__=doc, __module__=__name__, **fields)


def one_of(words: Vocabulary) -> Any:
    """The type of their names."""
    return Literal[tuple(words)]


TYPES: dict[Kind, Any] = {
    Kind.NUMBER: Number,
    Kind.POSITIVE: Positive,
    Kind.NOT_NEGATIVE: NotNegative,
    Kind.FRACTION: Annotated[float, Field(ge=0, lt=1)],
    Kind.COUNT: Count,
    Kind.INDEX: Annotated[int, Field(ge=0)],
    Kind.FLAG: bool,
    Kind.DIMENSION: Dimension,
    Kind.VECTOR: Annotated[list[Number], Field(min_length=1)],
    Kind.MATRIX: Annotated[list[list[Number]], Field(min_length=1)],
    Kind.COVARIANCE: Positive | list[Number] | list[list[Number]],
    Kind.OPTIMISER: one_of(OPTIMISERS),
    Kind.TEMPERATURE: Temperature,
    Kind.SCHEDULE: Temperature | Annealing,
    Kind.COORDINATES: Annotated[list[str], Listed, Field(min_length=1)],
}

if TYPE_CHECKING:

    class Activation(Named): ...

else:
    Activation = named_table(
        "Activation",
        'φ by name, with its options where it has some: `"erf"`, or `{name = "hermite", degree = 3}`.',
        "which φ",
        ACTIVATIONS,
        TYPES,
    )
TYPES[Kind.ACTIVATION] = Activation
