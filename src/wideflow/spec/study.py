"""The whole of a spec."""

from collections import Counter
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from .._shown import shown
from ..verdicts import Question
from .base import Count, NotNegative, Number, Part, Positive
from .dynamics import Dynamics
from .problem import Problem
from .start import ParticlesStart, Start


class ClosedForm(Part):
    """E in closed form, where there is one."""

    way: Literal["closed_form"] = Field(description="how E over (x, y) is taken")
    order: Count | None = Field(None, description="terms of the series of an activation without closed form")


class Quadrature(Part):
    """E by a product Gauss rule, for d ≤ 3."""

    way: Literal["quadrature"] = Field(description="how E over (x, y) is taken")
    order: Count | None = Field(None, description="points in each direction")


class Sample(Part):
    """E over a fixed sample."""

    way: Literal["sample"] = Field(description="how E over (x, y) is taken")
    m: Count = Field(16384, description="points")
    seed: Annotated[int, Field(ge=0)] = Field(0, description="what they are drawn from")


class Auto(Part):
    """The most exact way that is affordable."""

    way: Literal["auto"] = Field("auto", description="how E over (x, y) is taken")


def _way(value: object) -> str:
    way = value.get("way", "auto") if isinstance(value, dict) else getattr(value, "way", "auto")
    return way if isinstance(way, str) else "auto"


Expectation = Annotated[
    Annotated[Auto, Tag("auto")]
    | Annotated[ClosedForm, Tag("closed_form")]
    | Annotated[Quadrature, Tag("quadrature")]
    | Annotated[Sample, Tag("sample")],
    Discriminator(_way),
]


class Risk(Part):
    """R = E ℓ(f(x), y), and what is added to it."""

    expectation: Expectation = Field(default_factory=Auto, description="how E over (x, y) is taken")
    second_moment: NotNegative = Field(0.0, description="λ of the penalty λ · ½∫|θ|²dρ")
    path_norm: NotNegative = Field(0.0, description="λ of the penalty λ ∫|a||w|dρ")


class Times(Part):
    """When to look: `at`, a list; or `count` times from 0 to `end`."""

    end: Positive | None = Field(None, description="the last time")
    count: Annotated[int, Field(ge=2, le=100_000)] = Field(
        41, description="how many times, the first being 0"
    )
    spacing: Literal["linear", "log"] = Field(
        "linear", description="evenly in t, or in log t from `first` on"
    )
    first: Positive | None = Field(None, description="log: the first time after 0; end/1000 by default")
    at: list[Annotated[Number, Field(ge=0)]] | None = Field(
        None, min_length=1, max_length=100_000, description="the times themselves"
    )

    @model_validator(mode="after")
    def _one_way(self) -> "Times":
        if (self.end is None) == (self.at is None):
            which = "both" if self.at is not None else "neither"
            raise ValueError(f"needs either end or at, got {which}; try end = 10.0")
        if self.at is not None and any(b <= a for a, b in zip(self.at, self.at[1:], strict=False)):
            raise ValueError("at must increase strictly")
        if self.first is not None and (self.spacing != "log" or self.end is None or self.first >= self.end):
            raise ValueError('first goes with spacing = "log" and must be below end')
        return self


class Observe(Part):
    """What to look at beside the risk, and what to draw."""

    cloud: list[str] | None = Field(
        None, min_length=2, max_length=2, description='two coordinates of θ to draw, such as ["w1", "a"]'
    )
    particles: Annotated[int, Field(ge=0, le=20_000)] = Field(800, description="how many to draw; 0 for none")
    feature: str | None = Field(None, description="the coordinate whose distribution is drawn")
    kernel: Annotated[int, Field(ge=0, le=2048)] = Field(
        64, description="points for the kernel's movement; 0 for none"
    )
    test: Annotated[int, Field(ge=0, le=100_000)] = Field(
        512, description="points at which networks are compared"
    )
    norms: list[Literal["second_moment", "path_norm", "mass"]] = Field(
        [], description="further numbers to follow"
    )
    snapshots: bool = Field(False, description="keep the whole state at every time (large folders)")


class Spec(Part):
    """One study: a problem, a start, dynamics to compare, when and what to look at."""

    title: str = Field("", max_length=200, description="the headline of the report")
    about: str = Field("", description="what it teaches, in a few sentences")
    question: Question | None = Field(
        None, description="what the verdict answers; chosen by the dynamics by default"
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(0, description="seed i of a method is seed + i")
    precision: Literal["float32", "float64"] = Field(
        "float32", description="of networks (a limit is in float64)"
    )
    problem: Problem = Field(description="law of x, target, neuron, loss")
    start: Start = Field(default_factory=ParticlesStart, description="where training starts")
    risk: Risk = Field(default_factory=Risk, description="how the risk is taken, and penalties")
    times: Times = Field(description="when to look")
    dynamics: list[Dynamics] = Field(min_length=1, max_length=1000, description="what to run")
    observe: Observe = Field(default_factory=Observe, description="what to look at")

    @field_validator("dynamics")
    @classmethod
    def _named_once(cls, dynamics: list[Dynamics]) -> list[Dynamics]:
        names = Counter(method.name or method.method for method in dynamics)
        twice = sorted(name for name, times in names.items() if times > 1)
        if twice:
            raise ValueError(f'two dynamics are called {shown(twice[0])}: give each a name = "…" of its own')
        return dynamics
