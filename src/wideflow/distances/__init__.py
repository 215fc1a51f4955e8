"""Distances between measures: `w2` chooses among the ways to W2, one a file; `mmd` beside it."""
