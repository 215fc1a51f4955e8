"""Runs that differ in their seed alone, and what they say together."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..diagnostics.alignment import rms
from ..run import Run
from .cases import Case

_TWENTIETH = 0.05


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its standard error; None with one seed."""

    value: float
    error: float | None

    @staticmethod
    def of(values: Any) -> "Estimate | None":
        """From one number a seed; None if there is none that is finite."""
        numbers = np.asarray([v for v in values if v is not None], float)
        if not numbers.size or not np.isfinite(numbers).all():
            return None
        error = float(numbers.std(ddof=1) / np.sqrt(numbers.size)) if numbers.size > 1 else None
        return Estimate(float(numbers.mean()), error)


@dataclass(frozen=True)
class Settled:
    """Where an observation has come to: its mean over the last quarter of the saved times, an error of it,
    and how far it is from the mean over the quarter before."""

    value: float
    error: float
    drift: float


@dataclass(frozen=True)
class Group:
    """All seeds of one method at one width and scale."""

    name: str
    cases: tuple[Case, ...]
    runs: tuple[Run, ...]

    @property
    def case(self) -> Case:
        return self.cases[0]

    @property
    def status(self) -> str:
        """ "ok" if all are, else the first other status."""
        return next((run.status for run in self.runs if run.status != "ok"), "ok")

    @property
    def whole(self) -> tuple[Run, ...]:
        """The runs that came to their end."""
        return tuple(run for run in self.runs if run.status == "ok")

    @property
    def shown(self) -> tuple[Run, ...]:
        """The runs that are drawn: those that came to their end, or all if none did."""
        return self.whole or self.runs

    def has(self, name: str) -> bool:
        return all(name in run for run in self.shown)

    def times(self) -> np.ndarray:
        """The saved times that all runs which are shown reached."""
        return min((run.t for run in self.shown), key=len)

    def values(self, name: str) -> np.ndarray:
        """(seeds, times) of a scalar observation, over these times; each replica of a run is a seed."""
        length = len(self.times())
        return np.concatenate([replicas(run, name)[:, :length] for run in self.shown])

    def end(self, name: str) -> Estimate | None:
        """The last value of a scalar observation, over the seeds that came to their end."""
        ends = [value for run in self.whole if name in run for value in replicas(run, name)[:, -1]]
        return Estimate.of(ends)

    def settled(self, name: str) -> Settled | None:
        """Where a scalar observation has come to. The error is one standard error over seeds; with a single
        seed it is the standard deviation in time, as values at neighbouring times are not independent."""
        values = [row for run in self.whole if name in run for row in replicas(run, name)]
        length = min(map(len, values), default=0)
        quarter = max(1, length // 4)
        last = np.array([row[length - quarter : length] for row in values])
        if not length or not np.isfinite(last).all():
            return None
        before = np.array([row[max(0, length - 2 * quarter) : length - quarter] for row in values])
        drift = float(last.mean() - before.mean()) if before.size and np.isfinite(before).all() else 0.0
        means = last.mean(axis=1)
        error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else last.std()
        return Settled(float(means.mean()), float(error), drift)

    def risk_gap(self, other: "Group") -> Estimate | None:
        """Largest |R(t) − R_other(t)| over t, run against run (see `pairs`), the other interpolated."""
        return Estimate.of([_largest_gap(run, reference) for run, reference in self.pairs(other)])

    def pairs(self, other: "Group") -> list[tuple[Run, Run]]:
        """Runs of both that came to their end and have the same seed; a limit has none, and goes with all."""
        by_seed = {c.seed: run for c, run in zip(other.cases, other.runs, strict=True) if run.status == "ok"}
        mine = [(c.seed, run) for c, run in zip(self.cases, self.runs, strict=True) if run.status == "ok"]
        if other.case.is_limit:
            return [(run, limit) for _, run in mine for limit in by_seed.values()]
        return [(run, by_seed[seed]) for seed, run in mine if seed in by_seed]

    def function_gap(self, other: "Group") -> Estimate | None:
        """Root mean square of f − f_other over the test points at the end, run against run."""
        if not (self.has("f") and other.has("f")):
            return None
        ended = [(run, reference) for run, reference in self.pairs(other) if _together(run, reference)[-1]]
        ends = [(run["f"][-1], reference["f"][-1]) for run, reference in ended]
        return Estimate.of([rms(f - g) for f, g in ends if f.shape == g.shape])


def replicas(run: Run, name: str) -> np.ndarray:
    """(r, times) of a scalar observation: one row a replica, r = 1 for a run that has none."""
    values = np.asarray(run[name], float)
    return values.reshape(len(values), -1).T


def _largest_gap(run: Run, other: Run) -> float:
    """max |R − R_other| over the times that both have, the mean over replicas, which are compared with the
    mean of the other's; NaN where there is no such time."""
    shared = _together(run, other)
    if not shared.any():
        return float("nan")
    reference = np.interp(run.t, other.t, replicas(other, "risk").mean(axis=0))
    return float(np.abs(replicas(run, "risk") - reference)[:, shared].max(axis=1).mean())


def _together(run: Run, other: Run) -> np.ndarray:
    """Which times of `run` the other has too, up to a twentieth of the time between two of its own: steps
    snap times, and farther off an interpolation would be seen instead of a gap."""
    if not len(run.t) or not len(other.t):
        return np.zeros(max(len(run.t), 1), bool)
    nearest = np.abs(run.t[:, None] - other.t).min(axis=1)
    spacing = np.diff(other.t).min() if len(other.t) > 1 else abs(other.t[0])
    return nearest <= _TWENTIETH * spacing + 1e-9 * abs(other.t[-1])


def grouped(cases: tuple[Case, ...], runs: dict[str, Run]) -> list[Group]:
    """The groups of all runs that there are, in the order of the spec."""
    names = dict.fromkeys(case.group for case in cases if case.slug in runs)
    members = {name: tuple(c for c in cases if c.group == name and c.slug in runs) for name in names}
    return [Group(name, mine, tuple(runs[case.slug] for case in mine)) for name, mine in members.items()]
