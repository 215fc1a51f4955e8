"""A single neuron learned by networks of growing width: lazy under NTK scaling, not under mean-field scaling.

The lectures' example: y = erf(⟨w*, x⟩), x ~ N(0, I_d), m = 10 d samples, and gradient descent on

    R̂_m(θ) = (1/2m) Σ_i (y_i − f(x_i; θ))²,    f = (α/n) Σ_j a_j erf(⟨w_j, x⟩).

With α = √n (NTK) the weights move less and less as n grows. Training becomes regression with the kernel of
the start, which from m of order d samples fits at most the linear part of the target (`single_neuron`),
although one neuron would do: the test error ½E(y − f)² deteriorates towards ½‖P_{>1} f*‖². With α = 1 (mean
field) the neurons turn to w* at every width, and the test error stays low (lowest for two neurons, which can
be the target itself).

Both scalings have the same samples, start and time; the kernel K at time 0, and with it the stable step, is
the same too. TIME is so long that the training risk is a small part of ½‖P_{>1} f*‖² in all cases: what
differs is what was learned, not how well the samples are fitted. Every neuron has its mirror image (−a, w)
beside it, so f = 0 at time 0: else α = √n would add a random function of size 1, which lazy training cannot
unlearn away from the samples, and the test error would measure that. One neuron alone has no mirror image and
no scaling; n = 2 is the narrowest network here.

The limit n = ∞ under NTK scaling is known: `KernelFlow` with the kernel of the infinite network, on the same
samples. Under mean-field scaling the limit on samples has no symmetry by which to compute it; that it is
reached is seen from the last widths. What remains there comes from the samples, as the same network trained
on the law of x itself (m = ∞) shows. Test errors of networks are exact (dual activations)."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..diagnostics.scaling import fit_slope, mean_and_error
from ..dynamics.gradient_descent import GradientDescent
from ..dynamics.kernel_flow import KernelFlow
from ..figures import COLOURS, panels
from ..functionals.expectations import ClosedForm
from ..functionals.risk import Risk
from ..loop import evolve
from ..problems.laws import Dataset
from ..problems.problem import Problem
from ..states.kernel_function import KernelFunction
from ..states.particles import Particles
from ..states.starts import init
from .base import Check, Outcome, Say, finished
from .single_neuron import NOT_LINEAR, lazy_kernel, problem_in

DIMENSION, SAMPLES = 50, 500
STEP, TIME = 0.5, 200.0
TEST = 10_000  # points for the limit, whose test error has no closed form
WIDTH_OF_LAW = 512
SCALINGS = ("NTK", "mean-field")
FLAT_FROM = 64  # narrower networks depend on where their few neurons start


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    widths: tuple[int, ...] = (2, 4, 16, 64, 256, 1024, 4096)
    seeds: int = 8
    seeds_of_law: int = 3
    near_limit: float = 0.05  # of the widest network's NTK test error, relative to that of n = ∞
    settled: tuple[float, float] = (0.85, 1.05)  # mean field: the last width's test error over the one before


FULL = Settings()
# K of n neurons, half of them independent, is off its mean by √(2/n), 6 % at n = 512 (2 % at 4096), and the
# NTK test error by a few times that; in the mean field the last two widths are three octaves apart, not two.
REDUCED = Settings(widths=(2, 64, 512), seeds=3, seeds_of_law=1, near_limit=0.15, settled=(0.7, 1.05))


def samples(seed: int, d: int = DIMENSION, m: int = SAMPLES) -> Risk:
    """R̂_m on samples of the problem in R^d."""
    problem = problem_in(d)
    drawn = problem.sample(jax.random.key(1000 + seed), m)
    return Risk(Problem(x=Dataset(drawn.x, drawn.y), neuron=problem.neuron))


def scale(scaling: str, n: int) -> float:
    """α."""
    return float(np.sqrt(n)) if scaling == "NTK" else 1.0


def trained(risk: Risk, n: int, alpha: float, seed: int) -> tuple[float, float]:
    """(training risk, test error) of n neurons after gradient descent up to TIME."""
    problem = problem_in(risk.problem.d)
    # float32 is ten thousand times more exact than needed in training; the closed form of f with a large α
    # is a difference of large sums, so the test error is taken in float64
    start = init(problem).sample(jax.random.key(seed), n, alpha, jnp.float32, mirrored=True)
    descent = GradientDescent(risk, STEP)
    run = finished(evolve(descent, start, [TIME], progress=False, snapshots=False))
    theta = jnp.asarray(run.final.theta, jnp.result_type(float))
    exact = Particles(theta, alpha=alpha, neuron=problem.neuron)
    return float(run["risk"][-1]), float(Risk(problem, ClosedForm()).value(exact))


def lazy_error(risk: Risk, seed: int, test: int = TEST) -> float:
    """Test error of the infinitely wide network under NTK scaling, at TIME."""
    run = evolve(KernelFlow(risk), KernelFunction(lazy_kernel), [TIME], progress=False, snapshots=False)
    fresh = problem_in(risk.problem.d).sample(jax.random.key(5000 + seed), test)
    return 0.5 * float(jnp.mean((fresh.y - finished(run).final(fresh.x)) ** 2))


class Measured(NamedTuple):
    """Training risks and test errors (scalings, widths, seeds), the NTK limit's (seeds), that of the law."""

    training: np.ndarray
    test: np.ndarray
    lazy: np.ndarray
    law: float


def measured(settings: Settings, say: Say) -> Measured:
    rows = np.zeros((2, len(SCALINGS), len(settings.widths), settings.seeds))
    risks = [samples(seed) for seed in range(settings.seeds)]
    for i, n in enumerate(settings.widths):
        say(f"n = {n}: gradient descent on {SAMPLES} samples, {settings.seeds} seeds")
        for k, scaling in enumerate(SCALINGS):
            for seed, risk in enumerate(risks):
                rows[:, k, i, seed] = trained(risk, n, scale(scaling, n), seed)
    say("n = inf under NTK scaling: its kernel on the same samples")
    lazy = np.array([lazy_error(risk, seed) for seed, risk in enumerate(risks)])
    say(f"mean field on the law of x: {WIDTH_OF_LAW} neurons")
    law = Risk(problem_in(DIMENSION), ClosedForm())
    law_errors = [trained(law, WIDTH_OF_LAW, 1.0, seed)[1] for seed in range(settings.seeds_of_law)]
    return Measured(rows[0], rows[1], lazy, float(np.mean(law_errors)))


def _largest(rows: np.ndarray) -> tuple[float, float]:
    """Of rows (mean, error) the one with the largest mean."""
    mean, error = rows[np.argmax(rows[:, 0])]
    return float(mean), float(error)


def checks_of(measured: Measured, settings: Settings = FULL) -> tuple[Check, ...]:
    """Ratios are taken seed by seed: both sides have the same samples."""
    widths, (ntk, mean_field), unbounded = settings.widths, measured.test, float("inf")
    widest = widths[-1]
    left = np.array(
        [mean_and_error(row) for row in measured.training.reshape(-1, settings.seeds) / NOT_LINEAR]
    )
    part, part_error = _largest(left)
    worse, worse_error = mean_and_error(np.log10(ntk[-1] / ntk[0]))
    limit, limit_error = mean_and_error(ntk[-1] / measured.lazy)
    level, level_error = mean_and_error(ntk[-1] / NOT_LINEAR)
    low = np.array([mean_and_error(row) for row in mean_field / NOT_LINEAR])
    highest, highest_error = _largest(low)
    wide = [i for i, n in enumerate(widths) if n >= FLAT_FROM]
    slope = fit_slope([widths[i] for i in wide], *low[wide].T)
    settled, settled_error = mean_and_error(mean_field[-1] / mean_field[-2])
    apart, apart_error = mean_and_error(ntk[-1] / mean_field[-1])
    linear = "½‖P_{>1}f*‖²"
    return (
        Check(f"largest mean training risk over {linear}", "≪ 1: trained", part, part_error, 0.0, 0.2),
        Check(
            f"NTK: log10 of test error, n = {widest} over n = {widths[0]}",
            "> 0: it deteriorates",
            worse,
            worse_error,
            1.0,
            unbounded,
        ),
        Check(
            f"NTK: test error at n = {widest} over that at n = ∞",
            "1",
            limit,
            limit_error,
            1 - settings.near_limit,
            1 + settings.near_limit,
        ),
        Check(
            f"NTK: test error at n = {widest} over {linear}", "1 or more", level, level_error, 0.95, unbounded
        ),
        Check(f"mean field: largest mean test error over {linear}", "≪ 1", highest, highest_error, 0.0, 0.2),
        Check(
            f"mean field: slope in n of the test error, n ≥ {FLAT_FROM}",
            "0 or less",
            slope.value,
            slope.error,
            -0.25,
            0.0,
        ),
        Check(
            f"mean field: test error at n = {widest} over n = {widths[-2]}",
            "1: a limit",
            settled,
            settled_error,
            *settings.settled,
        ),
        Check(f"test error at n = {widest}, NTK over mean field", "≫ 1", apart, apart_error, 10.0, unbounded),
    )


def _draw(measured: Measured, widths: tuple[int, ...]) -> Any:
    """Test error against width, under both scalings."""
    with panels(1, width=6.4, height=4.4) as (figure, (axis,)):
        for k, (scaling, alpha) in enumerate(zip(SCALINGS, ("√n", "1"), strict=True)):
            rows = np.array([mean_and_error(row) for row in measured.test[k]])
            style = {"fmt": "o-", "ms": 4, "capsize": 2, "color": COLOURS[1 - k]}
            axis.errorbar(widths, *rows.T, **style, label=f"{scaling} scaling, α = {alpha}, ± 1 s.e.")
        level = "what no linear function fits, ½‖P$_{>1}$f*‖²"
        axis.axhline(measured.lazy.mean(), ls=":", lw=2, color=COLOURS[1], label="NTK limit, n = ∞")
        axis.axhline(NOT_LINEAR, ls="--", lw=1, color=COLOURS[6], label=level)
        label = f"mean field on the law of x, m = ∞ (n = {WIDTH_OF_LAW})"
        axis.axhline(measured.law, ls=":", lw=2, color=COLOURS[0], label=label)
        axis.set(xlabel="width n", ylabel="test error ½E(y − f)²", xscale="log", yscale="log")
        axis.set_title(f"y = erf(⟨w*, x⟩), d = {DIMENSION}, m = {SAMPLES} samples")
        axis.set_xticks(widths, [str(n) for n in widths])
        axis.minorticks_off()
        axis.set_ylim(top=40 * NOT_LINEAR)
        axis.legend(loc="upper left", fontsize=8)
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    results = measured(settings, say)
    return Outcome(checks_of(results, settings), _draw(results, settings.widths))
