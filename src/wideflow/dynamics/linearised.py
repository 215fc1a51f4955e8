"""Training of the network linearised at its start: the lazy side of any dynamics."""

from typing import Any

import equinox as eqx

from ..functionals.base import AbstractFunctional
from ..states.linearisation import Linearisation
from ..states.trainable import AbstractTrainable
from .base import AbstractDynamics, not_trainable
from .flow import GradientFlow


def _inner(given: Any) -> AbstractDynamics:
    if isinstance(given, AbstractFunctional):
        return GradientFlow(given)
    if isinstance(given, AbstractDynamics) and not isinstance(given, Linearised):
        return given
    raise ValueError(
        "Linearised takes a risk, for its gradient flow, or another dynamics such as wf.SGD(R, step=1e-3), "
        f"got a {type(given).__name__}."
    )


class Linearised(AbstractDynamics):
    """f_lin(x; θ) = f(x; θ₀) + ⟨∇f(x; θ₀), θ − θ₀⟩ trained as the network itself would be: the same steps,
    batches, noise and rates, with the kernel K₀ of the start. `Linearised(R)` is the gradient flow,
    `Linearised(wf.GradientDescent(R, step))` descent, and so on; the states of a run predict f_lin."""

    dynamics: AbstractDynamics = eqx.field(converter=_inner)

    @property
    def functional(self) -> AbstractFunctional:  # type: ignore[override]
        return self.dynamics.functional

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Linearised {self.dynamics.name}"

    @property
    def sources(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("lee2019", "chizat2019", *self.dynamics.sources)

    def init(self, state, key):
        if not isinstance(state, AbstractTrainable):
            raise not_trainable(self, state)
        return self.dynamics.init(state if isinstance(state, Linearisation) else Linearisation(state), key)

    def advance(self, carry, t0, t1, budget=2**30):
        return self.dynamics.advance(carry, t0, t1, budget)

    def read(self, carry, t):
        return self.dynamics.read(carry, t)

    def time(self, carry):
        return self.dynamics.time(carry)

    def snap(self, ts):
        return self.dynamics.snap(ts)

    def check(self, ts):
        self.dynamics.check(ts)

    def advice(self, state, key):
        return self.dynamics.advice(state if isinstance(state, Linearisation) else Linearisation(state), key)
