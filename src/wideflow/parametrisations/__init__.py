"""Parametrisations (a, b, c) as values: multipliers, start sizes and rates as powers of the width n."""

from .exponents import Exponents
from .lattices import lattice
from .names import ANY_DEPTH, named
from .parametrisation import Parametrisation
from .regimes import Regime

__all__ = ["ANY_DEPTH", "Exponents", "Parametrisation", "Regime", "lattice", "named"]
