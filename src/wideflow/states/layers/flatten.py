"""Images as vectors."""

import math
from dataclasses import dataclass

from jaxtyping import Array

from ...store.registry import recorded
from .base import AbstractUnweighted
from .covariance import Tables, diagonal
from .equality import labels_of


@dataclass(frozen=True)
class Flatten(AbstractUnweighted):
    """All positions of an image side by side."""

    def shape(self, inputs, n):
        return (math.prod(inputs),)

    def apply(self, x):
        return x.reshape(x.shape[0], -1)

    def covariance(self, tables, at):
        return Tables(*(self._mean(table, at.lead) for table in tables))

    def _mean(self, table: Array, lead: int) -> Array:
        """Over p = p': a sum over units is one over channels and positions."""
        table = diagonal(table) if table.ndim == lead + 4 else table
        return table.mean(tuple(range(lead, table.ndim)))

    def label(self, label):
        return labels_of(label.reshape(len(label), -1))


recorded(Flatten)
