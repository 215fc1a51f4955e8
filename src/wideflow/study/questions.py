"""The question that a study asks, which its verdict has to answer."""

from typing import Any

from ..spec.study import Spec
from ..verdicts import Question
from ..vocabulary.methods import Moves

ENERGIES: tuple[Question, ...] = ("convergence", "noise")  # whose answers look at the free energy
FEWEST = 50  # particles, for an entropy by neighbours


def question(spec: Spec) -> Question:
    """The one that the spec names, or what its dynamics suggest: starts of their own ask whether all come to
    the same end, several temperatures what the noise costs, networks at the scale of a limit how far they are
    from it; anything else asks for the regime."""
    if spec.question is not None:
        return spec.question
    methods: list[Any] = list(spec.dynamics)
    starts = {repr(method.start) for method in methods if method.start is not None}
    if len(starts) > 1:
        return "convergence"
    temperatures = {repr(method.beta) for method in methods if getattr(method, "beta", None) is not None}
    if len(temperatures) > 1:
        return "noise"
    limits = [method.alpha for method in methods if method.word.moves is Moves.LAW]
    trained = [method for method in methods if method.word.moves is not Moves.LAW]
    alone = all(_at_scale(method, limits) for method in trained)
    return "distance" if limits and trained and alone else "regime"


def _at_scale(method: Any, alphas: list[float]) -> bool:
    """Whether a method trains networks at the scales α of limits, and nothing else."""
    if method.word.moves is not Moves.NETWORK or method.word.frozen:
        return False
    if method.linearised or method.parametrisation is not None:
        return False
    return all(alpha in alphas for alpha in (method.alpha or [1.0]))
