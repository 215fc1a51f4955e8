"""The public names and where they live."""

from . import diagnostics, distances, kernels, laws, layers, losses, types
from .checkpoint import Checkpoint
from .diagnostics.regimes.report import regime
from .diagnostics.widths.report import width_check
from .distances.wasserstein import w2
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
from .functionals.entropy import Entropy
from .functionals.expectations import ClosedForm, Data, Quadrature, Sample
from .functionals.free_energy import FreeEnergy
from .functionals.penalties import Moment, PathNorm, SecondMoment
from .functionals.risk import Risk
from .kernels.empirical.ntk import empirical_ntk
from .kernels.infinite.kernels import infinite_kernels
from .kernels.tangent import tangent_kernel
from .loop import evolve
from .mean_field.gibbs import gibbs
from .mean_field.limit import limit
from .parametrisations import Parametrisation
from .problems.activations import activation
from .problems.laws import Dataset, Gaussian, Mixture, Sphere, two_gaussians
from .problems.neurons import CustomNeuron, Neuron
from .problems.problem import Problem
from .problems.tables import read_dataset
from .problems.targets import hermite, multi_index, polynomial, single_index, teacher
from .report.comparison import compare
from .run import Run
from .salvage import load
from .states.family import CNN, MLP, Family
from .states.grid import GridDensity
from .states.gridding import on_grid
from .states.lifting import lift, reduce
from .states.particles import Particles
from .states.replicas import stack
from .states.starts import Law, init
from .store.naming import named
from .store.registry import register

__version__: str

__all__ = [
    "CNN",
    "JKO",
    "MLP",
    "SGD",
    "Adam",
    "Annealing",
    "BirthDeath",
    "Checkpoint",
    "ClosedForm",
    "CustomNeuron",
    "Data",
    "Dataset",
    "Descent",
    "Entropy",
    "Family",
    "FisherRao",
    "FreeEnergy",
    "Gaussian",
    "GradientDescent",
    "GradientFlow",
    "GridDensity",
    "GridFlow",
    "KernelFlow",
    "Langevin",
    "Law",
    "Linearised",
    "Mixture",
    "Moment",
    "Neuron",
    "Optax",
    "Parametrisation",
    "Particles",
    "PathNorm",
    "Problem",
    "Quadrature",
    "Risk",
    "Run",
    "Sample",
    "SecondMoment",
    "Sphere",
    "WassersteinFisherRao",
    "activation",
    "compare",
    "diagnostics",
    "distances",
    "empirical_ntk",
    "evolve",
    "gibbs",
    "hermite",
    "infinite_kernels",
    "init",
    "kernels",
    "largest_stable_step",
    "laws",
    "layers",
    "lift",
    "limit",
    "load",
    "losses",
    "multi_index",
    "named",
    "on_grid",
    "polynomial",
    "read_dataset",
    "reduce",
    "regime",
    "register",
    "single_index",
    "stack",
    "tangent_kernel",
    "teacher",
    "two_gaussians",
    "types",
    "w2",
    "width_check",
]
