"""Averages over windows of an image."""

from dataclasses import dataclass

from jaxtyping import Array

from ..._checks import count
from ...store.registry import recorded
from .base import AbstractUnweighted
from .covariance import Tables
from .equality import window_labels


@dataclass(frozen=True)
class AveragePool(AbstractUnweighted):
    """The mean over windows that do not overlap."""

    window: int = 2

    averages = True

    def __post_init__(self):
        count("AveragePool(window)", self.window)

    def shape(self, inputs, n):
        fits = len(inputs) == 3 and inputs[0] % self.window == 0 and inputs[1] % self.window == 0
        if not fits:
            raise ValueError(
                f"AveragePool({self.window}) needs an image whose sides {self.window} divides, got {inputs}."
            )
        return (inputs[0] // self.window, inputs[1] // self.window, inputs[2])

    def apply(self, x):
        m, h, w, c = x.shape
        tiles = x.reshape(m, h // self.window, self.window, w // self.window, self.window, c)
        return tiles.mean((2, 4))

    def covariance(self, tables, at):
        return Tables(*(self._mean(table, at.lead) for table in tables))

    def _mean(self, table: Array, lead: int) -> Array:
        """Over the windows of p and of p'."""
        shape = list(table.shape[:lead])
        for side in table.shape[lead:]:
            shape += [side // self.window, self.window]
        return table.reshape(shape).mean(tuple(range(lead + 1, len(shape), 2)))

    def label(self, label):
        return window_labels(label, self.window, self.window, [(0, 0), (0, 0)])


recorded(AveragePool)
