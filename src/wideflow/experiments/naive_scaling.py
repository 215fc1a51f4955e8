"""The naive scaling (½, 0, −½): it diverges under the squared loss and trains under cross-entropy.

The NTK's network, f = n^−½ Σ_j a_j φ(⟨w_j, x⟩), at a rate √n η₀ that moves its features by order 1, moves f
by √n. Under the squared loss a step then overshoots by √n: the largest stable η₀ is 2/(√n λ), λ the largest
eigenvalue of the kernel, which has a limit, so that it falls like n^−½, and any fixed η₀ diverges from some
width on. Cross-entropy has a bounded signal that dies where the classes are told apart: the same steps
train."""

import warnings
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..diagnostics.scaling import Slope, fit_slope, mean_and_error
from ..dynamics.gradient_descent import GradientDescent
from ..dynamics.stability import largest_stable_step
from ..figures import COLOURS, panels, power_law
from ..functionals.risk import Risk
from ..loop import evolve
from ..problems.laws import Dataset
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..run import Run
from ..states.family import MLP
from .base import Check, Outcome, Say, slope_check

DIMENSION, POINTS, STEP = 10, 128, 0.15
TIMES = np.arange(0, 21) * 10 * STEP


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    widths: tuple[int, ...] = (256, 1024, 4096, 16384)
    seeds: int = 8  # of the largest stable step: its spread over starts is 5 % at the smallest width


FULL = Settings()
# Half the seeds: the exponent's error bar, 5 %/√4 over a factor of 16 in n, is a tenth of what is allowed.
REDUCED = Settings(widths=(256, 1024, 4096), seeds=4)


def risks() -> tuple[dict[str, Risk], np.ndarray]:
    """Two classes by sign(x_1 + x_2 x_3): with one-hot labels for the squared loss, or class numbers."""
    x = np.random.default_rng(0).normal(size=(POINTS, DIMENSION))
    label = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int)
    neuron = Neuron("relu", outputs=2)
    labels = {"squared": np.eye(2)[label], "cross_entropy": label}
    problems = {loss: Problem(x=Dataset(x, y), neuron=neuron, loss=loss) for loss, y in labels.items()}
    return {loss: Risk(problem) for loss, problem in problems.items()}, label


def trained(risk: Risk, n: int) -> Run:
    """Gradient descent with the fixed η₀; that it diverges is a finding here, not a warning."""
    network = MLP(DIMENSION, 1, "relu", outputs=2).sample(jax.random.key(0), n, "naive")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The run diverged")
        return evolve(GradientDescent(risk, STEP), network, TIMES)


def stable_steps(risk: Risk, settings: Settings, say: Say) -> tuple[np.ndarray, Slope]:
    """The largest stable η₀ at the start, rows (mean over starts, error) by width, and its power law."""
    family, rows = MLP(DIMENSION, 1, "relu", outputs=2), []
    for n in settings.widths:
        say(f"largest stable step at width {n}")
        starts = [family.sample(jax.random.key(seed), n, "naive") for seed in range(settings.seeds)]
        rows.append(mean_and_error([largest_stable_step(risk, start) for start in starts]))
    steps = np.array(rows)
    return steps, fit_slope(settings.widths, steps[:, 0], steps[:, 1])


def _accuracy(run: Run, label: np.ndarray, risk: Risk) -> float:
    assert risk.sample is not None
    return float(np.mean(np.argmax(run.final(risk.sample.x), axis=1) == label))


def run(say: Say, settings: Settings = FULL) -> Outcome:
    widths, (by_loss, label) = settings.widths, risks()
    steps = stable_steps(by_loss["squared"], settings, say)
    runs: dict[str, dict[int, Run]] = {}
    for loss, risk in by_loss.items():
        runs[loss] = {}
        for n in widths:
            say(f"{loss}, width {n}")
            runs[loss][n] = trained(risk, n)
    wide = [n for n in widths if runs["squared"][n].status == "diverged"]
    narrow = [n for n in widths if runs["squared"][n].status == "ok"]
    worst = min(_accuracy(r, label, by_loss["cross_entropy"]) for r in runs["cross_entropy"].values())
    calm = sum(r.status == "ok" for r in runs["cross_entropy"].values())
    checks = (
        slope_check("slope in n of the largest stable η₀, squared loss", steps[1], -0.5, 0.1),
        Check(
            f"squared loss, η₀ = {STEP}: trains at {narrow}, diverges at", f"widths up from {widths[2]}",
            float(min(wide, default=np.inf)), 0.0, widths[1], widths[-1],
        ),
        Check("cross-entropy, same η₀: widths that train", f"{len(widths)}", calm, 0.0,
              len(widths) - 0.5, len(widths) + 0.5),
        Check("cross-entropy: worst accuracy on the data", "1", worst, 0.0, 0.97, 1.0),
    )  # fmt: skip
    return Outcome(checks, _draw(runs, steps, widths))


def _draw(runs: dict[str, dict[int, Run]], steps: tuple[np.ndarray, Slope], widths: tuple[int, ...]) -> Any:
    with panels(3) as (figure, axes):
        titles = {"squared": "squared loss", "cross_entropy": "cross-entropy"}
        for axis, (loss, by_width) in zip(axes, runs.items(), strict=False):
            for i, (n, one) in enumerate(by_width.items()):
                label = f"n = {n}" + (", diverges" if one.status == "diverged" else "")
                mark = {"marker": "x"} if one.status == "diverged" else {}
                axis.plot(one.t, one["risk"], color=COLOURS[i], label=label, **mark)
            axis.set(
                xlabel="time t = kη₀", ylabel="risk R", yscale="log", title=f"{titles[loss]}, η₀ = {STEP}"
            )
            axis.set_ylim(3e-4, 30.0)  # what diverges leaves the panel
            axis.legend()
        labels = ("width n", "largest stable η₀, squared loss")
        power_law(axes[2], widths, steps[0][:, 0], steps[0][:, 1], steps[1], labels)
    return figure
