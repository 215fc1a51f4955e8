"""What a distance returns: the number, its error, and how it was computed."""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Distance:
    """A distance between two measures.

    `error` bounds or, where `method` says so, estimates how far `value` is from the distance of the measures
    that were given: rounding (also that of the numbers themselves, where they come in single precision), an
    unfinished solver, cells taken as atoms. That clouds are draws of some law
    is not an error of the number; only `wf.distances.mmd` estimates its effect, as `standard_error`. `square`
    is what `value` is the root of: an unbiased estimate of it may be negative, and then `value` is 0."""

    value: float
    error: float
    method: str
    square: float
    standard_error: float | None = None

    def widened(self, moved: float, slack: float) -> "Distance":
        """With a distance that may be off by `moved` more, and a square that may be off by `slack` more."""
        return replace(self, error=self.error + moved + rooted(self.square, slack)[1])

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.6g} ± {self.error:.1g} ({self.method})"


def rooted(square: float, slack: float) -> tuple[float, float]:
    """√square and its error, for a square known up to `slack`: |w − w'| = |w² − w'²|/(w + w'), which is at
    most slack/w, and at most √slack."""
    value = math.sqrt(max(square, 0.0))
    return value, min(math.sqrt(slack), slack / value) if value > 0 else math.sqrt(slack)
