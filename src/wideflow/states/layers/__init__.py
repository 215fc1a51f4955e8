"""Layers of a network, one per file: each defines all that is needed of it, at finite width and at n = ∞."""

from .average_pool import AveragePool
from .base import AbstractLayer, AbstractStep, AbstractUnary, AbstractUnweighted, AbstractWeighted, Shape
from .conv import Conv
from .covariance import AbstractRecursion, Randomness, Tables
from .dense import Dense
from .elementwise import Elementwise
from .flatten import Flatten
from .forward import Forward, Weights
from .global_average import GlobalAverage
from .residual import Residual

__all__ = [
    "AbstractLayer",
    "AbstractRecursion",
    "AbstractStep",
    "AbstractUnary",
    "AbstractUnweighted",
    "AbstractWeighted",
    "AveragePool",
    "Conv",
    "Dense",
    "Elementwise",
    "Flatten",
    "Forward",
    "GlobalAverage",
    "Randomness",
    "Residual",
    "Shape",
    "Tables",
    "Weights",
]
