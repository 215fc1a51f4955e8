"""The dynamics: each method with its widths, scales, steps and seeds. Their own options are rows of
`vocabulary.methods`; here is what every entry of a kind has."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from .._data import Data
from ..vocabulary.methods import METHODS, Moves
from ..vocabulary.methods import Method as Word
from .base import Count, Listed, Number, Part, Positive, misplaced
from .start import Start
from .tables import table, union

Scale = Positive | Literal["sqrt(n)"]
ParametrisationName = Literal["mup", "ntk", "standard", "mean_field", "naive", "compromise"]

WIDTH = 300  # neurons where no width is given
MOST_RUNS = 10_000  # of a study, over all its entries with their widths, scales and seeds
_RUNS = Field(min_length=1, max_length=MOST_RUNS)


class Exponents(Part):
    """Multiplier n^−a, start n^−b and rate n^−c of each weight layer."""

    a: list[Number] = Field(min_length=2, description="multiplier n^−a of each layer")
    b: list[Number] = Field(min_length=2, description="start n^−b of each layer")
    c: list[Number] = Field(min_length=2, description="rate n^−c of each layer")


Scaling = ParametrisationName | Exponents


class Grid(Part):
    """A box of equal cells, on which the law of the start becomes a density; θ has at most 3 coordinates."""

    low: Annotated[list[Number], Listed, Field(min_length=1, max_length=3)] = Field(
        description="lower corner: a number for each coordinate of θ, or one for all"
    )
    high: Annotated[list[Number], Listed, Field(min_length=1, max_length=3)] = Field(
        description="upper corner, likewise"
    )
    cells: Annotated[list[Annotated[int, Field(ge=2)]], Listed, Field(min_length=1, max_length=3)] = Field(
        description="how many cells along each coordinate, likewise"
    )


class Method(Part):
    """What every method has."""

    name: str = Field(
        "", max_length=200, description="what to call it in tables and figures; the method's name by default"
    )
    start: Start | None = Field(None, description="a start of its own; that of the study by default")
    if TYPE_CHECKING:
        method: str

    @property
    def called(self) -> str:
        """Its name, or that of its method."""
        return self.name or str(getattr(self, "method", "")).replace("_", " ")

    @property
    def word(self) -> Word:
        """What is known about the method."""
        word = METHODS[self.method]
        assert isinstance(word, Word)
        return word

    @property
    def box(self) -> Grid | None:
        """The grid of its density, if it moves one."""
        return getattr(self, "grid", None)

    @property
    def widths(self) -> list[int | None]:
        """n of each of its networks; None for a law or a density, of infinitely many neurons."""
        infinite = self.word.moves is Moves.LAW or self.box is not None
        return [None] if infinite else list(getattr(self, "width", None) or [WIDTH])

    @property
    def repeats(self) -> int:
        """How many independent starts."""
        return getattr(self, "seeds", 1)

    @property
    def axes(self) -> dict[str, int]:
        """How many values each field has that makes several runs of an entry."""
        fields = {name: getattr(self, name, None) for name in ("alpha", "parametrisation")}
        several = {name: len(value) for name, value in fields.items() if isinstance(value, list)}
        return {"width": len(self.widths), "seeds": self.repeats} | several

    @property
    def runs(self) -> int:
        """How many runs it stands for: one for each width, scale and seed."""
        return math.prod(self.axes.values())

    def options(self) -> Data:
        """The options of the method itself, as they were given."""
        return {option.name: getattr(self, option.name) for option in self.word.options}


class Trained(Method):
    """What every method has that moves a network of finite width."""

    width: Annotated[list[Count], Listed, _RUNS] = Field([WIDTH], description="n, or several")
    alpha: Annotated[list[Scale], Listed, _RUNS] | None = Field(
        None, description='scale α of the output, or several; "sqrt(n)" is the NTK scale. 1 by default'
    )
    parametrisation: Annotated[list[Scaling], Listed, _RUNS] | None = Field(
        None, description="scaling with n by name or by exponents, in place of α; or several"
    )
    seeds: Count = Field(1, description="how many independent starts, for error bars")
    linearised: bool = Field(False, description="train the network linearised at its start: a frozen kernel")


class Neurons(Method):
    """What every method has that moves neurons and knows no deeper network."""

    width: Annotated[list[Count], Listed, _RUNS] = Field([WIDTH], description="n, or several")
    alpha: Annotated[list[Scale], Listed, _RUNS] | None = Field(
        None, description='scale α of the output, or several; "sqrt(n)" is the NTK scale. 1 by default'
    )
    seeds: Count = Field(1, description="how many independent starts, for error bars")


class Density(Method):
    """What every method has that moves a density."""

    grid: Grid = Field(description="the cells of the density")
    alpha: Annotated[list[Positive], Listed, _RUNS] | None = Field(
        None, description="scale α of the output, or several; 1 by default"
    )


class Measure(Method):
    """What every method has that moves neurons, or a density where it is given a grid."""

    grid: Grid | None = Field(None, description="the cells of a density; without it, neurons are moved")
    width: Annotated[list[Count], Listed, _RUNS] | None = Field(
        None, description=f"n, or several; without a grid {WIDTH} by default"
    )
    alpha: Annotated[list[Scale], Listed, _RUNS] | None = Field(
        None, description='scale α of the output, or several; "sqrt(n)" is the NTK scale. 1 by default'
    )
    seeds: Count = Field(1, description="how many independent starts, for error bars")

    @model_validator(mode="after")
    def _one_state(self) -> "Measure":
        if self.grid is None:
            for option in self.word.options:
                if option.on_grid and getattr(self, option.name) != option.default:
                    raise misplaced(
                        option.name,
                        "this is for densities: give a grid = { low = …, high = …, cells = … }, or leave it "
                        "out for neurons",
                    )
        elif self.width is not None:
            raise misplaced("width", "a density on a grid has no width: give either grid or width")
        elif self.seeds > 1:
            raise misplaced("seeds", "a density on a grid is the same for every seed: leave seeds out")
        elif "sqrt(n)" in (self.alpha or []):
            raise misplaced("alpha", '"sqrt(n)" needs a width n, and a density on a grid has none')
        return self


_BASES: dict[Moves, type[Method]] = {
    Moves.NETWORK: Trained,
    Moves.PARTICLES: Neurons,
    Moves.MEASURE: Measure,
    Moves.DENSITY: Density,
    Moves.LAW: Method,
}


def _table(word: Any) -> type[Part]:
    return table(word, "method", "how the state moves", "", _BASES[word.moves], __name__)


METHOD_TABLES = {word.name: _table(word) for word in METHODS.values()}

if TYPE_CHECKING:
    Dynamics = Method
else:
    Dynamics = union(METHOD_TABLES, "method")
