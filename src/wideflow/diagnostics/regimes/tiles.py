"""A kernel of more rows than fit in memory at once, from kernels of two tiles of them at a time."""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np


class Kernels(NamedTuple):
    """The kernel of each of the weights by name, (m, m), and the terms of their sum, (s, m, m): one for each
    projection of the outputs, or for all of them."""

    parts: dict[str, np.ndarray]
    terms: np.ndarray


def pairs_of_tiles(m: int, batch: int) -> list[np.ndarray]:
    """Rows that are taken at once: all of m, or every pair of tiles of half a batch."""
    if m <= batch:
        return [np.arange(m)]
    half = max(1, batch // 2)
    tiles = [np.arange(i, min(m, i + half)) for i in range(0, m, half)]
    return [np.concatenate(pair) for pair in combinations(tiles, 2)]


def in_tiles(kernels: Callable[[np.ndarray], Kernels], m: int, batch: int) -> Kernels:
    """kernels(rows) put together over pairs of tiles of rows."""
    groups = pairs_of_tiles(m, batch)
    if len(groups) == 1:
        return kernels(groups[0])
    whole: Kernels | None = None
    for rows in groups:
        part = kernels(rows)
        if whole is None:
            empty = {name: np.zeros((m, m)) for name in part.parts}
            whole = Kernels(empty, np.zeros((len(part.terms), m, m)))
        place = np.ix_(rows, rows)
        for name, K in part.parts.items():
            whole.parts[name][place] = K
        for term, K in zip(whole.terms, part.terms, strict=True):
            term[place] = K
    assert whole is not None
    return whole
