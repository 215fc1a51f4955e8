"""The average over an image."""

from dataclasses import dataclass

from ...store.registry import recorded
from .base import AbstractUnweighted
from .covariance import Tables
from .equality import labels_of


@dataclass(frozen=True)
class GlobalAverage(AbstractUnweighted):
    """The mean over all positions of an image."""

    averages = True

    def shape(self, inputs, n):
        if len(inputs) != 3:
            raise ValueError(f"GlobalAverage needs an image (height, width, channels), got {inputs}.")
        return (inputs[-1],)

    def apply(self, x):
        return x.mean((1, 2))

    def covariance(self, tables, at):
        return Tables(*(table.mean(tuple(range(at.lead, table.ndim))) for table in tables))

    def label(self, label):
        return labels_of(label.reshape(len(label), -1))


recorded(GlobalAverage)
