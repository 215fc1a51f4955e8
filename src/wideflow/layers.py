"""Layers of a `wf.Family`."""

from .states.layers import AveragePool, Conv, Dense, Elementwise, Flatten, GlobalAverage, Residual

__all__ = ["AveragePool", "Conv", "Dense", "Elementwise", "Flatten", "GlobalAverage", "Residual"]
