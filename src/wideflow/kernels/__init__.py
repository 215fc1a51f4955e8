"""Kernels of networks, and machines made of them."""
