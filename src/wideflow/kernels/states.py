"""The states that a fixed kernel moves."""

from ..states.kernel_function import KernelFunction
from ..states.linearisation import Linearisation

__all__ = ["KernelFunction", "Linearisation"]
