"""Entries of `dynamics` as dynamics of the library."""

from typing import Any

from ..dynamics.base import AbstractDynamics
from ..dynamics.linearised import Linearised
from ..dynamics.schedules import Annealing
from ..functionals.base import AbstractFunctional
from ..spec.base import Part
from ..spec.dynamics import Dynamics


def dynamics(spec: Dynamics, functional: AbstractFunctional) -> AbstractDynamics:
    """The dynamics of this entry, on a functional; a limit is not one of them."""
    given = {name: _made(value) for name, value in spec.options().items() if value is not None}
    made = spec.word.constructor()(functional, **given)
    return Linearised(made) if getattr(spec, "linearised", False) and not spec.word.frozen else made


def _made(value: Any) -> Any:
    """A value, or the schedule that a table stands for (the only options that are tables)."""
    return Annealing(**dict(value)) if isinstance(value, Part) else value
