"""The public names and where they live."""

from .balance import Balance
from .coupling import Coupled, coupled
from .dissipated import DissipationRate, dissipation
from .observers import EnergyOf, distance_to, mass, second_moment
from .rates import decay_rate, guaranteed_rate, log_sobolev_constant
from .regimes.report import RegimeReport, regime
from .scaling import fit_slope
from .smoothing import density
from .weak_equation import weak_form
from .widths.report import WidthReport, width_check

__all__ = [
    "Balance",
    "Coupled",
    "DissipationRate",
    "EnergyOf",
    "RegimeReport",
    "WidthReport",
    "coupled",
    "decay_rate",
    "density",
    "dissipation",
    "distance_to",
    "fit_slope",
    "guaranteed_rate",
    "log_sobolev_constant",
    "mass",
    "regime",
    "second_moment",
    "weak_form",
    "width_check",
]
