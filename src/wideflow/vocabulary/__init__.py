"""The words of the library, each defined once: name, formula, options with defaults, papers, and what makes
it.

Plain data without JAX or pydantic. Specs, their schema and reference, reports and constructors read from
here, so that a new activation, loss or method is a file of its own and one row in one of these tables.
"""
