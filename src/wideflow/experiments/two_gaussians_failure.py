"""SGD that fails or succeeds by its start: two centred Gaussians, Mei, Montanari and Nguyen, PNAS 2018.

y = ±1 with equal probability, x ~ N(0, (1 ± Δ)² I_d), d = 320, Δ = 0.5, and neurons σ(⟨w, x⟩) with a σ that
is not monotone: −2.5 below 0, −4 at 0.5, 7.5 above 1.5, linear between. From w ~ N(0, (κ²/d) I) with κ = 0.1
all neurons collapse to w = 0 and the risk stays high; with κ = 0.4 none does, and it falls. Between the two
a part of the neurons collapses; κ* is where that is half of them. The limit moves r = |w| by

    ṙ = −∂_rΨ(r; ρ_t) = E[(y − f(q)) ∂_rσ̄(q; r)],   σ̄(q; r) = E_u σ(r q u), |x| = √d q.

As σ has a kink at 0, Ψ has one at r = 0, like |w|: a neuron comes to rest there in finite time, and no method
for smooth velocities gets past it. So the flow is that of descent with projection, r ← max(0, r − η∂_rΨ),
with steps that grow with time; its error is of order η, and a second resolution tells it.

Conventions. The paper's risk is E(y − f)² = 2R, R = ½E(y − f)² being the library's; it is the one on the axes
and in the checks. The paper's flow is ∂tρ = 2ξ∇·(ρ∇Ψ), the library's ∂tρ = ∇·(ρ∇Ψ): with ξ = 1 the paper's
time t is the library's 2t. Times here are the library's, t = kη."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..dynamics.sgd import SGD
from ..functionals.expectations import Sample
from ..functionals.risk import Risk
from ..loop import evolve
from ..problems.problem import Problem
from ..references import REFERENCES
from ..report.figures import COLOURS, panels
from ..run import Run
from ..states.starts import init
from .base import Check, Experiment, Outcome, finished
from .two_gaussians_dynamics import OBSERVED, problem_of

KNOTS = ((0.0, -2.5), (0.5, -4.0), (1.5, 7.5))
DIMENSION, DELTA, FAILS, SUCCEEDS = 320, 0.5, 0.1, 0.4
TIME, LARGEST = 10.0, 0.02  # the end, and the largest step
SCALES = np.concatenate([[0.1, 0.14], np.linspace(0.17, 0.24, 15), [0.28, 0.34, 0.4]])
DECIDED = 2.0  # a time at which each neuron has gone one way or the other
BRACKET = 1e-4  # width of the last one for κ*
NEAR_ZERO = 1e-2  # a radius below it counts as collapsed
LEAST = 1e-9  # stands for r = 0, where ∂_rσ̄ is that from the right
WIDTH, STEP, BATCH, SAMPLE = 400, 1e-3, 100, 2**13
SGD_TIMES = STEP * np.round(np.concatenate([[0.0], np.geomspace(0.01, 2, 10)]) / STEP)


@eqx.filter_jit
def _descent(neuron: Any, nodes: Any, r: Any, steps: Any) -> tuple[Any, Any]:
    """Projected descent of the radii; 2R and the mean radius before each step."""

    def move(r, step):
        sigma = lambda r: neuron.features(neuron.unpack(r[:, None]), nodes.x)
        mean, slope = jax.jvp(sigma, (r,), (jnp.ones_like(r),))
        u = nodes.y - jnp.mean(mean, axis=0)
        seen = nodes.weights @ u**2, jnp.mean(r)
        return jnp.maximum(LEAST, r + step * (slope @ (nodes.weights * u))), seen

    return jax.lax.scan(move, r, steps)


def grid(growth: float, end: float) -> np.ndarray:
    """Times whose steps grow by the factor 1 + growth up to the largest one."""
    steps = np.minimum(1e-2 * growth * (1 + growth) ** np.arange(20 / growth), LARGEST)
    ts = np.concatenate([[0.0], np.cumsum(steps)])
    return ts[: np.searchsorted(ts, end) + 1]


@dataclass(frozen=True)
class Limit:
    """The limit with so many quantiles of the start, order of E over x, and growth of the steps."""

    problem: Problem
    points: int
    order: int
    growth: float

    @cached_property
    def parts(self) -> tuple[Any, Any, Any]:
        """The reduced neuron, the nodes, and the radii of the start for κ = 1."""
        reduced = self.problem.reduced(self.order // 3)
        start = init(self.problem, w=1.0).reduced().points(self.points)
        return reduced.neuron, reduced.quadrature(self.order), start.theta[:, 0]

    def __call__(self, kappa: float, end: float = TIME) -> tuple[np.ndarray, np.ndarray]:
        """Radii at the end; rows t, 2R and ∫r dρ."""
        (neuron, nodes, radii), ts = self.parts, grid(self.growth, end)
        r, seen = _descent(neuron, nodes, kappa * radii, jnp.asarray(np.diff(ts)))
        return np.asarray(r), np.array([ts[:-1], *seen])

    def collapsed(self, kappa: float) -> float:
        """The part of the neurons that ends at w = 0."""
        return float(np.mean(self(kappa, DECIDED)[0] < NEAR_ZERO))

    def transition(self) -> float:
        """κ* by bisection."""
        low, high = FAILS, SUCCEEDS
        while high - low > BRACKET:
            middle = (low + high) / 2
            low, high = (middle, high) if self.collapsed(middle) > 0.5 else (low, middle)
        return (low + high) / 2


def sgd(problem: Problem, kappa: float) -> Run:
    """One-pass SGD of a network, in float32."""
    start = init(problem, w=kappa).sample(jax.random.key(1), WIDTH, dtype=jnp.float32)
    steps = SGD(Risk(problem, Sample(SAMPLE)), STEP, BATCH, one_pass=True)
    run = evolve(steps, start, SGD_TIMES, key=jax.random.key(2), observe=OBSERVED,
                 snapshots=False, progress=False)  # fmt: skip
    return finished(run)


def _draw(seen: dict[float, Any], nets: dict[float, Run], ends: np.ndarray, transition: float) -> Any:
    with panels(3, width=4.6, height=3.6) as (figure, axes):
        for colour, (kappa, (ts, *lines)) in zip(COLOURS, seen.items(), strict=False):
            net = nets[kappa]
            dots = (2 * np.asarray(net["risk"]), np.asarray(net["radius"]))
            style = {"ms": 4, "mfc": "none", "color": colour, "label": f"SGD, n = {WIDTH}"}
            for axis, line, points in zip(axes, lines, dots, strict=False):
                axis.plot(ts[1:], line[1:], color=colour, lw=2, label=f"limit, κ = {kappa:g}")
                axis.plot(net.t[1:], points[1:], "o", **style)
        for axis in axes[:2]:
            axis.set(xscale="log", xlim=(2e-3, None), xlabel="time t = kη (the paper's time is t/2)")
        axes[0].set(ylabel="risk E(y − f)² = 2R", ylim=(0, 9))
        axes[1].set(ylabel="mean radius ∫r dρ")
        axes[1].legend(fontsize=8, loc="upper left")
        axes[2].plot(SCALES, ends, "o-", ms=3, color=COLOURS[2], label=f"limit at t = {TIME:g}")
        axes[2].axvline(transition, color="0.3", ls=":", label=f"κ* = {transition:.4f}")
        axes[2].set(xlabel="scale κ of the start", ylabel="final risk 2R", yscale="log")
        axes[2].legend(fontsize=8)
    return figure


def run(say: Callable[[str], None]) -> Outcome:
    problem = problem_of(DIMENSION, DELTA, KNOTS)
    rough, fine = Limit(problem, 128, 30, 0.02), Limit(problem, 256, 39, 0.01)
    say("the limit from both starts, at two resolutions")
    seen = {kappa: fine(kappa)[1] for kappa in (FAILS, SUCCEEDS)}
    errors = {kappa: np.abs(seen[kappa][1:, -1] - rough(kappa)[1][1:, -1]) for kappa in seen}
    say("κ* by bisection, at two resolutions")
    transition, other = fine.transition(), rough.transition()
    say(f"κ* = {transition:.4f} ({other:.4f}); the final risk for {len(SCALES)} values of κ")
    ends = np.array([rough(kappa)[1][1, -1] for kappa in SCALES])
    nets, final = {}, {}
    for kappa in seen:
        say(f"one-pass SGD from κ = {kappa:g}, {round(SGD_TIMES[-1] / STEP)} steps of {BATCH} samples")
        net = nets[kappa] = sgd(problem, kappa)
        final[kappa] = 2 * float(net["risk"][-1]), 2 * net.info["expectation_error"]
    doubt, end = abs(transition - other) + BRACKET, f"2R at t = {SGD_TIMES[-1]:g}"
    (risk_low, radius_low), (risk_high, _) = (seen[kappa][1:, -1] for kappa in (FAILS, SUCCEEDS))
    checks = (
        Check(f"κ = {FAILS}: final mean radius", "0", radius_low, errors[FAILS][1], 0.0, NEAR_ZERO),
        Check(f"κ = {FAILS}: final 2R, that of f = σ(0)", "7.25", risk_low, errors[FAILS][0], 7.2, 7.3),
        Check(f"κ = {SUCCEEDS}: final 2R", "much lower", risk_high, errors[SUCCEEDS][0], 0.0, 0.1),
        Check("κ*, half of the neurons collapse", "0.1 … 0.4", transition, doubt, 0.11, 0.39),
        Check("error of κ*", "3 digits", doubt, BRACKET, 0.0, 1e-3),
        Check(f"SGD from κ = {FAILS}: {end}", "7.25", *final[FAILS], 7.0, 7.5),
        Check(f"SGD from κ = {SUCCEEDS}: {end}", "much lower", *final[SUCCEEDS], 0.0, 0.3),
    )
    return Outcome(checks, _draw(seen, nets, ends, transition))


EXPERIMENT = Experiment(
    "two-gaussians-failure",
    "With an activation that is not monotone SGD fails from a start κ = 0.1 and succeeds from κ = 0.4.",
    REFERENCES["mei2018"],
    run,
)
