"""Classes of what functions take, return or raise, for annotations, isinstance and except."""

from .mean_field.result import Gibbs
from .problems.activations import Activation
from .problems.nodes import Nodes
from .problems.symmetry import NoSymmetryError
from .report.comparison import Comparison
from .states.network import Network

__all__ = ["Activation", "Comparison", "Gibbs", "Network", "NoSymmetryError", "Nodes"]
