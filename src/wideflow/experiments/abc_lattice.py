"""The classification of Yang and Hu (2021) on a quarter-integer lattice, and measured exponents behind it.

All parametrisations of depth 2 with exponents in {−1, −¾, …, 2}, each trained function once, are classified
by the theorem's inequalities. Then some of each class are measured: from random starts of widths n the
exponents of f(0), of the features' velocity dh_2/dη and of df/dη at η = 0, which is the first step at a small
rate. Where f(0) blows up, the residual is f(0) itself (labels 0); else the centred model is trained, whose
residual is the labels: in between, both would mix at finite n. Drawn are parametrisations whose first step
decides (a + b ≤ 2a + c in the last layer), as a second one is not measured."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._tracing import jit
from ..diagnostics.scaling import Slope, fit_slope, rms_and_error
from ..figures import COLOURS, panels
from ..parametrisations import Parametrisation, lattice
from ..states.family import MLP
from ..states.network import Network, Weights
from ..verdicts import FEATURES, LAZY, TRIVIAL, UNSTABLE
from .base import Check, Outcome, Say

DEPTH, DIMENSION, POINTS = 2, 8, 4
FAMILY = MLP(DIMENSION, DEPTH, "relu", input_scale="front")  # layers of like weight in the kernel
NAMES = ("f(0)", "Δh", "Δf")
ORDER = (UNSTABLE, TRIVIAL, LAZY, FEATURES)


@dataclass(frozen=True)
class Settings:
    """How much is measured; the defaults are the published run's."""

    widths: tuple[int, ...] = (256, 724, 2048)
    seeds: int = 40
    of_each_class: int = 8
    tolerance: float = 0.15  # terms that are n^−¼ smaller still count for 0.1 in a slope at these widths
    confirmed: int = 30  # parametrisations, or more


FULL = Settings()
# At a quarter of the widths such terms are 4^¼ = 1.4 times as large, and fewer seeds have error bars of 0.03.
REDUCED = Settings((64, 181, 512), seeds=24, of_each_class=2, tolerance=0.24, confirmed=7)


@jit
def first_steps(normals: Any, rule: Parametrisation, n: int, x: Any, y: Any, centred: Any) -> Any:
    """`first_step` of every start, one after the other. Exponents are traced: one compilation per width."""
    return jax.lax.map(lambda parts: first_step(parts, rule, n, x, y, centred), normals)


def first_step(normals: Any, rule: Parametrisation, n: int, x: Any, y: Any, centred: Any) -> Any:
    """Mean squares of f(0), dh_L/dη and df/dη."""
    sds = FAMILY.deviations(rule, n)
    parts = tuple(Weights(sd * part.w, None) for sd, part in zip(sds, normals, strict=True))
    start = Network(parts, FAMILY, n, rule)
    f0 = start(x)
    signal = (y - jnp.where(centred, 0.0, f0)) / POINTS
    velocity = start.vjp(x, signal)
    both = lambda parts: (start.with_parts(parts)(x), start.with_parts(parts).features(x)[-1])
    _, (df, dh) = jax.jvp(both, (start.parts,), (velocity,))
    return jnp.stack([jnp.mean(v**2) for v in (f0, dh, df)])


def starts(n: int, seeds: int) -> Any:
    """Standard normal weights of `seeds` networks of width n, along a leading axis."""
    keys = jax.random.split(jax.random.key(n), seeds)
    draw = lambda key, i, shape: jax.random.normal(jax.random.fold_in(key, i), shape, jnp.float32)
    layer = lambda i, shape: jax.vmap(lambda key: draw(key, i, shape))(keys)
    return tuple(Weights(layer(i, shape), None) for i, shape in enumerate(FAMILY.weight_shapes(n)))


def exponents(rule: Parametrisation, normals: dict[int, Any]) -> list[Slope]:
    """Measured exponents of f(0), Δh and Δf with error bars over starts."""
    x = jax.random.normal(jax.random.key(1), (POINTS, DIMENSION), jnp.float32)
    centred = rule.exponents().residual == 0
    y = jnp.where(centred, jnp.sign(x[:, 0]), 0.0).astype(jnp.float32)
    rows = []
    for n in normals:
        leaves = jax.tree.map(lambda v: jnp.asarray(v, jnp.float32), rule)
        squares = np.array(first_steps(normals[n], leaves, n, x, y, centred), float)
        rows.append([rms_and_error(column) for column in squares.T])
    measured = np.array(rows)
    return [fit_slope(list(normals), measured[:, i, 0], measured[:, i, 1]) for i in range(3)]


def verdict(f0: float, dh: float, df: float, tie: float) -> str:
    """The class by measured exponents."""
    if max(f0, dh, df) > tie / 2:
        return UNSTABLE
    if df < -tie / 2:
        return TRIVIAL
    return FEATURES if dh > -tie / 2 else LAZY


def drawn(
    members: list[Parametrisation], verdicts: Sequence[str], settings: Settings
) -> list[Parametrisation]:
    """A few of each class at random, out of those that the first step decides within the tolerance."""
    rng, chosen = np.random.default_rng(0), []
    for name in ORDER:
        candidates = [
            p for p, v in zip(members, verdicts, strict=True) if v == name and _decided(p, name, settings)
        ]
        chosen += [candidates[i] for i in rng.choice(len(candidates), settings.of_each_class, replace=False)]
    return chosen


def _decided(p: Parametrisation, name: str, settings: Settings) -> bool:
    exponents = p.exponents()
    moderate = max(abs(v) for v in (exponents.f0, exponents.features[-1], exponents.df)) <= 1.5
    first = p.a[-1] + p.b[-1] <= 2 * p.a[-1] + p.c[-1]
    return (
        first
        and moderate
        and verdict(exponents.f0, exponents.features[-1], exponents.df, settings.tolerance) == name
    )


def run(say: Say, settings: Settings = FULL) -> Outcome:
    say("classifying the lattice")
    members = list(lattice(DEPTH))
    verdicts = [p.regime().verdict for p in members]
    counts = Counter(verdicts)
    rows = []
    chosen = drawn(members, verdicts, settings)
    normals, tolerance = {n: starts(n, settings.seeds) for n in settings.widths}, settings.tolerance
    for i, p in enumerate(chosen):
        say(f"measuring parametrisation {i + 1} of {len(chosen)}")
        predicted = p.exponents()
        want = (predicted.f0, predicted.features[-1], predicted.df)
        slopes = exponents(p, normals)
        rows.append(
            (p, want, slopes, verdict(*(s.value for s in slopes), tie=tolerance) == p.regime().verdict)
        )
    gaps = np.array(
        [[abs(s.value - w) for s, w in zip(slopes, want, strict=True)] for _, want, slopes, _ in rows]
    )
    confirmed = sum(
        bool(right and gap.max() < tolerance) for (*_, right), gap in zip(rows, gaps, strict=True)
    )
    bars = max(s.error for _, _, slopes, _ in rows for s in slopes)
    checks = (
        Check("fewest of a class on the lattice", "100 or more", min(counts.values()), 0.0, 100, np.inf),
        Check(
            "parametrisations confirmed by measured exponents",
            f"{settings.confirmed} or more",
            confirmed,
            0.0,
            settings.confirmed,
            len(chosen) + 1,
        ),
        Check(
            "largest gap of an exponent to the predicted one", "0", gaps.max(), bars, -tolerance, tolerance
        ),
    )
    return Outcome(checks, _draw(rows, counts))


def _draw(rows: list[Any], counts: Counter) -> Any:
    with panels(2) as (figure, axes):
        bars = axes[0].barh(ORDER, [counts[name] for name in ORDER], color=COLOURS[:4])
        axes[0].bar_label(bars, padding=3)
        axes[0].set(xscale="log", xlabel="parametrisations on the lattice", xlim=(50, 1e5))
        for i, name in enumerate(NAMES):
            want = [want[i] for _, want, _, _ in rows]
            values = [slopes[i].value for _, _, slopes, _ in rows]
            errors = [slopes[i].error for _, _, slopes, _ in rows]
            axes[1].errorbar(
                want, values, errors, fmt="osD"[i], ms=5, mfc="none", color=COLOURS[i], label=name
            )
        ends = np.array([-1.6, 1.6])
        axes[1].plot(ends, ends, color="black", lw=1)
        axes[1].set(xlabel="predicted exponent in n", ylabel="measured exponent in n")
        axes[1].legend()
    return figure
