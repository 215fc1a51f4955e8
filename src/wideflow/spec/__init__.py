"""A study as data: the typed model of a TOML file, and what can be wrong with one. Needs no JAX."""
