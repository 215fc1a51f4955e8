"""The dynamics: each method with its widths, scales, steps and seeds."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Count, Listed, NotNegative, Number, Part, Positive
from .start import Start

Scale = Positive | Literal["sqrt(n)"]
ParametrisationName = Literal["mup", "ntk", "standard", "mean_field", "naive", "compromise"]


class Exponents(Part):
    """Multiplier n^−a, start n^−b and rate n^−c of each weight layer."""

    a: list[Number] = Field(min_length=2, description="multiplier n^−a of each layer")
    b: list[Number] = Field(min_length=2, description="start n^−b of each layer")
    c: list[Number] = Field(min_length=2, description="rate n^−c of each layer")


Scaling = ParametrisationName | Exponents


class Method(Part):
    """What every method has."""

    name: str = Field("", description="what to call it in tables and figures; the method's name by default")
    start: Start | None = Field(None, description="a start of its own; that of the study by default")

    @property
    def called(self) -> str:
        """Its name, or that of its method."""
        return self.name or str(getattr(self, "method", "")).replace("_", " ")


class Trained(Method):
    """What every method has that moves a network of finite width."""

    width: Annotated[list[Count], Listed, Field(min_length=1)] = Field([300], description="n, or several")
    alpha: Annotated[list[Scale], Listed, Field(min_length=1)] | None = Field(
        None, description='scale α of the output, or several; "sqrt(n)" is the NTK scale. 1 by default'
    )
    parametrisation: Annotated[list[Scaling], Listed, Field(min_length=1)] | None = Field(
        None, description="scaling with n by name or by exponents, in place of α; or several"
    )
    seeds: Count = Field(1, description="how many independent starts, for error bars")
    linearised: bool = Field(False, description="train the network linearised at its start: a frozen kernel")


class Limit(Method):
    """The mean-field limit: infinitely many neurons and samples."""

    method: Literal["limit"] = Field(description="how the state moves")
    tol: Positive = Field(1e-6, description="absolute tolerance of the risk")
    alpha: Positive = Field(1.0, description="scale α of the output")
    probes: Annotated[int, Field(ge=0)] = Field(256, description="points carried along for pictures")
    work: Positive = Field(3e8, description="most evaluations of φ for one velocity")


class GradientFlow(Trained):
    """θ̇ = −∇Ψ, by an adaptive Runge–Kutta method."""

    method: Literal["gradient_flow"] = Field(description="how the state moves")
    rtol: Positive | None = Field(None, description="relative tolerance of a step; by precision by default")
    atol: Positive | None = Field(None, description="absolute tolerance of a step; rtol/100 by default")
    max_steps: Count = Field(20_000, description="give up after so many steps")


class GradientDescent(Trained):
    """Full-batch gradient descent."""

    method: Literal["gradient_descent"] = Field(description="how the state moves")
    step: Positive = Field(description="step size η; time is t = kη")


class SGD(Trained):
    """Stochastic gradient descent."""

    method: Literal["sgd"] = Field(description="how the state moves")
    step: Positive = Field(description="step size η; time is t = kη")
    batch: Count = Field(1, description="rows a step")
    one_pass: bool | None = Field(None, description="fresh data each step; the default for a law of x")


class Langevin(Trained):
    """Noisy (stochastic) gradient descent."""

    method: Literal["langevin"] = Field(description="how the state moves")
    step: Positive = Field(description="step size η; time is t = kη")
    beta: Annotated[float, Field(gt=0)] = Field(description="inverse temperature β; inf is no noise")
    decay: NotNegative = Field(0.0, description="weight decay λ")
    batch: Count | None = Field(None, description="rows a step; the full velocity by default")
    one_pass: bool | None = Field(None, description="fresh data each step; the default for a law of x")


class Adam(Trained):
    """Adam."""

    method: Literal["adam"] = Field(description="how the state moves")
    step: Positive = Field(description="learning rate; time is t = k · step")
    batch: Count | None = Field(None, description="rows a step; the full gradient by default")
    one_pass: bool | None = Field(None, description="fresh data each step; the default for a law of x")
    b1: Annotated[float, Field(ge=0, lt=1)] = Field(0.9, description="memory of the first moment")
    b2: Annotated[float, Field(ge=0, lt=1)] = Field(0.999, description="memory of the second moment")
    eps: Positive = Field(1e-8, description="what is added to the root of the second moment")
    decay: NotNegative = Field(0.0, description="weight decay λ, apart from the moments")


class KernelFlow(Trained):
    """The flow on data with the kernel frozen at the start, exact in time for the squared loss."""

    method: Literal["kernel_flow"] = Field(description="how the state moves")
    rtol: Positive | None = Field(None, description="tolerance for losses other than the squared one")


Dynamics = Annotated[
    Limit | GradientFlow | GradientDescent | SGD | Langevin | Adam | KernelFlow,
    Field(discriminator="method"),
]
