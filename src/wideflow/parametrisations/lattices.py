"""All parametrisations on a lattice, each trained function once."""

import itertools
from collections.abc import Iterator

from .._checks import count, number, positive
from .parametrisation import Parametrisation


def lattice(
    depth: int = 2, step: float = 0.25, low: float = -1.0, high: float = 2.0
) -> Iterator[Parametrisation]:
    """Parametrisations with exponents in {low, low + step, …} up to `high`, no two of them equivalent.

    The symmetry brings all layers to one rate c, and the first to a_1 = b_1 = 0; b_l = ½ − a_l keeps the
    hidden layers at size 1, without which all are unstable. Free are a_2..a_{L+1}, b_{L+1} and c: depth + 2
    numbers. Depth 1 is the two-layer (A, B, C)."""
    depth, step = count("depth", depth), positive("step", step)
    low, high = number("low", low), number("high", high)
    if high < low:
        raise ValueError(f"lattice needs low <= high, got low = {low:g} and high = {high:g}.")
    size = int((high - low) / step + 1e-9) + 1  # `high` itself belongs to it, rounding or not
    values = [low + step * i for i in range(size)]
    return (
        Parametrisation((0.0, *a), (0.0, *(0.5 - a_l for a_l in a[:-1]), b), (c,) * (depth + 1))
        for *a, b, c in itertools.product(values, repeat=depth + 2)
    )
