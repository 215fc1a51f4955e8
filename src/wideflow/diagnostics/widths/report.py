"""Which regime do networks of a family train in? Exponents in the width, measured and predicted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from ..._checks import count, positive
from ..._checks import key as check_key
from ..._data import Data
from ...parametrisations import Exponents, Parametrisation, named
from ...problems.losses import AbstractLoss, Huber, Squared
from ...states.family import Family, is_family
from ...store.pictures import save
from ...verdicts import Verdict
from ..regimes.report import plain
from .family_trial import Squares
from .figure import draw
from .fit import Curve, curves, verdict_of_widths, worst_error
from .inputs import build_trial, checked_data, checked_family, checked_loss, checked_widths
from .setting import Setting, setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ERROR = 0.02  # of an exponent: seeds are added until it is reached
_MOVE = 0.1  # of f (in units of y) and of h at most: small enough for the first order in the step
# per step, where there are several: what the first one moved must show in the second
_MOVE_MORE = 0.5
_DRAWS, _LEAST, _MOST = 2**13, 8, 2**12  # units per width, and networks at least and at most


@dataclass(frozen=True, repr=False)
class WidthReport:
    """Curves by name against the widths, the verdict of their exponents and that of theory (`expected`), and
    what was trained on what (`setting`)."""

    setting: Setting
    widths: tuple[int, ...]
    curves: dict[str, Curve]
    decision: Verdict
    predicted: Exponents | None
    expected: str | None
    seeds: tuple[int, ...]
    centred: bool
    step: float
    steps: int
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """ "lazy", "feature-learning", "trivial", "unstable" or "not decided"."""
        return self.decision.word

    def gap(self) -> float:
        """The largest distance of a measured exponent from its prediction."""
        compared = [c for c in self.curves.values() if c.predicted is not None and c.slope is not None]
        return max((abs(c.slope.value - c.predicted) for c in compared), default=float("nan"))  # type: ignore

    def __str__(self) -> str:
        sentence = "Verdict: " + self.verdict + ", because " + "; ".join(self.decision.reasons) + "."
        theory = [] if self.expected is None else [f"The theory of the limit says: {self.expected}."]
        return "\n".join(
            [
                *(str(self.setting), "", *self._table(), "", sentence, *theory),
                *(self.decision.advice, *map("Note: {}.".format, self.notes)),
            ]
        )

    __repr__ = __str__

    def _table(self) -> list[str]:
        first, last = self.widths[0], self.widths[-1]
        head = f"{'rms of':<20}{'predicted':>10}{'measured':>18}{f'n = {first}':>12}{f'n = {last}':>12}"
        lines = [head]
        for name, c in self.curves.items():
            prediction = "" if c.predicted is None else f"{c.predicted:+.2f}"
            slope = "" if c.slope is None else f"{c.slope.value:+.3f} ± {c.slope.error:.3f}"
            lines.append(f"{name:<20}{prediction:>10}{slope:>18}{c.values[0]:>12.3g}{c.values[-1]:>12.3g}")
        return lines

    def to_dict(self) -> Data:
        """Plain data, ready for JSON; what is not finite is None."""
        each = {
            name: {
                "values": c.values.tolist(),
                "errors": c.errors.tolist(),
                "exponent": None if c.slope is None else c.slope.value,
                "exponent_error": None if c.slope is None else c.slope.error,
                "predicted": c.predicted,
            }
            for name, c in self.curves.items()
        }
        head = {"verdict": self.verdict, "reasons": self.decision.reasons, "advice": self.decision.advice}
        how = {
            name: getattr(self, name) for name in ("expected", "widths", "seeds", "centred", "step", "steps")
        }
        return plain({**self.setting._asdict(), **head, **how, "notes": self.notes, "curves": each})

    def plot(self, path: str | Path | None = None) -> "Figure":
        """|Δh_l| and |Δf| against n with the fitted and the predicted slopes; beside it |h_l(t)|, which
        looks alike in every regime."""
        figure = draw(self.widths, self.curves, self.verdict)
        if path is not None:
            save(figure, path)
        return figure


def width_check(
    family: Family | Callable,
    widths: Sequence[int],
    steps: int = 1,
    *,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    parametrisation: str | Parametrisation = "ntk",
    loss: str | AbstractLoss = "squared",
    step: float | None = None,
    seeds: int | None = None,
    optimiser: Any = "sgd",
    centred: bool | None = None,
    train: Callable | None = None,
    features: Callable | None = None,
    key: object = None,
    progress: Callable | None = None,
) -> WidthReport:
    """Train networks of several widths for a few steps and fit |Δh_l|, |Δf| and more to powers of n.

    - `family`: a `wf.Family` such as `wf.MLP(d, depth)`, under `parametrisation` and `optimiser` "sgd" or
      "adam"; the exponents are compared with the predicted ones. Or `make(key, n)` that returns (f, params)
      with f(params, x) a JAX function, trained by `train(f, params, x, y, n)`, which returns the params
      after, or by `optimiser(n)`, an optax optimiser at width n; `features(params, x)` gives hidden layers.
    - x, y: rows to train on; for a family by default 16 of a Gaussian in R^d and y = erf of one direction.
    - step: η₀; by default such that nothing moves by more than 10 % in one step (50 % where there are more).
    - seeds: networks per width; by default enough to bring the error bars of the exponents below 0.02.
    - centred: train F = f − f(0). By default where the predicted f(0) does not grow: f(0), of order 1 and
      random, would be part of the residual and cost seeds. Where it grows it is part of the prediction.
    - progress: called with a line of text at every width.

    >>> check = wf.width_check(wf.MLP(3), (8, 16, 32), parametrisation="mup", seeds=2)
    >>> check.expected, round(check.curves["f(0)"].predicted, 2)
    ('feature-learning', -0.5)"""
    family, ns = checked_family(family), checked_widths(widths)
    steps, key = count("steps", steps), jax.random.key(0) if key is None else check_key("key", key)
    loss = checked_loss(loss)
    chosen = named(parametrisation, family.depth, optimiser) if is_family(family) else None
    grows = chosen is not None and chosen.exponents(optimiser).f0 > 0
    # Where f(0) grows, its exponent is that of the residual as soon as y is small beside it.
    default = x is None
    x, y = checked_data(family, x, y, loss, 0.1 if grows else 1.0)
    trial = build_trial(family, chosen, x, y, loss, steps, optimiser, centred, train, features)
    own_step = train is not None or not isinstance(optimiser, str)
    counts = {n: count("seeds", seeds, least=2) if seeds else max(_LEAST, _DRAWS // n) for n in ns}
    if own_step or step is not None:
        eta = 1.0 if own_step else positive("step", step)
    else:
        eta = _step(trial, ns, key, _size(y, loss), counts, steps)
    predicted = None if chosen is None else chosen.exponents(optimiser)
    squares, fitted = _measured(trial, ns, key, eta, counts, seeds is not None, predicted, steps, progress)
    notes = _notes(ns, squares, fitted, predicted, trial.centred, eta, own_step, steps)
    expected = None if chosen is None else chosen.regime(optimiser).verdict
    verdict = verdict_of_widths(fitted, predicted is not None)
    number = tuple(len(squares[n]["Δf"]) for n in ns)
    conditions = setting(chosen, optimiser, train, loss, x, default)
    how = number, trial.centred, eta, steps, notes
    return WidthReport(conditions, ns, fitted, verdict, predicted, expected, *how)


def _measured(
    trial, ns, key, eta, counts, fixed, predicted, steps, progress
) -> tuple[dict[int, Squares], dict[str, Curve]]:
    """Rounds of networks at every width until the error bars are small, or as many as asked for."""
    squares: dict[int, list[Squares]] = {n: [] for n in ns}
    done = 0
    while True:
        for i, n in enumerate(ns):
            size = min(trial.batch(n), counts[n])
            drawn = sum(len(part["Δf"]) for part in squares[n])
            while drawn < counts[n]:
                fresh = jax.random.fold_in(jax.random.fold_in(key, i), drawn)
                squares[n].append(trial.squares(fresh, size, n, eta))
                drawn += size
            if progress is not None:
                progress(f"width {n}: {drawn} networks")
        joined = {n: {k: np.concatenate([part[k] for part in squares[n]]) for k in squares[n][0]} for n in ns}
        fitted, done = curves(ns, joined, predicted, steps), done + 1
        error, most = worst_error(fitted), max(counts.values())
        if fixed or error <= ERROR or most >= _MOST or done >= 6:
            return joined, fitted
        # The error falls with the root of the number; a scatter that does not come from seeds stops at six.
        factor = int(np.clip(np.ceil((error / ERROR) ** 2), 2, 4))
        counts = {n: factor * v for n, v in counts.items()}


def _size(y: ArrayLike, loss: AbstractLoss) -> float:
    """The size that f must reach: that of y, or, for classes, order 1."""
    if not isinstance(loss, Squared | Huber):
        return 1.0
    return max(float(np.sqrt(np.mean(np.asarray(y, float) ** 2))), 1e-30)


def _step(trial, ns: tuple[int, ...], key: Array, size: float, counts: dict[int, int], steps: int) -> float:
    """η₀ that moves f, in units of y, and every hidden layer, of itself, by `_MOVE` at most."""
    trial_step, moves = 1e-3, []
    for n in (ns[0], ns[-1]):
        # As many as will be trained: one program less to compile.
        drawn = trial.squares(
            jax.random.fold_in(key, 2**31 - 1), min(trial.batch(n), counts[n]), n, trial_step
        )
        squares = {name: float(np.sqrt(np.mean(v))) for name, v in drawn.items()}
        moves.append(squares["Δf"] / max(size, 0.0 if trial.centred else squares["f(0)"]))
        moves += [
            squares[f"Δh{i}"] / squares[f"h{i}(0)"] for i in range(1, len(squares)) if f"Δh{i}" in squares
        ]
    largest = max(moves)
    if not np.isfinite(largest) or largest == 0:
        return trial_step
    return float(trial_step * (_MOVE if steps == 1 else _MOVE_MORE * steps) / largest)


def _notes(
    ns, squares, fitted, predicted, centred: bool, eta: float, own: bool, steps: int
) -> tuple[str, ...]:
    number = [len(squares[n]["Δf"]) for n in ns]
    error = worst_error(fitted)
    seeds = f"{number[0]}" if len(set(number)) == 1 else f"{max(number)} to {min(number)}"
    model = (
        "the centred model F = f - f(0) was trained, so that no random f(0) is in the residual"
        if centred
        else "f(0) is part of the residual (no centred model)"
    )
    notes = [f"{model}; {seeds} networks per width; the largest error bar is {error:.3f}"]
    if error > ERROR:
        notes.append(
            f"error bars above {ERROR:g} remain; more seeds, or wider networks where curves bend, help"
        )
    if not own:
        notes.append(f"{steps} step(s) of η₀ = {eta:.3g}")
    if predicted is not None and steps == 1 and max(predicted.trained) > max(predicted.features) + 1e-9:
        notes.append(
            "the last layer starts smaller than its steps: from the second step on features move more, so "
            "that steps=2 decides"
        )
    sizes = [
        c.slope.value
        for name, c in fitted.items()
        if name.startswith("h") and name.endswith("(t)") and c.slope
    ]
    if sizes:
        each = ", ".join(f"{v:+.2f}" for v in sizes)
        notes.append(f"sizes |h(t)| have exponents {each}: they are alike in every regime and decide nothing")
    return tuple(notes)
