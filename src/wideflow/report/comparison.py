"""Several runs side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .._shown import shown
from ..figures import COLOURS, DASHES, line, panels
from ..notebook import html
from ..run import Run
from ..store.pictures import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Comparison:
    """Runs by name; the first is what the others are measured against."""

    runs: dict[str, Run]

    def gap(self, name: str) -> np.ndarray:
        """|R(t) − R_first(t)| at the times of the run `name`, the first interpolated in time: (T,), or (T, r)
        for a run with r replicas. If the first run has replicas, their mean is the reference."""
        first = next(iter(self.runs.values()))
        run = self.runs[name]
        risk, reference = np.asarray(run["risk"], float), np.asarray(first["risk"], float)
        reference = np.interp(run.t, first.t, reference.reshape(len(first.t), -1).mean(axis=1))
        shared = np.where(run.t <= first.t[-1] * (1 + 1e-9), 0.0, np.nan)
        column = (-1, *(1,) * (risk.ndim - 1))
        return np.abs(risk - reference.reshape(column)) + shared.reshape(column)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        """(head, rows): status, width, end, risk (the mean over replicas), largest gap to the first."""
        first = next(iter(self.runs))
        head = ["run", "method", "status", "width", "α", "t", "risk at t", f"largest gap to {first}"]
        rows = []
        for name, run in self.runs.items():
            method = run.provenance["dynamics"].get("name", "")
            gap = "" if name == first else f"{np.nanmax(self.gap(name)):.2e}"
            width = "∞" if "resolution" in run.info else str(getattr(run.final, "n", ""))
            alpha = f"{float(np.mean(run.final.alpha)):.3g}" if hasattr(run.final, "alpha") else ""
            end = [f"{run.t[-1]:.4g}", f"{np.mean(run['risk'][-1]):.4e}", gap]
            rows.append([name, method, run.status, width, alpha, *end])
        return head, rows

    def table(self) -> str:
        """One line per run, in Markdown: status, width, end, risk, largest gap to the first."""
        head, rows = self._rows()
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        line = lambda row: "| " + " | ".join(v.ljust(w) for v, w in zip(row, widths, strict=True)) + " |"
        rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
        return "\n".join([line(head), rule, *(line(row) for row in rows)])

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Risk against time, and the gaps to the first run, with bands over replicas; written to `path` if
        one is given."""
        names = list(self.runs)
        with panels(2 if len(names) > 1 else 1) as (figure, axes):
            for i, (name, run) in enumerate(self.runs.items()):
                style = {"color": COLOURS[i % len(COLOURS)], "ls": DASHES[i % len(DASHES)]}
                line(axes[0], run.t, run["risk"], label=name, **style)
                if i:
                    line(axes[1], run.t, self.gap(name), label=name, **style)
            axes[0].set(xlabel="time t", ylabel="risk R", yscale="log")
            axes[0].legend()
            if len(names) > 1:
                axes[1].set(xlabel="time t", ylabel=f"|R − R of {names[0]}|", yscale="log")
                axes[1].legend()
            if path is not None:
                save(figure, path)
        return figure

    def __repr__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """What a notebook shows: the table, the risks, and the neurons as they move."""
        return html(self.runs, *self._rows())


def compare(**runs: Run) -> Comparison:
    """Set runs side by side, by name: `compare(limit=…, net=…).plot("figure.png")`.

    >>> runs = [wf.evolve(dynamics(R, step=0.01), net, ts) for dynamics in (wf.GradientDescent, wf.Adam)]
    >>> both = wf.compare(descent=runs[0], adam=runs[1])
    >>> figure = both.plot("figure.png")"""
    if not runs:
        raise ValueError("compare needs at least one run, such as compare(net=run).")
    for name, run in runs.items():
        if not isinstance(run, Run) or not run.rows:
            raise ValueError(
                f"compare({name[:80]}=…) needs a wf.Run with at least one saved time: {shown(run)}."
            )
    return Comparison(runs)
