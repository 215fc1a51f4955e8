"""The residual equation with its moving kernel, beside the one with the kernel frozen at the start."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, PyTree
from numpy.typing import ArrayLike

from .._checks import times
from ..dynamics.flow import GradientFlow
from ..dynamics.kernel_flow import KernelFlow
from ..figures import COLOURS, DASHES, legend_above, panels
from ..functionals.risk import Risk
from ..kernels.tangent import tangent_kernels
from ..loop import evolve
from ..run import Run
from ..states.trainable import AbstractTrainable
from ..store.pictures import save
from .alignment import alignment, relative_movement, rms, target_of
from .formatting import log_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Coupled:
    """∂t u = −K_t Ω u beside ∂t u = −K_0 Ω u, from one start on one data set, at the times `t`.

    - `moving`, `frozen`: the two runs.
    - `gap`: root mean square over the data of f − f_frozen.
    - `movement`: ‖K_t − K_0‖/‖K_0‖ (Frobenius; of the mean over outputs); `layers` the same for each layer.
    - `alignment`: ⟨K_t, yyᵀ⟩/(‖K_t‖ ‖yyᵀ‖), y the labels (for classes unit vectors less their mean)."""

    moving: Run
    frozen: Run
    t: Float[np.ndarray, " T"]
    gap: Float[np.ndarray, " T"]
    movement: Float[np.ndarray, " T"]
    layers: dict[str, np.ndarray]
    alignment: Float[np.ndarray, " T"]

    def table(self) -> str:
        """Start, middle and end, one line each, in Markdown."""
        head = "| t | risk, K moves | risk, K frozen | rms gap | kernel movement | alignment with y |"
        lines = [head, "|---|---|---|---|---|---|"]
        for i in sorted({0, len(self.t) // 2, len(self.t) - 1}):
            risks = self.moving["risk"][i], self.frozen["risk"][i]
            numbers = (self.t[i], *risks, self.gap[i], self.movement[i], self.alignment[i])
            lines.append("| " + " | ".join(f"{v:.4g}" for v in numbers) + " |")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Both risks; movement of the kernel, whole and by layer; alignment with the labels."""
        with panels(3, height=3.6 + 0.1 * len(self.layers)) as (figure, axes):
            for i, (name, run) in enumerate((("K moves", self.moving), ("K frozen", self.frozen))):
                axes[0].plot(run.t, run["risk"], color=COLOURS[i], ls=DASHES[i], label=name)
            axes[0].set(xlabel="time t", ylabel="risk R", yscale="log")
            log_ticks(axes[0].yaxis, np.concatenate([self.moving["risk"], self.frozen["risk"]]))
            axes[1].plot(self.t, self.movement, color=COLOURS[6], label="all layers")
            for i, (name, movement) in enumerate(self.layers.items()):
                # i // 6 shifts the dash from one round of colours to the next: 18 different pairs
                style = {"color": COLOURS[i % 6], "ls": DASHES[1 + (i + i // 6) % 3]}
                axes[1].plot(self.t, movement, label=name, **style)
            axes[1].set(xlabel="time t", ylabel="‖K$_t$ − K$_0$‖/‖K$_0$‖")
            axes[2].plot(self.t, self.alignment, color=COLOURS[0], label="K moves")
            axes[2].axhline(self.alignment[0], color=COLOURS[1], ls="--", label="K frozen")
            axes[2].set(xlabel="time t", ylabel="alignment of K with yyᵀ")
            for one, title in zip(axes, ("risk", "kernel movement", "alignment"), strict=True):
                legend_above(one, title, columns=2)
            if path is not None:
                save(figure, path)
        return figure

    def __repr__(self) -> str:
        return self.table()


def coupled(risk: Risk, state: AbstractTrainable, ts: ArrayLike, *, rtol: float | None = None) -> Coupled:
    """Follow a network (or particles) by gradient flow and with its kernel frozen at the start, and measure
    how far the kernel moves. The risk must be on data (`wf.Dataset`, or `expectation=wf.Sample(m)`)."""
    if not isinstance(risk, Risk):
        raise ValueError(f"coupled needs a risk on data, wf.Risk(problem), got a {type(risk).__name__}.")
    requested = times(ts)
    frozen = evolve(KernelFlow(risk, rtol=rtol), state, requested)
    data = risk.sample
    assert data is not None  # or KernelFlow would have raised
    moving = evolve(GradientFlow(risk.on(data), rtol=rtol), state, requested)
    x = data.x
    y = target_of(data.y, np.asarray(state(x)).reshape(len(x), -1))
    kernels = [tangent_kernels(one, x, form="trace") for one in moving.states]
    whole: list[PyTree] = [sum(layers.values()) for layers in kernels]
    names = list(kernels[0])
    return Coupled(
        moving,
        frozen,
        moving.t,
        np.array([rms(a(x) - b(x)) for a, b in zip(moving.states, frozen.states, strict=False)]),
        np.array([relative_movement(whole[0], K) for K in whole]),
        {name: np.array([relative_movement(kernels[0][name], K[name]) for K in kernels]) for name in names},
        np.array([alignment(K, y) for K in whole]),
    )
