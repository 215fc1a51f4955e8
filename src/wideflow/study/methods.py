"""Entries of `dynamics` as dynamics of the library."""

from typing import Any

from ..dynamics.base import AbstractDynamics
from ..dynamics.flow import GradientFlow
from ..dynamics.gradient_descent import GradientDescent
from ..dynamics.kernel_flow import KernelFlow
from ..dynamics.langevin import Langevin
from ..dynamics.linearised import Linearised
from ..dynamics.optax import Adam
from ..dynamics.sgd import SGD
from ..functionals.base import AbstractFunctional
from ..spec.dynamics import Dynamics, Method, Trained

_METHODS: dict[str, Any] = {
    "gradient_flow": GradientFlow,
    "gradient_descent": GradientDescent,
    "sgd": SGD,
    "langevin": Langevin,
    "adam": Adam,
    "kernel_flow": KernelFlow,
}
_STUDYS_OWN = {"method", *Method.model_fields, *Trained.model_fields}


def dynamics(spec: Dynamics, functional: AbstractFunctional) -> AbstractDynamics:
    """The dynamics of this entry, on a functional; a limit is not one of them."""
    given = {k: getattr(spec, k) for k in type(spec).model_fields if k not in _STUDYS_OWN}
    made = _METHODS[spec.method](functional, **{k: v for k, v in given.items() if v is not None})
    frozen = getattr(spec, "linearised", False) and spec.method != "kernel_flow"
    return Linearised(made) if frozen else made
