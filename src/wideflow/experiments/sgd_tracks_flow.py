"""SGD tracks the mean-field flow: Mei, Misiakiewicz and Montanari, COLT 2019, Theorem 1.

One-pass SGD with n neurons and step η stays close to the distributional dynamics ρ_t at t = kη:

    sup_k |R_n(θ^k) − R(ρ_kη)| ≲ Ke^{KT}(√(log n)/√n + √((D + log n) η)).

The bound is on a function of the network f; its two terms are measured on f itself, at a fixed time:

- the rms over x and seeds of f_SGD − f_flow, from the same start, falls like η^½;
- the rms over x and seeds of f_n − f_∞, along the flow, falls like n^−½.

The set-up keeps to where the two terms rule alone: η ≪ 1/D² and n ≫ D. The limit f_∞ is the flow of
Gauss nodes of the start as weighted particles, exact to many more digits than are needed."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..diagnostics.scaling import Slope, fit_slope, rms_and_error
from ..dynamics.flow import GradientFlow
from ..dynamics.sgd import SGD
from ..figures import COLOURS, panels, power_law
from ..functionals.risk import Risk
from ..loop import evolve
from ..problems.laws import Gaussian
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..problems.targets import single_index
from ..states.particles import Particles
from ..states.replicas import stack
from ..states.starts import init
from .base import Outcome, Say, finished, slope_check

DIMENSION, TIME = 2, 2.0
SGD_WIDTH = 256


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    steps: tuple[float, ...] = tuple(2.0**-k for k in range(5, 11))
    widths: tuple[int, ...] = (16, 32, 64, 128, 256, 512)
    seeds: int = 64
    tolerance: float = 0.1  # on either exponent, three times the error bar with these seeds
    orders: tuple[int, int] = (10, 20)  # of the Gauss nodes of a and w, for the limit
    drawn: tuple[int, ...] = (30, 300)  # widths in the figure


FULL = Settings()
# Two steps and two widths a factor of 16 apart give each exponent an error bar of 0.06. The limit's nodes are
# still exact to more digits than are needed.
REDUCED = Settings((2.0**-5, 2.0**-9), (16, 256), tolerance=0.25, orders=(6, 8), drawn=(256,))


def limit_start(problem: Problem, orders: tuple[int, int]) -> Particles:
    """Gauss nodes of a ~ N(0, 1), w ~ N(0, I/d) as weighted particles: the start of the limit."""
    return init(problem).nodes(dict(zip(("a", "w"), orders, strict=True)))


def _squared_gaps(f: Any, g: Any) -> np.ndarray:
    """Mean over x of (f − g)², one for each replica."""
    return np.asarray(jnp.mean((f - g) ** 2, axis=-1))


def _keys(first: int, count: int) -> Any:
    return jax.vmap(jax.random.key)(np.arange(first, first + count))


def step_law(problem: Problem, x: Any, settings: Settings, say: Say) -> tuple[np.ndarray, Slope]:
    """Rms gap of SGD to the flow from the same start, for each step; rows (rms, error)."""
    risk = Risk(problem)
    start = init(problem).sample(jax.random.key(0), SGD_WIDTH)
    flow = finished(evolve(GradientFlow(risk), start, [TIME])).final(x)
    rows, starts = [], stack([start] * settings.seeds)
    for i, step in enumerate(settings.steps):
        say(f"SGD with step {step:.2g} ({i + 1} of {len(settings.steps)})")
        run = evolve(SGD(risk, step), starts, [TIME], key=_keys(1000 * i, settings.seeds))
        rows.append(rms_and_error(_squared_gaps(finished(run).final(x), flow)))
    measured = np.array(rows)
    return measured, fit_slope(settings.steps, measured[:, 0], measured[:, 1])


def width_law(problem: Problem, x: Any, settings: Settings, say: Say) -> tuple[np.ndarray, Slope]:
    """Rms gap of the flow of n neurons to the limit, for each width; rows (rms, error)."""
    flow = GradientFlow(Risk(problem))
    say("the limit, from Gauss nodes")
    limit = finished(evolve(flow, limit_start(problem, settings.orders), [TIME])).final(x)
    rows, seeds = [], settings.seeds
    for i, n in enumerate(settings.widths):
        say(f"flow of {n} neurons ({i + 1} of {len(settings.widths)})")
        starts = init(problem).sample(_keys(10_000 * (i + 1), seeds), n, replicas=seeds)
        run = finished(evolve(flow, starts, [TIME]))
        rows.append(rms_and_error(_squared_gaps(run.final(x), limit)))
    measured = np.array(rows)
    return measured, fit_slope(settings.widths, measured[:, 0], measured[:, 1])


def _draw(problem: Problem, settings: Settings, steps: Any, widths: Any) -> Any:
    """Three panels: SGD beside the limit, and the two laws with their fitted slopes."""
    ts, risk = np.linspace(0, 5, 41), Risk(problem)
    limit = evolve(GradientFlow(risk), limit_start(problem, settings.orders), ts)
    with panels(3) as (figure, axes):
        axes[0].plot(limit.t, limit["risk"], color="black", lw=2, label="limit")
        for i, n in enumerate(settings.drawn):
            start = init(problem).sample(jax.random.key(7), n)
            run = evolve(SGD(risk, 2.0**-8), start, ts, key=jax.random.key(8))
            axes[0].plot(run.t, run["risk"], color=COLOURS[i], lw=1, label=f"SGD, n = {n}, η = 2⁻⁸")
        axes[0].set(xlabel="time t = kη", ylabel="risk R", yscale="log")
        axes[0].legend()
        rms = lambda gap: f"rms of {gap} at t = {TIME:g}"
        laws = (
            (axes[1], settings.steps, steps, ("step η", rms("f(SGD) − f(flow)"))),
            (axes[2], settings.widths, widths, ("width n", rms("f(n) − f(limit)"))),
        )
        for axis, xs, (measured, slope), labels in laws:
            power_law(axis, xs, measured[:, 0], measured[:, 1], slope, labels)
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    problem = Problem(x=Gaussian(DIMENSION), target=single_index("erf"), neuron=Neuron("erf"))
    x = problem.sample(jax.random.key(99), 2000).x
    steps, widths = (law(problem, x, settings, say) for law in (step_law, width_law))
    say("the figure")
    checks = (
        slope_check("slope in η of the rms of f_SGD − f_flow", steps[1], 0.5, settings.tolerance),
        slope_check("slope in n of the rms of f_n − f_limit", widths[1], -0.5, settings.tolerance),
    )
    return Outcome(checks, _draw(problem, settings, steps, widths))
