"""How finely a limit is resolved."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ..states.marginals import Normal, Panels, Radius
from ..states.starts import Law

_LEAST_RTOL = 1e-13


@dataclass(frozen=True)
class Resolution:
    """Gauss orders of the start by part (or panels of one of them), of E over x and of the mean in a
    reduced neuron, and the tolerance of the time steps."""

    nodes: dict[str, int | Panels]
    x: int
    u: int
    rtol: float

    def dimensions(self) -> list[str]:
        return [*self.nodes, "x", "u", "time"]

    def order(self, name: str) -> float:
        """The order of a rule, of panels their nodes altogether; the tolerance of the time steps."""
        order = {**self.nodes, "x": self.x, "u": self.u, "time": self.rtol}[name]
        return order.size if isinstance(order, Panels) else order

    def with_order(self, name: str, order: Any) -> "Resolution":
        if name == "time":
            return replace(self, rtol=order)
        if name == "x":
            return replace(self, x=int(order))
        if name == "u":
            return replace(self, u=int(order))
        return replace(self, nodes=self.nodes | {name: order if isinstance(order, Panels) else int(order)})

    def scaled(self, names: Iterable[str], factor: float) -> "Resolution":
        """Orders times `factor` > 1; the tolerance of the time steps by a quarter. Panels also reach
        further, as what they leave out would be the same at both levels. Orders of x and u go from even to
        odd or back: even rules have no node at 0 and can agree on a spike that none of them sees."""
        other = self
        for name in names:
            panels = self.nodes.get(name)
            if isinstance(panels, Panels):
                wider = replace(panels.wider(), order=math.ceil(factor * panels.order))
                other = other.with_order(name, wider)
            elif name == "time":
                other = other.with_order(name, max(self.rtol / 4, _LEAST_RTOL))
            elif name in ("x", "u"):
                now = int(self.order(name))
                finer = whole(factor * now) if name == "u" else math.ceil(factor * now)
                other = other.with_order(name, finer + (finer % 2 == now % 2))
            else:
                other = other.with_order(name, math.ceil(factor * self.order(name)))
        return other


def whole(order: float) -> int:
    """An order of the mean in a neuron, in steps of 8, as each one compiles."""
    return 8 * math.ceil(order / 8)


def first_resolution(law: Law, tol: float) -> Resolution:
    """A first guess: more nodes for more digits, fewer for coordinates of small spread."""
    p = 4 + 0.6 * max(math.log10(1 / tol), 0.0)
    nodes: dict[str, int | Panels] = {}
    for name, marginal in zip(law.names, law.marginals, strict=True):
        spread = 1.0
        if isinstance(marginal, Normal):
            spread = min(1.0, 2 * float(marginal.sd))
        if isinstance(marginal, Radius):
            spread = min(1.0, 2 / math.sqrt(4 + marginal.dim))
        nodes[name] = max(3, round(p * spread)) if marginal.spread else marginal.points_of(1)
    return Resolution(nodes, round(2 * p), whole(2.5 * p), 0.1 * tol)
