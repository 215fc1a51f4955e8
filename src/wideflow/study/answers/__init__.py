"""The verdict of a study: one sentence that answers its question with numbers, and a list behind it."""

from collections.abc import Callable

from ..._data import Data
from ...verdicts import Question
from .base import Answer
from .convergence import convergence
from .distance import distance
from .noise import noise
from .regime import regime

_ANSWERS: dict[Question, Callable[[list[Data]], Answer]] = {
    "regime": regime,
    "convergence": convergence,
    "distance": distance,
    "noise": noise,
}


def answer(question: Question, rows: list[Data]) -> Answer:
    """The answer to a question from the rows of `results`, one for each group of seeds."""
    networks = [row for row in rows if row["width"] is not None and not row["linearised"]]
    if networks and not any(row["ended"] for row in networks):
        return Answer("There is no verdict: no network came to its end.")
    return _ANSWERS[question](rows)
