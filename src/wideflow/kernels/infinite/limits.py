"""What is left of a network's kernels at n = ∞: the exponents of its parametrisation as zeros and ones."""

from dataclasses import dataclass

from ..._shown import shown
from ...parametrisations import Parametrisation, named
from ...states.family import Family, is_family
from ...states.layers import Randomness
from ...verdicts import TIE


@dataclass(frozen=True)
class Limit:
    """A family at n = ∞. `own[l]`, l = 0..L, is 1 where weight layer l has a part in the tangent kernel, else
    0; `biases` the same of hidden biases; `prior` is 1 where the last layer's weights give f(0) a
    variance."""

    family: Family
    own: tuple[float, ...]
    biases: float
    prior: float


def limit_of(family: object, parametrisation: str | Parametrisation, nngp: bool = True) -> Limit:
    """What is left; an error where the tangent kernel, f(0) (if asked for) or a hidden layer has no limit."""
    if not is_family(family):
        raise ValueError(f"family must be a wf.Family such as wf.MLP(d, depth), got {shown(family)}.")
    rule = named(parametrisation, family.depth)
    _check_layers(family)
    _check_sizes(family, rule)
    exponents, f0 = rule.kernel_layers(), rule.nngp_exponent
    for i, exponent in enumerate(exponents):
        if exponent > TIE:
            raise ValueError(
                f"The tangent kernel has no limit under {_name(rule)}: the part of layer {i + 1} of "
                f"{len(exponents)} grows like n^{exponent:g}. Take a rate n^-c of that layer whose c is "
                f'{exponent:g} larger, or a parametrisation such as "ntk" or "standard".'
            )
    if nngp and f0 > TIE:
        raise ValueError(
            f"f(0) has no limit under {_name(rule)}: it grows like n^{f0:g}. Take a + b >= 1/2 in the last "
            'layer, or ask for the tangent kernel alone: InfiniteKernel(…, which="ntk").'
        )
    own = tuple(float(exponent >= -TIE) for exponent in exponents)
    return Limit(family, own, 0.0 if family.bias is None else own[0], float(f0 >= -TIE))


def _name(rule: Parametrisation) -> str:
    return f"the parametrisation {shown(rule.name)}" if rule.name else repr(rule)


def _check_layers(family: Family) -> None:
    """φ acts on Gaussians, so on what comes out of a weight layer; all widths but that of f grow."""
    stack: tuple[Randomness, ...] = (Randomness(gaussian=True, fresh=True),)
    for step in family.steps[first_weighted(family) : -1]:
        stack = step.pass_randomness(stack)


def first_weighted(family: Family) -> int:
    """The index of the first step with weights."""
    return next(i for i, step in enumerate(family.steps) if step.as_weighted() is not None)


def _check_sizes(family: Family, rule: Parametrisation) -> None:
    """h_l must be of order 1; in a network that is homogeneous layer by layer its size does not matter."""
    p = [a + b for a, b in zip(rule.a, rule.b, strict=True)]
    bad = [i for i, p_l in enumerate(p[:-1]) if abs(p_l - _right(i)) > TIE]
    homogeneous = family.bias is None and all(step.homogeneous for step in family.steps)
    if not bad or homogeneous:
        return
    i = bad[0]
    raise ValueError(
        f"h_{i + 1} {'vanishes' if p[i] > _right(i) else 'diverges'} as n grows under {_name(rule)}: "
        f"a_{i + 1} + b_{i + 1} = {p[i]:g}. Take {_right(i):g} there (relu, leaky_relu and identity "
        "without biases or residual blocks need not)."
    )


def _right(i: int) -> float:
    """a + b of hidden layer i that keeps h of order 1."""
    return 0.5 if i else 0.0
