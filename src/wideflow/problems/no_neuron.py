"""What stands for the neuron of a problem that has none."""

from typing import NoReturn

import equinox as eqx

from .neurons import AbstractNeuron


class NoNeuron(AbstractNeuron):
    """A problem for deep networks has no neuron; it only knows how many `outputs` its labels require. For
    classes that is a lower bound, unless it is `exact`: the last classes may have no row in the data.

    Whatever needs a neuron raises an error that says so."""

    outputs: int = eqx.field(static=True)
    exact: bool = eqx.field(static=True, default=True)

    def _missing(self, *_: object) -> NoReturn:
        raise ValueError(
            "This problem has no neuron, so it has no particles, no laws of them and no limit (wf.init, "
            "problem.reduced, wf.limit, wf.gibbs). Use wf.Problem(…, neuron=wf.Neuron('relu')), or train a "
            "network: wf.MLP(d, depth=2).sample(key, n)."
        )

    size = unpack = pack = weighted_sum = features = trained = coordinates = _missing  # type: ignore[assignment]

    def check(self, d: int) -> None:
        """It fits every x."""

    def __repr__(self) -> str:
        return f"no neuron, {'' if self.exact else 'at least '}{self.outputs} output(s)"
