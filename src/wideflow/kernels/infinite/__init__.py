"""Kernels of networks at n = ∞: NNGP and NTK."""
