"""The problem: law of x, target, neuron, loss."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from .base import Count, Dimension, NotNegative, Number, Part, Positive, Short

ActivationName = Literal[
    "relu",
    "leaky_relu",
    "erf",
    "tanh",
    "sigmoid",
    "softplus",
    "gelu",
    "sin",
    "cos",
    "identity",
    "square",
    "hermite",
    "piecewise_linear",
]


class Activation(Short):
    """φ by name, with its options where it has some: `"erf"`, or `{name = "hermite", degree = 3}`."""

    short: ClassVar[str] = "name"
    name: ActivationName = Field(description="which φ")
    slope: Number | None = Field(None, description="leaky_relu: the slope for h < 0")
    degree: Annotated[int, Field(ge=0)] | None = Field(None, description="hermite: the degree")
    knots: list[list[Number]] | None = Field(None, description="piecewise_linear: points [x, y]")

    def options(self) -> dict:
        """What was given beside the name."""
        return self.model_dump(exclude={"name"}, exclude_none=True)


class GaussianX(Part):
    """x ~ N(0, Σ) in R^d."""

    law: Literal["gaussian"] = Field(description="the law of x")
    d: Dimension = Field(description="dimension of x, a whole number or inf")
    covariance: Positive | list[Number] | list[list[Number]] | None = Field(
        None, description="Σ: one number, a diagonal, or a matrix; the identity by default"
    )


class SphereX(Part):
    """x uniform on the sphere of radius √d."""

    law: Literal["sphere"] = Field(description="the law of x")
    d: Dimension = Field(description="dimension of x, a whole number or inf")


class TwoGaussiansX(Part):
    """y = ±1 with equal probability, x ~ N(0, (1 ± Δ)² I)."""

    law: Literal["two_gaussians"] = Field(description="the law of (x, y)")
    d: Dimension = Field(description="dimension of x, a whole number or inf")
    delta: Annotated[float, Field(ge=0, lt=1)] = Field(description="Δ: how far the two classes differ")
    subspace: Count | None = Field(None, description="the classes differ in so many coordinates alone")


class DatasetX(Part):
    """Rows of a file, with named columns."""

    law: Literal["dataset"] = Field(description="the law of (x, y)")
    file: str = Field(
        min_length=1, description="a .csv, .npz or .parquet file; relative to the folder of this file"
    )
    features: list[str] | None = Field(
        None, min_length=1, description="names of the columns of x; by default all but target and weights"
    )
    target: str | list[str] = Field("y", description="name of the column of y, or several")
    weights: str | None = Field(None, description="name of the column of weights of the rows")
    standardise: bool = Field(True, description="give every feature mean 0 and standard deviation 1")
    standardise_target: bool = Field(False, description="the same for y; for targets far from size 1")


Law = Annotated[GaussianX | SphereX | TwoGaussiansX | DatasetX, Field(discriminator="law")]


class SingleIndex(Part):
    """y = φ(⟨w*, x⟩), |w*| = 1."""

    kind: Literal["single_index"] = Field(description="what y is")
    link: Activation = Field(description="φ")
    direction: list[Number] | None = Field(None, description="w*; the first axis by default")


class Teacher(Part):
    """y = Σ_j a_j φ(⟨w_j, x⟩ + b_j)."""

    kind: Literal["teacher"] = Field(description="what y is")
    w: list[list[Number]] = Field(min_length=1, description="directions w_j, one a row")
    a: list[Number] | None = Field(None, description="output weights a_j, 1/k by default")
    b: list[Number] | None = Field(None, description="biases b_j, none by default")
    link: Activation = Field(default_factory=lambda: Activation(name="relu"), description="φ")


class HermiteTarget(Part):
    """y = He_k(⟨w*, x⟩)/√k!."""

    kind: Literal["hermite"] = Field(description="what y is")
    degree: Annotated[int, Field(ge=0)] = Field(description="k")
    direction: list[Number] | None = Field(None, description="w*; the first axis by default")


class PolynomialTarget(Part):
    """y = Σ_k c_k ⟨w*, x⟩^k."""

    kind: Literal["polynomial"] = Field(description="what y is")
    coefficients: list[Number] = Field(min_length=1, description="c_0, c_1, …")
    direction: list[Number] | None = Field(None, description="w*; the first axis by default")


Target = Annotated[SingleIndex | Teacher | HermiteTarget | PolynomialTarget, Field(discriminator="kind")]


class Neuron(Short):
    """σ*(x; θ) = a φ(⟨w, x⟩ + b); `neuron = "erf"` names φ alone."""

    short: ClassVar[str] = "activation"
    activation: Activation = Field(description="φ")
    bias: bool = Field(False, description="whether there is a bias b")
    output: Literal["trained", "frozen", "unit"] = Field(
        "trained", description="trained: a moves; frozen: a stays at its start; unit: a = 1"
    )
    outputs: Count = Field(1, description="number of outputs")


class Loss(Short):
    """ℓ(f, y)."""

    short: ClassVar[str] = "name"
    name: Literal["squared", "huber", "logistic", "cross_entropy"] = Field(description="which ℓ")
    delta: Positive | None = Field(None, description="huber: where the parabola ends")


class Problem(Part):
    """Fit y = f*(x) + noise, x ~ law, by a network of such neurons under a loss."""

    x: Law = Field(description="the law of x")
    target: Target | None = Field(None, description="f*; left out where the law brings labels")
    neuron: Neuron = Field(description="the neuron σ*(x; θ)")
    loss: Loss = Field(default_factory=lambda: Loss(name="squared"), description="the loss ℓ(f, y)")
    noise: NotNegative = Field(0.0, description="standard deviation of the noise in y")
    reduced: bool = Field(False, description="take the few coordinates (a, s, r) of its symmetry")
