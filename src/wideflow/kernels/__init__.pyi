"""The public names and where they live."""

from .empirical.ntk import empirical_ntk
from .infinite.kernels import InfiniteKernel, infinite_kernels
from .machines.classification import KernelClassifier, kernel_classifier
from .machines.regression import KernelRegressor, kernel_regression, select_ridge
from .operator import KernelOperator, MatrixOperator
from .states import KernelFunction, Linearisation
from .tangent import tangent_kernel, tangent_kernels

__all__ = [
    "InfiniteKernel",
    "KernelClassifier",
    "KernelFunction",
    "KernelOperator",
    "KernelRegressor",
    "Linearisation",
    "MatrixOperator",
    "empirical_ntk",
    "infinite_kernels",
    "kernel_classifier",
    "kernel_regression",
    "select_ridge",
    "tangent_kernel",
    "tangent_kernels",
]
