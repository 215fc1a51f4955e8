"""Distances between measures."""
