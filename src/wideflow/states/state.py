"""The interface of every state: it predicts, and knows what it is."""

import abc
from typing import TYPE_CHECKING

from jaxtyping import Array, Float

from .replicas import AbstractReplicable

if TYPE_CHECKING:
    from ..problems.activations import Activation
    from .particles import Particles


class AbstractState(AbstractReplicable):
    """f(x) = state(x) on the rows of x; one network or measure, or several along a leading replica axis."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "m d"]) -> Array:
        """f on the rows of x: (m,) for one output, (m, outputs) for more; with replicas one each."""

    def preactivations(self, x: Float[Array, "m d"]) -> "tuple[tuple[Activation, Array], ...]":
        """Each activation, in the order in which the rows of x pass through them, with what enters it; empty
        for a state that is not made of activations."""
        return ()

    @property
    def replicas(self) -> int | None:
        """How many systems this is along a leading axis; None for a single one."""
        alpha = getattr(self, "alpha", None)
        return alpha.shape[0] if alpha is not None and alpha.ndim else None

    @property
    def base(self) -> "AbstractState":
        """The network or measure behind this state: where it was linearised, or the state itself."""
        return self

    @property
    def current(self) -> "AbstractState":
        """The network or measure with this state's θ: not linearised."""
        return self

    @property
    def is_reduced(self) -> bool:
        """Whether its coordinates stand for more than themselves: a sphere of neurons in R^d each."""
        return False

    @property
    def cloud(self) -> "Particles | None":
        """The particles that this state consists of, as they are now; None if it has none."""
        return None
