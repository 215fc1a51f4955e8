"""What an experiment is, and what it finds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a record of checks is read without JAX
    from ..diagnostics.scaling import Slope
    from ..run import Run

Say = Callable[[str], None]


@dataclass(frozen=True)
class Check:
    """One figure that was claimed, beside the figure measured."""

    what: str
    claimed: str
    measured: float
    error: float
    low: float
    high: float

    @property
    def passed(self) -> bool:
        return bool(self.low <= self.measured <= self.high)

    def __str__(self) -> str:
        verdict = "PASS" if self.passed else "FAIL"
        numbers = f"measured {self.measured:.4g} ± {self.error:.2g}, claimed {self.claimed}"
        return f"{verdict}  {self.what}: {numbers} (allowed {self.low:g} … {self.high:g})"


@dataclass(frozen=True)
class Outcome:
    """The checks of an experiment, and its figure."""

    checks: tuple[Check, ...]
    figure: Any

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


def finished(run: "Run") -> "Run":
    """The run, if it reached its end: there is no verdict on one that did not."""
    if run.status != "ok":
        raise RuntimeError(f"A run of the experiment ended as {run.status}: {run.message}")
    return run


def slope_check(what: str, slope: "Slope", claimed: float, tolerance: float) -> Check:
    """A power law's exponent, within a tolerance of the claimed one."""
    return Check(what, f"{claimed:+g}", slope.value, slope.error, claimed - tolerance, claimed + tolerance)
