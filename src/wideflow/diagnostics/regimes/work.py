"""Both kernels of a model by a plan, which is told before it starts where it is long, with progress."""

import sys
from contextlib import suppress

import numpy as np

from ...progress import bar
from .model import AbstractModel
from .plan import Groups, KernelPlan
from .tiles import Kernels, in_tiles, pairs_of_tiles

_TOLD = 10.0  # seconds
_SHOWN = 2.0


class Work:
    """The kernels before and after training; `seconds` were taken by f on all rows, from which the time is
    estimated."""

    def __init__(
        self, model: AbstractModel, plan: KernelPlan, groups: Groups, seconds: float, progress: bool | None
    ):
        self.plan = plan
        self._model, self._groups, self._progress = model, groups, progress
        forward = 2.0 * model.m * sum(t * f * u for t, f, u in model.layers())
        self.seconds = seconds * plan.operations / forward if forward else 0.0

    def kernels(self, rows: np.ndarray) -> list[Kernels]:
        """Of the weights before and after, on those rows."""
        self._tell()
        tiles = len(pairs_of_tiles(len(rows), self.plan.batch))
        end, done = float(2 * tiles * self.plan.projections), 0
        show = self._progress if self._progress is not None or self.seconds > _SHOWN else False
        with bar("kernels", 0.0, end, show, unit="pass") as update:

            def step() -> None:
                nonlocal done
                done += 1
                update(float(done))

            def of(when: int) -> Kernels:
                kernels = lambda part: self._model.kernels(when, rows[part], self._groups, step)
                return in_tiles(kernels, len(rows), self.plan.batch)

            return [of(0), of(1)]

    def _tell(self) -> None:
        if self.seconds < _TOLD or self._progress is False:
            return
        plan = self.plan
        outputs = f"{plan.projections} projections of the" if plan.is_sketch else "all"
        with suppress(OSError):
            print(
                f"wf.regime: two kernels of {plan.rows} rows by {outputs} {plan.outputs} outputs, about "
                f"{self.seconds:.0f} s and {plan.bytes / 2**20:.0f} MiB ({plan.gradients:.0f} gradients "
                "of these rows). Fewer rows= or projections= are faster.",
                file=sys.stderr,
                flush=True,
            )
