"""Which regime is a trained network in? The report on one model before and after training."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..._data import Data
from ...states.trainable import is_trainable
from ...store.pictures import save
from ...verdicts import Verdict
from .arguments import chosen_model
from .decision import judge
from .figure import draw
from .movement import Movement, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class RegimeReport:
    """What training moved (`moved`), and what follows (`decision`). `print(report)` is the table."""

    moved: Movement
    decision: Verdict

    @property
    def verdict(self) -> str:
        """ "lazy", "feature-learning", "unstable" or "not decided"."""
        return self.decision.word

    def __str__(self) -> str:
        return "\n".join([*_table(self.moved), "", *_sentences(self.moved, self.decision)])

    __repr__ = __str__

    def to_dict(self) -> Data:
        """Plain data, ready for JSON; what is not finite is None."""
        decision = {"verdict": self.verdict, "reasons": list(self.decision.reasons)}
        moved = dataclasses.asdict(self.moved)
        moved["buffers"] = None if self.moved.buffers is None else self.moved.buffers._asdict()
        return plain({**decision, "advice": self.decision.advice, **moved})

    def plot(self, path: str | Path | None = None) -> "Figure":
        """Movement of weights, kernel and features by layer; written to `path` if one is given."""
        figure = draw(self.moved, self.verdict)
        if path is not None:
            save(figure, path)
        return figure


def regime(
    f: Callable,
    before: PyTree,
    after: PyTree,
    x: ArrayLike | None = None,
    *,
    features: PyTree = None,
    y: ArrayLike | None = None,
    rates: PyTree = None,
    rows: int | None = None,
    projections: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> RegimeReport:
    """Whether training was lazy, learned features or was unstable, measured on the rows of x.

    - `regime(f, params_before, params_after, x)`: any JAX function f(params, x) of rows;
      `features(params, x)` may give hidden layers, as a dictionary or list of arrays.
    - `regime(state_before, state_after, x)`: two states of one run (`run.states[0]`, `run.final`).
    - `regime(module_before, module_after, x)`: two `torch.nn.Module`, one a copy made before training.

    `y`, of the shape of f(x) or class numbers, adds the alignment of the kernel with the target. `rates` are
    the relative rates of params as in `wf.empirical_ntk`, 1 by default (states bring their own).

    Kernel, CKA and the gap to the linearisation take at most `rows` rows, drawn by `seed`: by default 256,
    and fewer of large models, down to 32, so that it answers in seconds. Where outputs are many the kernel is
    that of random `projections` of them, with an error that is told; `projections` as many as outputs is
    exact. What will take long is told on standard error beforehand, with its memory, and has a bar there
    (`progress`, on a terminal by default).
    Hidden layers of functions are found where they are products with weights. Buffers of modules are held.

    >>> run = wf.evolve(wf.GradientDescent(R, step=0.1), net, [0.0, 20.0])
    >>> wf.regime(net, run.final, jr.normal(key, (8, 3))).verdict
    'feature-learning'"""
    args = (f, before, after) if x is None else (f, before, after, x)
    moved = measure(chosen_model(args, features, rates), y, rows, seed, projections, progress)
    return RegimeReport(moved, judge(moved, general=not is_trainable(f)))


def plain(value: object) -> Any:
    """Dictionaries, lists, strings and finite numbers; None for NaN and inf."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return value


def _listed(names: tuple[str, ...], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _table(moved: Movement) -> list[str]:
    of_features = "features (rms over rows and units)"
    wide = max(
        len(of_features) if moved.features else 16,
        *(len(name) for name in (*moved.weights, *(moved.features or ()))),
    )
    number = lambda v: f"{v:>12.3g}"
    lines = [f"{'weights':<{wide}}{'|ΔW|/|W0|':>12}{'|ΔK|/|K0|':>12}{'share of K0':>12}"]
    for name, v in moved.weights.items():
        kernel = moved.kernel
        more = "" if kernel is None else number(kernel.parts[name]) + number(kernel.shares[name])
        lines.append(f"{name:<{wide}}{number(v)}{more}")
    if moved.features:
        lines += ["", f"{of_features:<{wide}}{'|Δh|':>12}{'|Δh|/|h0|':>12}{'CKA':>12}"]
        lines += [
            f"{name:<{wide}}{number(h.dh)}{number(h.relative)}{number(h.cka)}"
            for name, h in moved.features.items()
        ]
    lines += ["", f"{'function':<{wide}}{'|f0|':>12}{'|Δf|':>12}{'|ft|':>12}"]
    lines.append(f"{'rms over x':<{wide}}{number(moved.f0)}{number(moved.df)}{number(moved.ft)}")
    if moved.kernel is not None and moved.gap is not None:
        kernel = moved.kernel
        error = f" ± {kernel.error:.1g}" if kernel.error else ""
        lines += [
            "",
            f"kernel movement |Kt - K0|/|K0|      {kernel.movement:.3g}{error}  (on {kernel.rows} rows)",
        ]
        lines.append(f"linearisation gap |ft - flin|/|Δf|  {moved.gap:.3g}")
        aligned = {"y": kernel.with_target, "Δf": kernel.with_change}
        for name, pair in aligned.items():
            if pair is not None:
                lines.append(f"kernel alignment with {name:<13} {pair[0]:.3g} before, {pair[1]:.3g} after")
    return lines


def _sentences(moved: Movement, decision: Verdict) -> list[str]:
    sentences = [
        f"Verdict: {decision.word}, because " + ", and ".join(decision.reasons) + ".",
        decision.advice,
    ]
    if moved.buffers is not None:
        sentences.append(
            f"Note: buffers moved too ({_listed(moved.buffers.names)}) and are held at their start; letting "
            f"them move as well alters the change of f by {moved.buffers.share:.2g} of it."
        )
    return sentences + [f"Note: {note}." for note in moved.notes]
