"""Parts of a spec as objects of the library, by the library's own constructors."""

import functools
import operator
from pathlib import Path
from typing import Any

import numpy as np

from .._shown import shown
from ..functionals.base import AbstractFunctional
from ..functionals.expectations import ClosedForm, Quadrature, Sample
from ..functionals.penalties import PathNorm, SecondMoment
from ..functionals.risk import Risk
from ..problems.activations import Activation, activation
from ..problems.laws import AbstractLaw
from ..problems.losses import AbstractLoss, loss_named
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..problems.tables import read_dataset
from ..problems.targets import AbstractTarget
from ..spec.base import Part
from ..spec.kinds import Activation as ActivationSpec
from ..spec.problem import Law as LawOfX
from ..spec.problem import Loss, Target
from ..spec.problem import Neuron as NeuronSpec
from ..spec.start import Start
from ..spec.study import Risk as RiskSpec
from ..spec.study import Times
from ..states.family import CNN, MLP, Family
from ..states.starts import Law, init
from ..vocabulary.laws import LAWS
from ..vocabulary.losses import LOSSES
from ..vocabulary.marginals import MARGINALS
from ..vocabulary.targets import TARGETS

_WAYS: dict[str, Any] = {"closed_form": ClosedForm, "quadrature": Quadrature, "sample": Sample}
_FAMILIES: dict[str, Any] = {"mlp": MLP, "cnn": CNN}


def _given(part: Part, *left_out: str) -> dict[str, Any]:
    """The fields of a part that are set, but for its tag and those left out."""
    values = {name: getattr(part, name) for name in type(part).model_fields if name not in left_out}
    made = {k: phi(v) if isinstance(v, ActivationSpec) else v for k, v in values.items()}
    return {k: v for k, v in made.items() if v is not None}


def phi(spec: ActivationSpec) -> Activation:
    """The activation of this name and options."""
    return activation(spec.name, **spec.options())


def law_of_x(spec: LawOfX, folder: Path) -> AbstractLaw:
    """The law of x; files are relative to `folder`."""
    if spec.law == "dataset":
        return read_dataset(folder / spec.file, **_given(spec, "law", "file"))
    return LAWS[spec.law].constructor()(**_given(spec, "law"))


def target(spec: Target | None) -> AbstractTarget | None:
    """f*, or None."""
    return None if spec is None else TARGETS[spec.kind].constructor()(**_given(spec, "kind"))


def neuron(spec: NeuronSpec) -> Neuron:
    """The neuron σ*."""
    return Neuron(**_given(spec))


def loss(spec: Loss) -> AbstractLoss:
    """The loss ℓ."""
    given = spec.options()
    for word in LOSSES.values():
        for option in word.options:
            if option.name in given and word.name != spec.name:
                belongs = f"{option.name} belongs to the {word.name} loss, and this one is {shown(spec.name)}"
                raise ValueError(f"{belongs}: leave it out.")
    return loss_named(spec.name, **given)


def start(spec: Start, problem: Problem, reduced: bool) -> Law | Family:
    """The law of the neurons at time 0, or the family of networks."""
    if spec.kind == "particles":
        parts = {name: _marginal(getattr(spec, name)) for name in ("a", "w", "b")}
        law = init(problem, **parts)
        return law.reduced() if reduced else law
    if reduced:
        raise ValueError('A reduced problem takes a start of kind = "particles".')
    given = _given(spec, "kind", "centred") | {"outputs": problem.neuron.outputs}
    own = getattr(problem.neuron, "activation", None)
    return _FAMILIES[spec.kind](*_inputs(spec, problem), **({"activation": own} | given))


def _inputs(spec: Any, problem: Problem) -> tuple[Any, ...]:
    if spec.kind == "mlp":
        return (problem.d,)
    if int(np.prod(spec.inputs)) != problem.d:
        shape = " × ".join(map(str, spec.inputs))
        raise ValueError(f"inputs must multiply to d = {problem.d}, got {shape}.")
    return ()


def _marginal(spec: Any) -> Any:
    named = isinstance(spec, Part)
    return MARGINALS[spec.law].constructor()(**_given(spec, "law")) if named else spec


def risk(spec: RiskSpec, problem: Problem) -> tuple[Risk, AbstractFunctional | None]:
    """The risk, and the penalty that is added to it."""
    way = spec.expectation.way
    plain = Risk(problem, None if way == "auto" else _WAYS[way](**_given(spec.expectation, "way")))
    norms = ((spec.second_moment, SecondMoment), (spec.path_norm, PathNorm))
    terms = [strength * norm() for strength, norm in norms if strength]
    return plain, functools.reduce(operator.add, terms) if terms else None


def times(spec: Times) -> np.ndarray:
    """The times to look at."""
    if spec.at is not None:
        return np.array(spec.at, float)
    assert spec.end is not None
    if spec.spacing == "linear":
        return np.linspace(0.0, spec.end, spec.count)
    first = spec.end / 1000 if spec.first is None else spec.first
    return np.concatenate([[0.0], np.geomspace(first, spec.end, spec.count - 1)])
