"""SGD that fails or succeeds by its start: two centred Gaussians, Mei, Montanari and Nguyen, PNAS 2018.

y = ±1 with equal probability, x ~ N(0, (1 ± Δ)² I_d), d = 320, Δ = 0.5, and neurons σ(⟨w, x⟩) with a σ that
is not monotone: −2.5 below 0, −4 at 0.5, 7.5 above 1.5, linear between. From w ~ N(0, (κ²/d) I) with κ = 0.1
all neurons collapse to w = 0 and the risk stays high; with κ = 0.4 none does, and it falls. Between the two
a part of the neurons collapses; κ* is where that is half of them. The limit moves r = |w| by

    ṙ = −∂_rΨ(r; ρ_t) = E[(y − f(q)) ∂_rσ̄(q; r)],   σ̄(q; r) = E_u σ(r q u), |x| = √d q.

As σ has a kink at 0, Ψ has one at r = 0, like |w|: a neuron comes to rest there in finite time, where the
library's flow holds it. The two curves are `limit`, to a tolerance; κ* and the final risks against κ come
from the flow of quantiles of the start, which the bisection can afford, at two resolutions.

Conventions. The paper's risk is E(y − f)² = 2R, R = ½E(y − f)² being the library's; it is the one on the axes
and in the checks. The paper's flow is ∂tρ = 2ξ∇·(ρ∇Ψ), the library's ∂tρ = ∇·(ρ∇Ψ): with ξ = 1 the paper's
time t is the library's 2t. Times here are the library's, t = kη."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics.flow import GradientFlow
from ..dynamics.sgd import SGD
from ..figures import COLOURS, panels
from ..functionals.expectations import Quadrature, Sample
from ..functionals.risk import Risk
from ..loop import evolve
from ..mean_field.limit import limit
from ..problems.problem import Problem
from ..run import Run
from ..states.starts import init
from .base import Check, Outcome, Say, finished
from .two_gaussians_dynamics import OBSERVED, curves, problem_of

KNOTS = ((0.0, -2.5), (0.5, -4.0), (1.5, 7.5))
DIMENSION, DELTA, FAILS, SUCCEEDS = 320, 0.5, 0.1, 0.4
TIME = 10.0
DECIDED = 2.0  # a time at which each neuron has gone one way or the other
NEAR_ZERO = 1e-2  # a radius below it counts as collapsed
ORDER = 39  # of E over x
STEP, BATCH, SAMPLE = 1e-3, 100, 2**13
SGD_TIMES = STEP * np.round(np.concatenate([[0.0], np.geomspace(0.01, 2, 10)]) / STEP)


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    saved: int = 60
    scales: tuple[float, ...] = (0.1, 0.14, *np.linspace(0.17, 0.24, 15).tolist(), 0.28, 0.34, 0.4)
    quantiles: tuple[int, int] = (128, 256)  # of the start, at two resolutions
    bracket: float = 1e-4  # width of the last one for κ*
    tolerance: float = 1e-3  # of the limit
    width: int = 400
    most_doubt: float = 1e-3  # of κ*

    @property
    def times(self) -> np.ndarray:
        return np.concatenate([[0.0], np.geomspace(2e-3, TIME, self.saved)])


FULL = Settings()
# κ* to a bracket of 1/100, and to the mass 1/32 of one quantile: d(collapsed)/dκ is about 20.
REDUCED = Settings(
    saved=8,
    scales=(0.1, 0.2, 0.4),
    quantiles=(32, 64),
    bracket=1e-2,
    tolerance=2e-3,
    width=100,
    most_doubt=5e-2,
)


@dataclass(frozen=True)
class Quantiles:
    """The flow of this many quantiles of the start, with this tolerance of its steps."""

    problem: Problem
    points: int
    rtol: float

    def __call__(self, kappa: float, end: float) -> Run:
        start = init(self.problem, w=kappa).reduced().points(self.points)
        flow = GradientFlow(Risk(self.problem.reduced(), Quadrature(ORDER)), rtol=self.rtol)
        return finished(evolve(flow, start, [end], snapshots=False, progress=False))

    def collapsed(self, kappa: float) -> float:
        """The fraction of the neurons that ends at w = 0."""
        radii = np.asarray(self(kappa, DECIDED).final.theta[:, 0])
        return float(np.mean(radii < NEAR_ZERO))

    def transition(self, bracket: float) -> float:
        """κ* by bisection."""
        low, high = FAILS, SUCCEEDS
        while high - low > bracket:
            middle = (low + high) / 2
            low, high = (middle, high) if self.collapsed(middle) > 0.5 else (low, middle)
        return (low + high) / 2


def sgd(problem: Problem, kappa: float, width: int) -> Run:
    """One-pass SGD of a network, in float32."""
    start = init(problem, w=kappa).sample(jax.random.key(1), width, dtype=jnp.float32)
    steps = SGD(Risk(problem, Sample(SAMPLE)), STEP, BATCH, one_pass=True)
    run = evolve(steps, start, SGD_TIMES, key=jax.random.key(2), observe=OBSERVED,
                 snapshots=False, progress=False)  # fmt: skip
    return finished(run)


def _draw(
    curves: dict[float, Any], nets: dict[float, Run], ends: np.ndarray, transition: float, settings: Settings
) -> Any:
    with panels(3, width=4.6, height=3.6) as (figure, axes):
        for colour, (kappa, (ts, *lines)) in zip(COLOURS, curves.items(), strict=False):
            net = nets[kappa]
            dots = (2 * np.asarray(net["risk"]), np.asarray(net["radius"]))
            style = {"ms": 4, "mfc": "none", "color": colour, "label": f"SGD, n = {settings.width}"}
            for axis, line, points in zip(axes, lines, dots, strict=False):
                axis.plot(ts[1:], line[1:], color=colour, lw=2, label=f"limit, κ = {kappa:g}")
                axis.plot(net.t[1:], points[1:], "o", **style)
        for axis in axes[:2]:
            axis.set(xscale="log", xlim=(2e-3, None), xlabel="time t = kη (the paper's time is t/2)")
        axes[0].set(ylabel="risk E(y − f)² = 2R", ylim=(0, 9))
        axes[1].set(ylabel="mean radius ∫r dρ")
        axes[1].legend(fontsize=8, loc="upper left")
        axes[2].plot(settings.scales, ends, "o-", ms=3, color=COLOURS[2], label=f"limit at t = {TIME:g}")
        axes[2].axvline(transition, color="0.3", ls=":", label=f"κ* = {transition:.4f}")
        axes[2].set(xlabel="scale κ of the start", ylabel="final risk 2R", yscale="log")
        axes[2].legend(fontsize=8)
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    problem = problem_of(DIMENSION, DELTA, KNOTS)
    few, many = settings.quantiles
    rough, fine = Quantiles(problem, few, 1e-4), Quantiles(problem, many, 2e-5)
    say("the limit from both starts")
    starts = {kappa: init(problem, w=kappa) for kappa in (FAILS, SUCCEEDS)}
    limits = {
        kappa: finished(
            limit(problem, start, settings.times, settings.tolerance, observe=OBSERVED, progress=False)
        )
        for kappa, start in starts.items()
    }
    by_kappa = {kappa: (settings.times, *curves(run)) for kappa, run in limits.items()}
    say("κ* by bisection, at two resolutions")
    transition, other = (one.transition(settings.bracket) for one in (fine, rough))
    say(f"κ* = {transition:.4f} ({other:.4f}); the final risk for {len(settings.scales)} values of κ")
    ends = np.array([2 * float(rough(kappa, TIME)["risk"][-1]) for kappa in settings.scales])
    nets, final = {}, {}
    for kappa in by_kappa:
        say(f"one-pass SGD from κ = {kappa:g}, {round(SGD_TIMES[-1] / STEP)} steps of {BATCH} samples")
        net = nets[kappa] = sgd(problem, kappa, settings.width)
        final[kappa] = 2 * float(net["risk"][-1]), 2 * net.info["expectation_error"]
    doubt, end = abs(transition - other) + settings.bracket, f"2R at t = {SGD_TIMES[-1]:g}"
    noise = 0.25 * math.sqrt(FULL.width / settings.width)  # of SGD about the limit, ∝ n^−½
    (risk_low, radius_low), (risk_high, _) = (curves(run)[:, -1] for run in limits.values())
    errors = [2 * run.info["error"] for run in limits.values()]
    checks = (
        Check(f"κ = {FAILS}: final mean radius", "0", radius_low, settings.tolerance, 0.0, NEAR_ZERO),
        Check(f"κ = {FAILS}: final 2R, that of f = σ(0)", "7.25", risk_low, errors[0], 7.2, 7.3),
        Check(f"κ = {SUCCEEDS}: final 2R", "much lower", risk_high, errors[1], 0.0, 0.1),
        Check("κ*, half of the neurons collapse", "0.1 … 0.4", transition, doubt, 0.11, 0.39),
        Check("error of κ*", "3 digits", doubt, settings.bracket, 0.0, settings.most_doubt),
        Check(f"SGD from κ = {FAILS}: {end}", "7.25", *final[FAILS], 7.25 - noise, 7.25 + noise),
        Check(f"SGD from κ = {SUCCEEDS}: {end}", "much lower", *final[SUCCEEDS], 0.0, 0.3),
    )
    return Outcome(checks, _draw(by_kappa, nets, ends, transition, settings))
