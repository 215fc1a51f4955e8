"""Kernel regression and classification on weighted data."""
