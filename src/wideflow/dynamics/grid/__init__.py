"""Densities on a grid that move: finite volumes in θ, adaptive steps in t."""
