"""Laws: of x, and of the coordinates of θ at the start."""

from .problems.laws import Dataset, Gaussian, Mixture, Sampler, Sphere, two_gaussians
from .states.marginals import Constant, Normal, Rademacher, Uniform

__all__ = [
    "Constant",
    "Dataset",
    "Gaussian",
    "Mixture",
    "Normal",
    "Rademacher",
    "Sampler",
    "Sphere",
    "Uniform",
    "two_gaussians",
]
