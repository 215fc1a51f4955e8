"""Training of the network linearised at its start: the lazy side of any dynamics."""

import equinox as eqx

from ..functionals.base import AbstractFunctional, is_functional
from ..states.linearisation import linearised
from ..states.trainable import is_trainable
from .base import AbstractDynamics, not_trainable
from .flow import GradientFlow


def _inner(value: object) -> AbstractDynamics:
    if is_functional(value):
        return GradientFlow(value)
    if isinstance(value, AbstractDynamics) and not isinstance(value, Linearised):
        return value
    raise ValueError(
        "Linearised takes a risk, for its gradient flow, or another dynamics such as wf.SGD(R, step=1e-3), "
        f"got a {type(value).__name__}."
    )


class Linearised(AbstractDynamics):
    """f_lin(x; θ) = f(x; θ₀) + ⟨∇f(x; θ₀), θ − θ₀⟩ trained by `dynamics` as the network itself would
    be: the same steps, batches, noise and rates, with the kernel K₀ of the start. `Linearised(R)` is the
    gradient flow, `Linearised(wf.GradientDescent(R, step))` descent, and so on; the states of a run predict
    f_lin.

    >>> lazy = wf.evolve(wf.Linearised(wf.GradientDescent(R, step=0.01)), net, ts)
    >>> lazy["risk"].round(3)
    array([0.235, 0.211, 0.19 ])"""

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

    def check_state(self, state):
        if not is_trainable(state):
            raise not_trainable(self, state)
        self.dynamics.check_state(linearised(state))

    def init(self, state, key, ts=None):
        return self.dynamics.init(linearised(state), key, ts)

    def target(self, t):
        return self.dynamics.target(t)

    def advance_to(self, carry, target, budget):
        return self.dynamics.advance_to(carry, target, budget)

    def read(self, carry, t):
        return self.dynamics.read(carry, t)

    def time(self, carry):
        return self.dynamics.time(carry)

    def snap(self, ts):
        return self.dynamics.snap(ts)

    def check_times(self, ts):
        self.dynamics.check_times(ts)

    def cautions(self, noted):
        return self.dynamics.cautions(noted)

    def functional_at(self, carry):
        return self.dynamics.functional_at(carry)

    def fault(self, carry):
        return self.dynamics.fault(carry)

    def advice(self, state, key):
        return self.dynamics.advice(linearised(state), key)
