"""Dynamics: how a state moves in time. One method per file."""
