"""The public names and where they live."""

from .checkpoint import Checkpoint
from .diagnostics.coupled import Coupled, coupled
from .diagnostics.density import density
from .diagnostics.regime.report import RegimeReport, regime
from .diagnostics.scaling import fit_slope
from .diagnostics.widths.report import WidthReport, width_check
from .distances.bures import w2_gaussian
from .distances.one_dimension import w2_line
from .dynamics.descent import Descent
from .dynamics.flow import GradientFlow
from .dynamics.gradient_descent import GradientDescent
from .dynamics.grid.flow import GridFlow
from .dynamics.kernel_flow import KernelFlow
from .dynamics.langevin import Langevin
from .dynamics.linearised import Linearised
from .dynamics.optax import Adam, Optax
from .dynamics.sgd import SGD
from .dynamics.stability import largest_stable_step
from .functionals.entropy import Entropy, FreeEnergy
from .functionals.expectations import ClosedForm, Data, Quadrature, Sample
from .functionals.penalties import Moment, PathNorm, SecondMoment
from .functionals.risk import Risk
from .kernels.empirical.ntk import empirical_ntk
from .kernels.infinite.kernels import InfiniteKernel, infinite_kernels
from .kernels.machines.classification import KernelClassifier, kernel_classifier
from .kernels.machines.regression import KernelRegressor, kernel_regression, select_ridge
from .kernels.operator import KernelOperator, MatrixOperator
from .kernels.tangent import tangent_kernel, tangent_kernels
from .loop import evolve
from .mean_field.limit import limit
from .parametrisations import Parametrisation
from .problems.activations import Activation, activation
from .problems.laws import Dataset, Gaussian, Mixture, Sampler, Sphere, two_gaussians
from .problems.losses import Huber, Logistic, SoftmaxCrossEntropy, Squared
from .problems.neurons import CustomNeuron, Neuron
from .problems.nodes import Nodes
from .problems.problem import Problem
from .problems.symmetry import NoSymmetryError
from .problems.tables import read_dataset
from .problems.targets import hermite, multi_index, polynomial, single_index, teacher
from .report.comparison import Comparison, compare
from .run import Run, load
from .states.family import CNN, MLP, Family
from .states.grid import GridDensity
from .states.gridding import on_grid
from .states.kernel_function import KernelFunction
from .states.layers import AveragePool, Conv, Dense, Elementwise, Flatten, GlobalAverage
from .states.lifting import lift, reduce
from .states.linearisation import Linearisation
from .states.marginals import Constant, Normal, Signs, Uniform
from .states.network import Network
from .states.particles import Particles
from .states.starts import Law, init

__version__: str

__all__ = [
    "CNN",
    "MLP",
    "SGD",
    "Activation",
    "Adam",
    "AveragePool",
    "Checkpoint",
    "ClosedForm",
    "Comparison",
    "Constant",
    "Conv",
    "Coupled",
    "CustomNeuron",
    "Data",
    "Dataset",
    "Dense",
    "Descent",
    "Elementwise",
    "Entropy",
    "Family",
    "Flatten",
    "FreeEnergy",
    "Gaussian",
    "GlobalAverage",
    "GradientDescent",
    "GradientFlow",
    "GridDensity",
    "GridFlow",
    "Huber",
    "InfiniteKernel",
    "KernelClassifier",
    "KernelFlow",
    "KernelFunction",
    "KernelOperator",
    "KernelRegressor",
    "Langevin",
    "Law",
    "Linearisation",
    "Linearised",
    "Logistic",
    "MatrixOperator",
    "Mixture",
    "Moment",
    "Network",
    "Neuron",
    "NoSymmetryError",
    "Nodes",
    "Normal",
    "Optax",
    "Parametrisation",
    "Particles",
    "PathNorm",
    "Problem",
    "Quadrature",
    "RegimeReport",
    "Risk",
    "Run",
    "Sample",
    "Sampler",
    "SecondMoment",
    "Signs",
    "SoftmaxCrossEntropy",
    "Sphere",
    "Squared",
    "Uniform",
    "WidthReport",
    "activation",
    "compare",
    "coupled",
    "density",
    "empirical_ntk",
    "evolve",
    "fit_slope",
    "hermite",
    "infinite_kernels",
    "init",
    "kernel_classifier",
    "kernel_regression",
    "largest_stable_step",
    "lift",
    "limit",
    "load",
    "multi_index",
    "on_grid",
    "polynomial",
    "read_dataset",
    "reduce",
    "regime",
    "select_ridge",
    "single_index",
    "tangent_kernel",
    "tangent_kernels",
    "teacher",
    "two_gaussians",
    "w2_gaussian",
    "w2_line",
    "width_check",
]
