"""The public names and where they live."""

from .bures import w2_gaussian
from .discrepancy import mmd, mmd_squared
from .distance import Distance
from .one_dimension import w2_line
from .sliced import sliced_w2
from .wasserstein import w2

__all__ = [
    "Distance",
    "mmd",
    "mmd_squared",
    "sliced_w2",
    "w2",
    "w2_gaussian",
    "w2_line",
]
