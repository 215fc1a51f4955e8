"""SGD on two centred Gaussians follows the distributional dynamics: Mei, Montanari and Nguyen, PNAS 2018.

y = ±1 with equal probability, x ~ N(0, (1 ± Δ)² I_d), and neurons σ(⟨w, x⟩) with the truncated linear
σ = −2.5 below 0.5, 7.5 above 1.5 and linear between. The law of w stays invariant under rotations, so the
limit is a law of the one coordinate r = |w|, which moves by ṙ = −∂_r Ψ̄(r; ρ̄_t). The claim, seen in the
paper's figures of the isotropic Gaussians (d = 40, n = 800, w ~ N(0, (0.8²/d) I)): the risk and the mean
radius ∫r dρ̄ of one-pass SGD lie on the limit's curves for every Δ.

Conventions. The paper's risk is E(y − f)² = 2R, R = ½E(y − f)² being the library's; it is the one on the
axis and in the checks. The paper's flow is ∂tρ = 2ξ∇·(ρ∇Ψ), the library's ∂tρ = ∇·(ρ∇Ψ): with ξ = 1 the
paper's time t is the library's 2t. Times here are the library's, t = kη.

The limit is taken by `limit` at two tolerances, whose difference is the error of the mean radius; for large Δ
a point of the start divides neurons that shrink from neurons that grow, and panels of the start are cut
around it. To the error of the limit that of a sampled risk is added. SGD may differ from it by the variance
of f at finite width, Var σ/n ≤ 5²/800 ≈ 0.03 in 2R, and by gradient noise, of order
η tr(K)/batch · E(y − f)²/2 ≈ 0.01."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics.sgd import SGD
from ..figures import COLOURS, panels
from ..functionals.expectations import Sample
from ..functionals.risk import Risk
from ..loop import Observer, evolve
from ..mean_field.limit import limit
from ..problems.activations import activation
from ..problems.laws import two_gaussians
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..run import Run
from ..states.starts import init
from .base import Check, Outcome, Say, finished

KNOTS = ((0.5, -2.5), (1.5, 7.5))
DIMENSION, SCALE = 40, 0.8
STEP, BATCH, SAMPLE = 4e-3, 100, 2**14


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    deltas: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    width: int = 800
    time: float = 40.0
    saved: int = 26
    limits: tuple[float, float] = (4e-3, 1e-3)  # tolerances of R, the second to compare with
    tolerance: float = 0.05  # on 2R and on the mean radius

    @property
    def times(self) -> np.ndarray:
        """Whole steps, evenly in log t."""
        return STEP * np.round(np.concatenate([[0.0], np.geomspace(0.02, self.time, self.saved)]) / STEP)


FULL = Settings()
# The variance of f at finite width, Var σ/n, which 2R differs by, is twice as large at half the width.
REDUCED = Settings(deltas=(0.4,), width=400, time=4.0, saved=10, limits=(1e-2, 4e-3), tolerance=0.1)


def problem_of(d: float, delta: float, knots: Any = KNOTS) -> Problem:
    """The two Gaussians and neurons σ(⟨w, x⟩), σ piecewise linear through the knots, constant outside."""
    neuron = Neuron(activation("piecewise_linear", knots=knots), output="unit")
    return Problem(x=two_gaussians(d, delta), neuron=neuron)


def mean_radius(t: float, state: Any) -> Any:
    """∫|w| dρ, of neurons or of their reduced coordinate."""
    return jnp.sum(state.weights * jnp.linalg.norm(state.theta, axis=1))


OBSERVED: dict[str, Observer] = {"radius": mean_radius}


def curves(run: Run) -> np.ndarray:
    """Rows 2R and ∫r dρ."""
    return np.array([2 * np.asarray(run["risk"]), np.asarray(run["radius"])])


def sgd(problem: Problem, seed: int, settings: Settings) -> Run:
    """One-pass SGD of the network, in float32; its risk is taken on a sample that it does not see."""
    start = init(problem, w=SCALE).sample(jax.random.key(seed), settings.width, dtype=jnp.float32)
    steps = SGD(Risk(problem, Sample(SAMPLE)), STEP, BATCH, one_pass=True)
    run = evolve(steps, start, settings.times, key=jax.random.key(100 + seed), observe=OBSERVED,
                 snapshots=False, progress=False)  # fmt: skip
    return finished(run)


def _draw(curves: dict[float, tuple[Any, ...]], width: int) -> Any:
    with panels(2, width=5.2, height=3.8) as (figure, axes):
        for colour, (delta, (ts, limit, net)) in zip(COLOURS, curves.items(), strict=False):
            for axis, fine, coarse in zip(axes, limit, net, strict=True):
                axis.plot(ts[1:], fine[1:], color=colour, lw=2, label=f"Δ = {delta:g}")
                axis.plot(ts[1:], coarse[1:], "o", ms=3.5, mfc="none", color=colour)
        for axis in axes:
            axis.set(xscale="log", xlabel="time t = kη (the paper's time is t/2)")
        axes[0].set(ylabel="risk E(y − f)² = 2R")
        axes[1].set(ylabel="mean radius ∫r dρ")
        axes[1].plot([], [], color="0.3", lw=2, label="limit")
        axes[1].plot([], [], "o", ms=3.5, mfc="none", color="0.3", label=f"SGD, n = {width}")
        axes[1].legend(loc="upper left")
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    by_delta, checks, times = {}, [], settings.times
    for i, delta in enumerate(settings.deltas):
        problem = problem_of(DIMENSION, delta)
        say(f"Δ = {delta:g}: the limit to two tolerances ({i + 1} of {len(settings.deltas)})")
        start = init(problem, w=SCALE)
        solve = lambda tol, p=problem, s=start: limit(p, s, times, tol, observe=OBSERVED, progress=False)
        rough, fine = (finished(solve(tol)) for tol in settings.limits)
        say(f"Δ = {delta:g}: one-pass SGD, {round(times[-1] / STEP)} steps of {BATCH} samples")
        net = sgd(problem, i, settings)
        errors = np.abs(curves(fine) - curves(rough)).max(axis=1)
        errors[0] = 2 * (fine.info["error"] + net.info["expectation_error"])  # and one s.e. of the sample
        by_delta[delta] = (fine.t, curves(fine), curves(net))
        gaps = np.abs(curves(net) - curves(fine)).max(axis=1)
        for what, gap, error in zip(("2R", "∫r dρ"), gaps, errors, strict=True):
            name = f"Δ = {delta:g}: largest gap over {len(times)} times of {what}, SGD to limit"
            checks.append(Check(name, "0 as n → ∞, η → 0", gap, error, 0.0, settings.tolerance))
    say("the figure")
    return Outcome(tuple(checks), _draw(by_delta, settings.width))
