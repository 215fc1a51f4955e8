"""The problem: law of x, target, neuron, loss."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from ..vocabulary.laws import LAWS
from ..vocabulary.losses import LOSSES
from ..vocabulary.targets import TARGETS
from .base import Count, NotNegative, Part, Said, Short
from .kinds import TYPES, Activation, Named, named_table
from .tables import tables, union

LAW_TABLES = tables(LAWS, "law", "the law of x, or of (x, y)", "X", __name__)
TARGET_TABLES = tables(TARGETS, "kind", "what y is", "Target", __name__)


def _of_a_file(name: str) -> str:
    if "\0" in name:
        raise ValueError("no file has a NUL in its name")
    return name


class DatasetX(Part):
    """Rows of a file, with named columns."""

    law: Literal["dataset"] = Field(description="the law of (x, y)")
    file: Annotated[str, AfterValidator(_of_a_file), Said("the name of a file in quotes")] = Field(
        min_length=1, description="a .csv, .npz or .parquet file; relative to the folder of this file"
    )
    features: list[str] | None = Field(
        None, min_length=1, description="names of the columns of x; by default all but target and weights"
    )
    target: str | list[str] = Field(
        "y", description="name of the column of y (numbers, or names of classes), or several"
    )
    weights: str | None = Field(None, description="name of the column of weights of the rows")
    standardise: bool = Field(True, description="give every feature mean 0 and standard deviation 1")
    standardise_target: bool = Field(False, description="the same for y; for targets far from size 1")
    missing: Literal["drop", "mean"] | None = Field(
        None, description="rows with missing values: left out, or filled with means; an error by default"
    )


if TYPE_CHECKING:
    Law = Any
    Target = Any

    class Loss(Named): ...

else:
    Law = union(LAW_TABLES, "law", DatasetX)
    Target = union(TARGET_TABLES, "kind")
    Loss = named_table("Loss", "ℓ(f, y).", "which ℓ", LOSSES, TYPES)


class Neuron(Short):
    """σ*(x; θ) = a φ(⟨w, x⟩ + b); `neuron = "erf"` names φ alone."""

    short: ClassVar[str] = "activation"
    activation: Activation = Field(description="φ")
    bias: bool = Field(False, description="whether there is a bias b")
    output: Literal["trained", "frozen", "unit"] = Field(
        "trained", description="trained: a moves; frozen: a stays at its start; unit: a = 1"
    )
    outputs: Count = Field(1, description="number of outputs")


class Problem(Part):
    """Fit y = f*(x) + noise, x ~ law, by a network of such neurons under a loss."""

    x: Law = Field(description="the law of x")
    target: Target | None = Field(None, description="f*; left out where the law brings labels")
    neuron: Neuron = Field(description="the neuron σ*(x; θ)")
    loss: Loss = Field(default_factory=lambda: Loss(name="squared"), description="the loss ℓ(f, y)")
    noise: NotNegative = Field(0.0, description="standard deviation of the noise in y")
    reduced: bool = Field(False, description="take the few coordinates (a, s, r) of its symmetry")
