"""What the runs of a study hold, in bytes."""

import numpy as np

from ..problems.problem import Problem
from ..spec.study import Spec
from ..states.family import Family, is_family
from ..states.starts import Law
from .cases import Case


def itemsize(spec: Spec) -> int:
    """Bytes of a number."""
    return 8 if spec.precision == "float64" else 4


def weights(case: Case, start: Law | Family, problem: Problem) -> float:
    """Numbers in the network, or in the cells of a density with their places."""
    if is_family(start):
        return float(sum(np.prod(shape, dtype=float) for shape in start.weight_shapes(case.neurons)))
    return float(case.neurons) * problem.D


def kept(spec: Spec, case: Case, start: Law | Family, problem: Problem, times: int) -> float:
    """What a run keeps at its saved times: snapshots, if it has some, and what is observed."""
    observe = spec.observe
    observed = observe.test * problem.neuron.outputs + 3 * observe.particles
    state = weights(case, start, problem) if observe.snapshots else 0.0
    return times * (observed + state) * itemsize(spec)
