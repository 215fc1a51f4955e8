"""From lazy to mean field by the scale α alone: Chizat, Oyallon and Bach, NeurIPS 2019.

One problem for all α from 10⁻² to 10³: m points in the plane, y smooth and odd, neurons a erf(⟨w, x⟩) with
a = ±1 at the start, centred (f = 0 at the start: each neuron beside its mirror image with −a), the gradient
flow to one time t. The distance of two functions is the root mean square over the data.

- To the mean-field limit (n = ∞, the same α) a network of n neurons is near at every α: distance ~ n^−½.
- To the NTK limit (n = ∞ and α = ∞, u_t = exp(−K₀Ωt)u₀) the mean-field limit comes like α^−2, and the network
  until its own n^−½.
- The network minus its linearisation at its start is c₁/(α√n) + c₂/α². Mirrored neurons have c₁ = 0: slope
  −2 in α. Independent ones, centred by y + f(θ₀) in place of y, have the slope −1 where α ≫ √n.

n = ∞ is the flow of low-discrepancy points of the start and their mirror images; another scramble of them
shows its error. For small α the flow is fast, as θ̇ = (1/α)E[u∇σ*] (at α = 10⁻² neurons grow thirtyfold and
the kernel a hundredfold), yet not too stiff for the explicit method: about 60 steps to t = 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..diagnostics.scaling import Slope, fit_slope, rms_and_error
from ..dynamics.flow import GradientFlow
from ..dynamics.kernel_flow import KernelFlow
from ..dynamics.linearised import Linearised
from ..figures import COLOURS, panels
from ..functionals.risk import Risk
from ..loop import evolve
from ..problems.laws import Dataset
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..states.marginals import Rademacher
from ..states.particles import Particles
from ..states.starts import Law, init
from .base import Check, Outcome, Say, finished, slope_check

POINTS, RADIUS, TIME = 24, 1.5, 1.0
SHOWN = (1e-2, 1.0, 1e3)  # scales at which the law in n is a check
LAZY = 10.0  # from here on the corrections to α^−2 are a few per cent
MIRRORED_WIDTH, PLAIN_WIDTH = 32, 16
NEAR = "|f_n − mean-field limit|"
FAR = 30.0  # ≫ √PLAIN_WIDTH: there c₂/α² is a tenth of c₁/(α√n)


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    alphas: tuple[float, ...] = tuple(10.0 ** (k / 2) for k in range(-4, 7))
    widths: tuple[int, ...] = (64, 128, 256, 512, 1024)
    seeds: int = 48
    limit_points: int = 2**12
    gap_alphas: tuple[float, ...] = tuple(10.0 ** (k / 2) for k in range(7))
    gap_seeds: int = 32
    law_in_n: float = 0.15  # on the exponent, three error bars with these seeds
    nearest: float = 0.02  # the widest networks' distance to the mean-field limit / |y|
    apart: float = 100.0  # at the least α, the distance to the NTK limit over that to the mean-field limit
    same: float = 0.01  # at the largest, how far that ratio is from 1
    gap_slope: float = 0.1  # thrice the error bars and what c₂/α² adds


FULL = Settings()
# A third of the seeds: √3 times the error bars. The widest network is a quarter as wide, twice as far from
# the limit: both tolerances of its distances are doubled. The gaps of four starts have
# error bars of 0.05 (the same starts at all scales: the exponents themselves are nearer).
REDUCED = Settings(
    alphas=(1e-2, 1.0, 1e1, 1e2, 1e3),
    widths=(64, 256),
    seeds=16,
    limit_points=2**11,
    gap_alphas=(1e1, 1e2, 1e3),
    gap_seeds=4,
    law_in_n=0.3,
    nearest=0.04,
    apart=50.0,
    same=0.02,
    gap_slope=0.25,
)


def data() -> tuple[np.ndarray, np.ndarray]:
    """Points spread evenly over a disc, and y = sin(2x₁ − x₂) on them."""
    k = np.arange(POINTS)
    radius, angle = RADIUS * np.sqrt((k + 0.5) / POINTS), np.pi * (3 - np.sqrt(5)) * k
    x = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return x, np.sin(2 * x[:, 0] - x[:, 1])


def risk_on(x: np.ndarray, y: Any) -> Risk:
    return Risk(Problem(x=Dataset(x, np.asarray(y)), neuron=Neuron("erf")))


def start_of(risk: Risk) -> Law:
    return init(risk.problem, a=Rademacher())


def limit_start(law: Law, alpha: float, scramble: int = 0, points: int = FULL.limit_points) -> Particles:
    """Low-discrepancy points of the start, each beside its mirror image: f = 0, as in the limit."""
    theta = law.points(points, seed=scramble).theta
    mirrored = theta * jnp.array([-1.0] + [1.0] * (theta.shape[1] - 1))
    return Particles(jnp.concatenate([theta, mirrored]), alpha=alpha, neuron=law.neuron)


def flowed(risk: Risk, start: Particles, digits: float = 1e-6, linearised: bool = False) -> np.ndarray:
    """f at TIME on the data, (points) or (replicas, points); all replicas have one α. An error of θ is one α
    times larger of f, hence the tolerance."""
    flow = GradientFlow(risk, rtol=digits / max(1.0, float(np.max(start.alpha))))
    dynamics = Linearised(flow) if linearised else flow
    run = finished(evolve(dynamics, start, [TIME], progress=False, snapshots=False))
    return np.asarray(run.final(data()[0]))


def distance(f: np.ndarray, g: np.ndarray) -> float:
    return float(np.sqrt(np.mean((f - g) ** 2)))


class Limits(NamedTuple):
    """The functions at TIME for n = ∞: at each α, and the NTK limit; from two scrambles of the points."""

    mean_field: np.ndarray  # (scrambles, alphas, points)
    ntk: np.ndarray  # (scrambles, points)

    @property
    def error(self) -> np.ndarray:
        """Distance of the two mean-field limits, for each α."""
        return np.array([distance(f, g) for f, g in zip(*self.mean_field, strict=True)])

    @property
    def apart(self) -> np.ndarray:
        """Distance of mean-field and NTK limit: rows (value, error) for each α."""
        first, second = (
            np.array([distance(f, ntk) for f in fs])
            for fs, ntk in zip(self.mean_field, self.ntk, strict=True)
        )
        return np.column_stack([first, np.maximum(np.abs(second - first), 1e-4 * first)])


def limits(risk: Risk, law: Law, settings: Settings, say: Say) -> Limits:
    mean_field, ntk, points = [], [], settings.limit_points
    for scramble in (0, 1):
        say(f"limits from {2 * points} points, scramble {scramble + 1} of 2")
        digits = [1e-9 if alpha >= LAZY else 1e-6 for alpha in settings.alphas]  # α^−2 is to be seen there
        starts = [limit_start(law, alpha, scramble, points) for alpha in settings.alphas]
        mean_field.append([flowed(risk, *args) for args in zip(starts, digits, strict=True)])
        frozen = evolve(KernelFlow(risk), limit_start(law, 1.0, scramble, points), [TIME], progress=False)
        ntk.append(np.asarray(finished(frozen).final(data()[0])))
    return Limits(np.array(mean_field), np.array(ntk))


def network_distances(
    risk: Risk, law: Law, alpha: float, width: int, targets: Sequence[np.ndarray], seeds: int
) -> np.ndarray:
    """Rms over starts of a network's distance to each of the functions: rows (rms, error)."""
    keys = jax.vmap(jax.random.key)(100_000 * width + np.arange(seeds))
    f = flowed(risk, law.sample(keys, width, alpha, mirrored=True, replicas=seeds))
    return np.array([rms_and_error(np.mean((f - target) ** 2, axis=-1)) for target in targets])


def linearisation_gaps(width: int, mirrored: bool, alphas: Sequence[float], seeds: int) -> np.ndarray:
    """Rms over starts of the network minus its linearisation, for each α: rows (rms, error)."""
    x, y = data()
    law = start_of(risk_on(x, y))
    squares = np.zeros((len(alphas), seeds))
    keys = jax.vmap(jax.random.key)(np.arange(seeds))
    for i, alpha in enumerate(alphas):
        starts = law.sample(keys, width, alpha, mirrored=mirrored, replicas=seeds)
        # mirrored neurons have f(θ₀) = 0 and share their data; others have labels of their own
        groups = [(y, starts)] if mirrored else [(y + _outputs(s, x), s) for s in _singles(starts)]
        both = [[flowed(risk_on(x, z), s, 1e-9, linear) for linear in (False, True)] for z, s in groups]
        f, linear = (np.concatenate([np.atleast_2d(pair[k]) for pair in both]) for k in (0, 1))
        squares[i] = np.mean((f - linear) ** 2, axis=-1)
    return np.array([rms_and_error(row) for row in squares])


def _singles(starts: Particles) -> list[Particles]:
    return [starts.replica(r) for r in range(starts.replicas or 0)]


def _outputs(start: Particles, x: np.ndarray) -> np.ndarray:
    return np.asarray(start(jnp.asarray(x)))


def gap_slope(alphas: Sequence[float], gaps: np.ndarray, least: float) -> Slope:
    kept = np.asarray(alphas) >= least
    return fit_slope(np.asarray(alphas)[kept], *gaps[kept].T)


def _law_in_n(distances: dict[int, np.ndarray], alpha: float, settings: Settings) -> Slope:
    """The exponent in n of the distance to the mean-field limit."""
    rows = np.array([distances[width][settings.alphas.index(alpha), 0] for width in settings.widths])
    return fit_slope(settings.widths, *rows.T)


def limit_checks(
    distances: dict[int, np.ndarray], ends: Limits, size: float, settings: Settings
) -> list[Check]:
    """`distances[width]` is (alphas, (mean field, NTK), (rms, error))."""
    alphas, widest = settings.alphas, settings.widths[-1]
    laws = {alpha: _law_in_n(distances, alpha, settings) for alpha in SHOWN}
    checks = [
        slope_check(f"α = {alpha:g}: slope in n of {NEAR}", law, -0.5, settings.law_in_n)
        for alpha, law in laws.items()
    ]
    wide = distances[widest]
    worst = int(np.argmax(wide[:, 0, 0]))
    near, error = wide[worst, 0] / size
    what = f"n = {widest}: largest {NEAR} / |y| over all α"
    checks.append(Check(what, "small everywhere", near, error, 0.0, settings.nearest))
    ratio = wide[:, 1, 0] / wide[:, 0, 0]
    what = f"n = {widest}: distance to the NTK limit over that to the mean-field limit, α = "
    error = ratio[0] * np.hypot(*(wide[0, :, 1] / wide[0, :, 0]))
    least = settings.apart
    checks.append(Check(f"{what}{alphas[0]:g}", f"> {least:g}", ratio[0], error, least, 1e5))
    # the two targets are so much apart: by the triangle inequality the ratio is no more so
    error = ends.apart[-1, 0] / wide[-1, 0, 0]
    same = settings.same
    checks.append(Check(f"{what}{alphas[-1]:g}", "1", ratio[-1], error, 1 - same, 1 + same))
    slope = gap_slope(alphas, ends.apart, LAZY)
    # the next term is c/α⁴, a few per cent at α = LAZY
    checks.append(slope_check("slope in α of |mean-field limit − NTK limit|", slope, -2.0, 0.02))
    shares = ends.error / wide[:, 0, 0]
    worst = int(np.argmax(shares))
    what = "largest error of the mean-field limit / |f_n − limit| of the widest networks"
    error = shares[worst] * wide[worst, 0, 1] / wide[worst, 0, 0]
    return [*checks, Check(what, "≪ 1", shares[worst], error, 0.0, 0.5)]


def gap_checks(mirrored: np.ndarray, plain: np.ndarray, settings: Settings) -> list[Check]:
    """The two slopes in α."""
    alphas, within, what = settings.gap_alphas, settings.gap_slope, "slope in α of |f − its linearisation|"
    return [
        slope_check(f"{what}, mirrored neurons", gap_slope(alphas, mirrored, LAZY), -2.0, within),
        slope_check(f"{what}, independent neurons, α ≫ √n", gap_slope(alphas, plain, FAR), -1.0, within),
    ]


def _draw(
    distances: dict[int, np.ndarray], ends: Limits, gaps_of: tuple[np.ndarray, np.ndarray], settings: Settings
) -> Any:
    alphas, gap_alphas, (mirrored, plain) = settings.alphas, settings.gap_alphas, gaps_of
    style: dict[str, Any] = {"ms": 4, "capsize": 2, "lw": 1.2}
    with panels(2, width=6.4, height=4.6) as (figure, (left, right)):
        for i, width in enumerate(settings.widths[::2]):
            rows = distances[width]
            for which, (name, mark) in enumerate((("mean-field limit at α", "o-"), ("NTK limit", "s--"))):
                label = f"n = {width} to the {name}"
                left.errorbar(alphas, *rows[:, which].T, fmt=mark, color=COLOURS[i], label=label, **style)
        left.plot(alphas, ends.apart[:, 0], color="black", lw=2, label="mean-field limit to the NTK limit")
        left.plot(alphas, ends.error, ":", color="0.5", label="error of the mean-field limit")
        left.set(ylabel="distance of functions (rms over the data)", title=f"Centred start, t = {TIME:g}")
        cases = (
            (mirrored, LAZY, f"mirrored neurons, n = {MIRRORED_WIDTH}", COLOURS[0]),
            (plain, FAR, f"independent neurons, n = {PLAIN_WIDTH}", COLOURS[1]),
        )
        for gaps, least, label, colour in cases:
            slope = gap_slope(gap_alphas, gaps, least)
            label = f"{label}: slope {slope.value:+.3f} ± {slope.error:.3f}"
            right.errorbar(gap_alphas, *gaps.T, fmt="o", color=colour, label=label, **style)
            line = np.array([least, gap_alphas[-1]])
            right.plot(line, slope.at(line), "--", color=colour)
        right.set(ylabel="network − its linearisation (rms)", title=f"Linearisation gap, t = {TIME:g}")
        for axis in (left, right):
            axis.set(xlabel="scale α", xscale="log", yscale="log")
        left.legend(fontsize=7.5, loc="lower left")
        right.legend(fontsize=8.5)
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    x, y = data()
    risk = risk_on(x, y)
    law = start_of(risk)
    ends = limits(risk, law, settings, say)
    distances: dict[int, np.ndarray] = {}
    for width in settings.widths:
        rows = []
        for alpha, limit in zip(settings.alphas, ends.mean_field[0], strict=True):
            say(f"{settings.seeds} networks of {width} neurons, α = {alpha:.3g}")
            rows.append(network_distances(risk, law, alpha, width, (limit, ends.ntk[0]), settings.seeds))
        distances[width] = np.array(rows)
    say("networks beside their linearisations")
    cases = (MIRRORED_WIDTH, True), (PLAIN_WIDTH, False)
    mirrored, plain = (linearisation_gaps(*one, settings.gap_alphas, settings.gap_seeds) for one in cases)
    size = float(np.sqrt(np.mean(y**2)))
    checks = (*limit_checks(distances, ends, size, settings), *gap_checks(mirrored, plain, settings))
    return Outcome(checks, _draw(distances, ends, (mirrored, plain), settings))
