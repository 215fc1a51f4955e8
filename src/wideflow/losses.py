"""Losses of a `wf.Problem`, which takes the name of one too: loss="logistic"."""

from .problems.losses import Huber, Logistic, SoftmaxCrossEntropy, Squared

__all__ = ["Huber", "Logistic", "SoftmaxCrossEntropy", "Squared"]
