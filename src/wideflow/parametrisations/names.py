"""Parametrisations by name."""

from typing import Any

from .._checks import count, nearest
from .._shown import shown
from .exponents import power
from .parametrisation import Parametrisation

ANY_DEPTH = ("mup", "ntk", "standard")
_TWO_LAYER = ("compromise", "mean_field", "naive")


def named(spec: Any, depth: int, optimiser: str = "sgd") -> Parametrisation:
    """The parametrisation of a network with `depth` hidden layers: by name ("ntk", "standard", "mup" at any
    depth, "mean_field", "naive", "compromise" with one), or itself. A name has the rates of `optimiser`."""
    depth = count("depth", depth)
    if isinstance(spec, Parametrisation):
        if spec.depth != depth:
            raise ValueError(
                f"The network has {depth} hidden layer(s), but {shown(spec)} is for {spec.depth}. "
                f"It needs {depth + 1} exponents a, b and c."
            )
        return spec
    names = sorted(ANY_DEPTH + _TWO_LAYER)
    name = spec.lower().replace("-", "_").replace(" ", "_") if isinstance(spec, str) else ""
    if name not in names:
        hint = nearest(name, names) if name else ""
        raise ValueError(
            f"A parametrisation is a wf.Parametrisation or one of {', '.join(names)}, got {shown(spec)}."
            f"{hint}"
        )
    if name in ANY_DEPTH:
        return getattr(Parametrisation, name)(depth, optimiser)
    if depth != 1:
        hint = " With more layers it is 'mup'." if name == "mean_field" else ""
        raise ValueError(f"{shown(name)} has one hidden layer, but the network has {depth}.{hint}")
    if name == "mean_field":
        return Parametrisation.mean_field(optimiser=optimiser)
    if power(optimiser) != 2:
        raise ValueError(f"{shown(name)} is defined by its rate for SGD, got optimiser={shown(optimiser)}.")
    return getattr(Parametrisation, name)()
