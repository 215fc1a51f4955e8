"""Where training starts: a law of neurons, or a family of deeper networks."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Discriminator, Field, Tag

from ..vocabulary.marginals import MARGINALS
from .base import Count, NotNegative, Part, Positive
from .kinds import Activation
from .tables import tables

MARGINAL_TABLES = tables(MARGINALS, "law", "the law of each coordinate", "Law", __name__)


def _which(value: object) -> str | None:
    if isinstance(value, dict):
        law = value.get("law")
        return law if isinstance(law, str) else "normal"
    return getattr(value, "law", "number")


if TYPE_CHECKING:
    Marginal = Any
else:
    _tagged = [Annotated[table, Tag(name)] for name, table in MARGINAL_TABLES.items()]
    Marginal = Annotated[
        Union[(Annotated[NotNegative, Tag("number")], *_tagged)],
        Discriminator(_which),
    ]


class ParticlesStart(Part):
    """Neurons θ = (a, w, b). A number is a standard deviation: a ~ N(0, a²), w ~ N(0, (w²/d) I)."""

    kind: Literal["particles"] = Field("particles", description="one hidden layer, by its neurons")
    a: Marginal | None = Field(None, description="law of the output weights, 1.0 by default")
    w: Marginal | None = Field(None, description="law of the weights, 1.0 by default")
    b: Marginal | None = Field(None, description="law of the biases, 0.0 by default")
    mirrored: bool = Field(False, description="each neuron a second time with −a, so that f = 0 at the start")


class MLPStart(Part):
    """Fully connected layers."""

    kind: Literal["mlp"] = Field(description="a fully connected network of any depth")
    depth: Count = Field(1, description="hidden layers")
    activation: Activation | None = Field(None, description="φ; that of the problem's neuron by default")
    gain: Positive = Field(1.0, description="factor of all weights")
    bias: NotNegative | None = Field(None, description="standard deviation of the biases; none by default")
    input_scale: Literal["start", "front"] = Field(
        "start", description="where 1/√d of the first layer stands"
    )
    centred: bool = Field(False, description="train f − f₀, which is 0 at the start")


class CNNStart(Part):
    """Convolutions on rows of pixels."""

    kind: Literal["cnn"] = Field(description="a convolutional network")
    inputs: list[Count] = Field(min_length=3, max_length=3, description="height, width, channels of one x")
    depth: Count = Field(1, description="convolutional layers")
    activation: Activation | None = Field(None, description="φ; that of the problem's neuron by default")
    window: Count = Field(3, description="side of a window")
    stride: Count = Field(1, description="steps of the windows")
    padding: Literal["SAME", "VALID"] = Field("SAME", description="what is done at the borders")
    pool: Count = Field(1, description="side of average pooling after each layer; 1 for none")
    head: Literal["flatten", "average"] = Field("flatten", description="what comes before the last layer")
    gain: Positive = Field(1.0, description="factor of all weights")
    bias: NotNegative | None = Field(None, description="standard deviation of the biases; none by default")
    input_scale: Literal["start", "front"] = Field(
        "start", description="where 1/√fan of the first layer stands"
    )
    centred: bool = Field(False, description="train f − f₀, which is 0 at the start")


def _kind(value: object) -> str:
    kind = value.get("kind", "particles") if isinstance(value, dict) else getattr(value, "kind", "particles")
    return kind if isinstance(kind, str) else "particles"


Start = Annotated[
    Annotated[ParticlesStart, Tag("particles")]
    | Annotated[MLPStart, Tag("mlp")]
    | Annotated[CNNStart, Tag("cnn")],
    Discriminator(_kind),
]
