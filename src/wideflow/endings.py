"""Which replicas of a run are still running, and how the others ended."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

Status = Literal["ok", "diverged", "stalled", "interrupted", "running"]


class EndedWarning(UserWarning):
    """A run diverged or stalled; its status and message say so too."""


@dataclass(frozen=True)
class Ending:
    """How a replica ended before the run did: its status, what to change, how many saved times it reached."""

    status: Status
    message: str
    rows: int


@dataclass
class Endings:
    """`alive` has one truth value per replica (a single one for a run without replicas)."""

    alive: np.ndarray
    ended: dict[int, Ending] = field(default_factory=dict)

    @classmethod
    def of(cls, replicas: int | None, ended: dict[int, Ending] | None = None) -> "Endings":
        """All alive but those that have ended."""
        endings = cls(np.ones(() if replicas is None else replicas, bool), dict(ended or {}))
        for r in endings.ended:
            endings.alive[r] = False
        return endings

    def lost(self, bad: ArrayLike) -> np.ndarray:
        """The numbers of those alive that `bad` holds for; a run without replicas has the number 0."""
        return np.flatnonzero(self.alive & np.asarray(bad))

    def end(self, replicas: np.ndarray, ending: Ending) -> None:
        """These replicas go no further."""
        for r in replicas:
            self.ended[int(r)] = ending
            if self.alive.ndim:
                self.alive[r] = False
            else:
                self.alive = np.zeros((), bool)

    def only_alive(self, value: np.ndarray) -> np.ndarray:
        """An observation with NaN for replicas that have ended."""
        if self.alive.all() or value.dtype.kind != "f":
            return value
        return np.where(
            self.alive.reshape(self.alive.shape + (1,) * (value.ndim - self.alive.ndim)), value, np.nan
        )

    def verdict(self) -> tuple[Status, str]:
        """Status and message of the whole: that of the run itself, or a count of replicas that ended."""
        if not self.ended:
            return "ok", ""
        first = min(self.ended.values(), key=lambda ending: (ending.status, ending.rows))
        if not self.alive.ndim:
            return first.status, first.message
        sentences = []
        for status in ("diverged", "stalled"):
            which = sorted(r for r, ending in self.ended.items() if ending.status == status)
            if which:
                listed = ", ".join(map(str, which[:8])) + (", …" if len(which) > 8 else "")
                sentences.append(f"{len(which)} of {self.alive.size} replicas {status} ({listed}).")
        return first.status, " ".join([*sentences, first.message])
