"""The public names and where they live."""

from .checkpoint import Checkpoint
from .diagnostics.balance import Balance
from .diagnostics.coupled import Coupled, coupled
from .diagnostics.density import density
from .diagnostics.dissipation import DissipationRate, dissipation
from .diagnostics.observers import EnergyOf, distance_to, mass, second_moment
from .diagnostics.rates import decay_rate, guaranteed_rate, log_sobolev_constant
from .diagnostics.regime.report import RegimeReport, regime
from .diagnostics.scaling import fit_slope
from .diagnostics.weak_form import weak_form
from .diagnostics.widths.report import WidthReport, width_check
from .distances.bures import w2_gaussian
from .distances.distance import Distance
from .distances.mmd import mmd
from .distances.one_dimension import w2_line
from .distances.sliced import sliced_w2
from .distances.w2 import w2
from .dynamics.birth_death import BirthDeath
from .dynamics.descent import Descent
from .dynamics.fisher_rao import FisherRao
from .dynamics.flow import GradientFlow
from .dynamics.gradient_descent import GradientDescent
from .dynamics.grid.flow import GridFlow
from .dynamics.jko.jko import JKO
from .dynamics.kernel_flow import KernelFlow
from .dynamics.langevin import Langevin
from .dynamics.linearised import Linearised
from .dynamics.optax import Adam, Optax
from .dynamics.schedules import Annealing
from .dynamics.sgd import SGD
from .dynamics.stability import largest_stable_step
from .dynamics.wasserstein_fisher_rao import WassersteinFisherRao
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
from .mean_field.gibbs import Gibbs, gibbs
from .mean_field.limit import limit
from .mean_field.stationary import GibbsCloud
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
    "JKO",
    "MLP",
    "SGD",
    "Activation",
    "Adam",
    "Annealing",
    "AveragePool",
    "Balance",
    "BirthDeath",
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
    "DissipationRate",
    "Distance",
    "Elementwise",
    "EnergyOf",
    "Entropy",
    "Family",
    "FisherRao",
    "Flatten",
    "FreeEnergy",
    "Gaussian",
    "Gibbs",
    "GibbsCloud",
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
    "WassersteinFisherRao",
    "WidthReport",
    "activation",
    "compare",
    "coupled",
    "decay_rate",
    "density",
    "dissipation",
    "distance_to",
    "empirical_ntk",
    "evolve",
    "fit_slope",
    "gibbs",
    "guaranteed_rate",
    "hermite",
    "infinite_kernels",
    "init",
    "kernel_classifier",
    "kernel_regression",
    "largest_stable_step",
    "lift",
    "limit",
    "load",
    "log_sobolev_constant",
    "mass",
    "mmd",
    "multi_index",
    "on_grid",
    "polynomial",
    "read_dataset",
    "reduce",
    "regime",
    "second_moment",
    "select_ridge",
    "single_index",
    "sliced_w2",
    "tangent_kernel",
    "tangent_kernels",
    "teacher",
    "two_gaussians",
    "w2",
    "w2_gaussian",
    "w2_line",
    "weak_form",
    "width_check",
]
