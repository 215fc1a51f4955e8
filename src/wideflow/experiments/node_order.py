"""How fast the limit converges with the order of its Gauss rules: spectrally, where kinks are averaged.

The limit solver carries p Gauss nodes of each part of the start ρ̄₀(a, s, r) along the reduced flow of
y = φ(⟨w*, x⟩), a ~ N(0, 1), w ~ N(0, I/d). The risk at time t is then a smooth function of the start, and a
Gauss rule converges faster than any power of its order:

- erf and tanh: smooth as they are;
- relu: the kink is averaged over the sphere in closed form, E_u (h + ρu)₊, which is smooth in (s, r).

The error has a sign, and that of relu changes it near 8 nodes of a, so that it is small there by chance:
the decay from one order to the next is asked of erf alone, that from the first order to the last of all.

A kink that is *not* cut leaves a power law. The mean E_u φ(h + ρu) over one coordinate u of the sphere of
radius √m in R^m, m = d − 1, has p Gauss–Gegenbauer nodes, whose distance near u = 0 is

    h_p = π√m / N,   N² = p² + (m − 2)p + (m − 2)/2,

(the WKB density of the zeros of a Gegenbauer polynomial). A kink of slope 1 at c costs, as in the
Euler–Maclaurin formula, ½h_p² w(c) B₂(phase), w the density of u and B₂ the periodic Bernoulli function;
a jump costs h_p w(c) B₁(phase). So the error of E_u φ falls like N^−2 and that of E_u φ' like N^−1, hence
p^−1 and p^−½ for p ≪ d, and p^−2 and p^−1 for p ≫ d."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from ..diagnostics.scaling import Slope, fit_slope
from ..dynamics.flow import GradientFlow
from ..figures import COLOURS, panels
from ..functionals.expectations import Quadrature
from ..functionals.risk import Risk
from ..loop import evolve
from ..problems.activations import Activation, activation, derivative
from ..problems.laws import Gaussian
from ..problems.neurons import Neuron
from ..problems.problem import Problem
from ..problems.sphere_mean import sphere_mean
from ..problems.targets import single_index
from ..states.particles import Particles
from ..states.starts import init
from .base import Check, Outcome, Say, finished, slope_check

DIMENSION, TIME = 50, 2.0
RTOL = 1e-11
REFERENCE = {"a": 40, "s": 7, "r": 7}
OTHERS = {"a": 8, "s": 2, "r": 2}  # the orders of the parts that are held fixed
# Orders of E over x and u, fine enough for smoothness in a: tanh, with its poles, needs more than erf.
SMOOTH = {"erf": (40, 24), "tanh": (48, 32), "relu": (40, 24)}
FLOOR = 1e-9  # where the digits of the time steps come into sight
UNCUT = Activation("relu_uncut", jax.nn.relu)  # its kink is not stated, so no rule cuts there


def _orders() -> dict[str, tuple[int, ...]]:
    return {"a": (4, 6, 8, 12, 18, 27), "s": (1, 2, 3, 4, 5), "r": (1, 2, 3, 4, 5)}


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    links: tuple[str, ...] = ("erf", "tanh", "relu")
    orders: dict[str, tuple[int, ...]] = field(default_factory=_orders)  # of each part of the start
    mean_orders: tuple[int, ...] = (12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
    pairs: int = 4000  # of (h, ρ), for the rms error of E_u φ
    tolerance: float = 0.2  # on the exponents of a kink that is not cut


FULL = Settings()
# Fewer orders of the same decay, whose factors are asked for as they are; the exponents rest on a quarter of
# the pairs and on fewer phases of the kink, which the fitted error bars include.
REDUCED = Settings(
    links=("erf",),
    orders={"a": (4, 6, 12, 18), "s": (1, 3), "r": (1, 3)},
    mean_orders=(12, 24, 48, 96, 192),
    pairs=1000,
)


Curves = dict[tuple[str, str], np.ndarray]  # errors by (activation, part of the start)
Laws = dict[str, tuple[np.ndarray, Slope]]


def risk_at_end(phi: str, nodes: dict[str, int]) -> float:
    """R at t = TIME of the reduced flow from a product of Gauss rules, all other orders fixed."""
    problem = Problem(x=Gaussian(DIMENSION), target=single_index(phi), neuron=Neuron(phi))
    order_x, order_u = SMOOTH[phi]
    reduced = problem.reduced(order_u)
    start = _padded(init(problem).reduced().on(reduced).nodes(nodes, least=1e-16))
    flow = GradientFlow(Risk(reduced, Quadrature(order_x)), rtol=RTOL, solver=diffrax.Dopri8())
    return float(finished(evolve(flow, start, [TIME], snapshots=False))["risk"][-1])


def _padded(particles: Particles) -> Particles:
    """With copies that weigh nothing, so that few sizes are compiled."""
    more = -particles.n % 64
    theta = np.pad(particles.theta, ((0, more), (0, 0)), mode="edge")
    return Particles(theta, np.pad(particles.weights, (0, more)), neuron=particles.neuron)


def errors_of(phi: str, part: str, orders: tuple[int, ...], say: Say) -> np.ndarray:
    """R_p − R_reference, with its sign, for the orders p of one part of the start."""
    say(f"{phi}: {len(orders) + 1} orders of the nodes of {part}")
    exact = risk_at_end(phi, OTHERS | {part: REFERENCE[part]})
    errors = np.array([risk_at_end(phi, OTHERS | {part: p}) - exact for p in orders])
    say("   " + ", ".join(f"{p}: {e:+.1e}" for p, e in zip(orders, errors, strict=True)))
    return errors


def effective_order(p: Any) -> np.ndarray:
    """N with h_p = π√m/N."""
    m, p = DIMENSION - 1, np.asarray(p, float)
    return np.sqrt(p**2 + (m - 2) * p + (m - 2) / 2)


def mean_errors(phi: Activation, exact: Callable[..., Any], settings: Settings) -> np.ndarray:
    """Rms over x of the error of E_u φ(h + ρu) in p nodes, for aligned neurons; rows (rms, error).

    Aligned, s = 1, h = x₁ and ρ = rq: the kinks are then spread over many nodes and so over all phases."""
    m, pairs, rng = DIMENSION - 1, settings.pairs, np.random.default_rng(0)
    h = rng.normal(size=pairs)
    rho = np.sqrt(rng.chisquare(m, pairs) / DIMENSION * rng.chisquare(m, pairs) / m)
    errors = []
    for p in settings.mean_orders:
        squares = (
            np.asarray(sphere_mean(phi, jnp.asarray(h), jnp.asarray(rho), m, p)) - exact(h, rho, m)
        ) ** 2
        rms = np.sqrt(squares.mean())
        errors.append((rms, squares.std(ddof=1) / np.sqrt(pairs) / (2 * rms)))
    return np.array(errors)


def uncut_laws(settings: Settings) -> Laws:
    """The errors of E_u φ and E_u φ' where the kink of relu is not cut, and their slopes in N."""
    relu, order = activation("relu"), 64
    value = lambda h, rho, m: np.asarray(sphere_mean(relu, h, rho, m, order))
    slope = lambda h, rho, m: np.asarray(sphere_mean(derivative(relu), h, rho, m, order))
    cases = {"E φ": (UNCUT, value), "E φ'": (derivative(UNCUT), slope)}
    laws = {name: mean_errors(*case, settings) for name, case in cases.items()}
    n = effective_order(settings.mean_orders)
    return {name: (rows, fit_slope(n, rows[:, 0], rows[:, 1])) for name, rows in laws.items()}


def _least_factor(orders: tuple[int, ...], errors: np.ndarray) -> float:
    """The least factor by which an error > FLOOR falls where the order grows by a half."""
    by_order = dict(zip(orders, np.abs(errors), strict=True))
    steps = [(e, by_order[p * 3 // 2]) for p, e in by_order.items() if p % 2 == 0 and p * 3 // 2 in by_order]
    return min(before / max(after, 1e-16) for before, after in steps if before > FLOOR)


def _mean_factor(errors: np.ndarray, steps: float) -> float:
    """The factor of each of `steps` equal steps from the first to the last order, down to FLOOR; unlike the
    least factor it is robust to an order at which the error happens to change its sign."""
    first, last = abs(errors[0]), max(abs(errors[-1]), FLOOR)
    return float((first / last) ** (1 / steps))


def _checks(curves: Curves, laws: Laws, settings: Settings) -> list[Check]:
    orders = settings.orders
    least = _least_factor(orders["a"], curves["erf", "a"])
    what = "erf: least factor by which the error falls for +50% nodes of a"
    checks = [Check(what, "10 or more", least, 0.0, 10.0, np.inf)]
    for phi in settings.links:
        factor = _mean_factor(curves[phi, "a"], math.log(orders["a"][-1] / orders["a"][0], 1.5))
        what = f"{phi}: mean factor by which the error falls for +50% nodes of a"
        checks.append(Check(what, "10 or more", factor, 0.0, 10.0, np.inf))
    for part in ("s", "r"):
        factor = _mean_factor(curves["erf", part], orders[part][-1] - orders[part][0])
        what = f"erf: mean factor by which the error falls for one more node of {part}"
        checks.append(Check(what, "5 or more", factor, 0.0, 5.0, np.inf))
    what, within = "uncut relu: slope in N of the rms error of", settings.tolerance
    checks.append(slope_check(f"{what} E φ", laws["E φ"][1], -2, within))
    checks.append(slope_check(f"{what} E φ'", laws["E φ'"][1], -1, within))
    return checks


def _draw(curves: Curves, laws: Laws, settings: Settings) -> Any:
    """Spectral decay by part of the start, and the power law of a kink that is not cut."""
    with panels(3) as (figure, axes):
        orders = settings.orders
        for i, phi in enumerate(settings.links):
            axes[0].semilogy(orders["a"], abs(curves[phi, "a"]), "o-", ms=4, color=COLOURS[i], label=phi)
        axes[0].set(xlabel="order of the Gauss nodes of a", ylabel=f"error of the risk at t = {TIME:g}")
        for i, part in enumerate(("s", "r")):
            errors = abs(curves["erf", part])
            axes[1].semilogy(orders[part], errors, "o-", ms=4, color=COLOURS[i], label=f"erf, {part}")
        axes[1].set(xlabel="order of the Gauss nodes of s or r", ylabel=f"error of the risk at t = {TIME:g}")
        n = effective_order(settings.mean_orders)
        for i, (name, (rows, slope)) in enumerate(laws.items()):
            axes[2].errorbar(n, rows[:, 0], rows[:, 1], fmt="o", ms=4, color=COLOURS[i])
            label = f"{name}: slope {slope.value:+.3f} ± {slope.error:.3f}"
            axes[2].loglog(n, slope.at(n), "--", color=COLOURS[i], label=label)
        axes[2].set(xlabel="effective order N of the mean over u", ylabel="rms error, relu with kink not cut")
        axes[2].minorticks_off()
        axes[2].set_xticks((30, 60, 120, 240), labels=("30", "60", "120", "240"))
        for axis in axes:
            axis.legend()
    return figure


def run(say: Say, settings: Settings = FULL) -> Outcome:
    cases = [(phi, "a") for phi in settings.links] + [("erf", part) for part in ("s", "r")]
    curves = {(phi, part): errors_of(phi, part, settings.orders[part], say) for phi, part in cases}
    say("relu with its kink not cut")
    laws = uncut_laws(settings)
    return Outcome(tuple(_checks(curves, laws, settings)), _draw(curves, laws, settings))
