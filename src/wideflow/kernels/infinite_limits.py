"""Which parts of a network's kernels are there at n = ∞: the exponents of a parametrisation, as zeros and ones."""

from dataclasses import dataclass
from typing import Any

from ..parametrisations import Parametrisation, named
from ..problems.activations import Activation
from ..states.family import Family
from ..states.layers import Conv, Dense, Elementwise

TIE = 1e-9  # of exponents that are equal: they are sums of a few numbers of size 1


@dataclass(frozen=True)
class Limit:
    """A family at n = ∞. `own[l]` is 1 where layer l = 0..L has a part of its own in the tangent kernel, else 0;
    `biases` the same for hidden biases; `prior` 1 where the weights of the last layer give f(0) a variance."""

    family: Family
    own: tuple[float, ...]
    biases: float
    prior: float


def limit_of(family: Any, parametrisation: Any, nngp: bool = True) -> Limit:
    """What is left of the family's kernels; an error where one of them, or a hidden layer, has no limit."""
    if not isinstance(family, Family):
        raise ValueError(f"family must be a wf.Family such as wf.MLP(d, depth), got {family!r}.")
    rule = named(parametrisation, family.depth)
    _check_layers(family)
    _check_sizes(family, rule)
    exponents = rule.kernel_layers()
    for i, exponent in enumerate(exponents):
        if exponent > TIE:
            raise ValueError(
                f"The tangent kernel has no limit under {_name(rule)}: the part of layer {i + 1} of "
                f"{len(exponents)} grows like n^{exponent:g}. Take its rate n^-c with a c that is {exponent:g} "
                'larger, or a parametrisation whose kernel stays of order 1, such as "ntk" or "standard".'
            )
    if nngp and rule.nngp_exponent > TIE:
        raise ValueError(
            f"f(0) has no limit under {_name(rule)}: it grows like n^{rule.nngp_exponent:g}. Take a + b = 1/2 "
            'or more in the last layer, or ask for the tangent kernel alone: InfiniteKernel(…, which="ntk").'
        )
    own = tuple(float(abs(exponent) <= TIE) for exponent in exponents)
    biases = own[0] if family.bias is not None else 0.0
    return Limit(family, own, biases, float(abs(rule.nngp_exponent) <= TIE))


def _name(rule: Parametrisation) -> str:
    return f"the parametrisation {rule.name!r}" if rule.name else repr(rule)


def _check_layers(family: Family) -> None:
    """φ acts on Gaussians, so on what comes out of a weight layer; only f has a width that does not grow."""
    gaussian, begun = True, False
    for layer in family.layers[:-1]:
        if isinstance(layer, Dense | Conv):
            if (layer.units if isinstance(layer, Dense) else layer.channels) is not None:
                raise ValueError(
                    f"{layer!r} keeps its width when n grows, so the network has no Gaussian limit. Leave its "
                    "width open: Dense(), Conv(window)."
                )
            gaussian, begun = True, True
        elif isinstance(layer, Elementwise) and begun:
            if not gaussian:
                raise ValueError(
                    f"{layer.activation.name} acts on what is not the output of a weight layer (another "
                    "activation came before it), which is not Gaussian at n = ∞. Make one activation of both."
                )
            gaussian = False


def _check_sizes(family: Family, rule: Parametrisation) -> None:
    """h_l must be of order 1; for a network that is homogeneous in each layer its size does not matter."""
    p = [a + b for a, b in zip(rule.a, rule.b, strict=True)]
    bad = [i for i, p_l in enumerate(p[:-1]) if abs(p_l - (0.5 if i else 0.0)) > TIE]
    if not bad or (family.bias is None and all(map(_homogeneous, _activations(family)))):
        return
    i = bad[0]
    right = "1/2" if i else "0"
    way = "vanishes" if p[i] > (0.5 if i else 0.0) else "diverges"
    raise ValueError(
        f"h_{i + 1} {way} as n grows under {_name(rule)}: a_{i + 1} + b_{i + 1} = {p[i]:g}, and only {right} has a "
        "limit (but for relu, leaky_relu and identity without biases). Shift a or b of that layer."
    )


def _activations(family: Family) -> list[Activation]:
    return [layer.activation for layer in family.layers if isinstance(layer, Elementwise)]


def _homogeneous(phi: Activation) -> bool:
    return phi.name in ("relu", "leaky_relu", "identity")
