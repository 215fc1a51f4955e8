"""The limit solver against SGD to the same accuracy, and its cost in d."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import wideflow as wf

from . import limit_digits
from .characteristics import Fineness, risks
from .limit_points import warm
from .rows import Row, seconds

D, TOL, TS = 50, 1e-4, (1.0, 2.0, 5.0)
WIDTHS, STEPS, NARROW = (625, 2500, 10_000), (4e-3, 2e-3, 1e-3), 400
REFERENCE = Fineness(a=801, s=1, r=1, x=80, q=1, u=80, rtol=1e-10)  # to 1e-9
DIMENSIONS = (10, 100, 1000, 10_000)


class Law(NamedTuple):
    """Rms errors of SGD's risk at given widths or steps, the slope fitted, and seconds of the last one."""

    at: tuple[float, ...]
    errors: list[float]
    slope: Any
    seconds: float

    def __str__(self) -> str:
        shown = ", ".join(f"{e:.1e} at {x:g}" for e, x in zip(self.errors, self.at, strict=True))
        return f"{shown}, slope {self.slope.value:+.2f} ± {self.slope.error:.2f}"


def _problem(d: int) -> wf.Problem:
    return wf.Problem(x=wf.Gaussian(d), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))


def _law(at: tuple[float, ...], gaps: Any, seeds: int) -> Law:
    """`gaps(x, seed)` is (risk − truth at all times, seconds)."""
    errors, spent = [], 0.0
    for x in at:
        found = [gaps(x, seed) for seed in range(seeds)]
        errors.append(float(np.sqrt(np.mean([gap**2 for gap, _ in found]))))
        spent = float(np.median([s for _, s in found]))
    bars = np.array(errors) / np.sqrt(2 * seeds)  # the three times of a run are hardly independent
    return Law(at, errors, wf.diagnostics.fit_slope(at, errors, bars), spent)


def _sgd(
    problem: wf.Problem, n: int, step: float, seed: int, batch: int = 1
) -> tuple[wf.Particles, Any, float]:
    start = wf.init(problem).sample(jax.random.key(seed), n, dtype=jnp.float32)
    begun = time.perf_counter()
    run = wf.evolve(wf.SGD(wf.Risk(problem), step, batch=batch), start, TS, key=jax.random.key(100 + seed))
    return start, run, time.perf_counter() - begun


def measure(quick: bool) -> list[Row]:
    """Seconds to know the risk up to t = 5 to 1e-4, d = 50, erf: `wf.limit` from nothing, compiling and
    checking its own error included, against one-pass SGD in float32.

    SGD's error has two parts, both measured here over seeds: that of the width (10⁴ neurons at the end,
    batches of 10 so that it rules), which falls like n^−½, and that of the step with batch 1, against
    the flow of the same neurons, which falls like η^½. Both must be half of 1e-8 when squared; the time
    of n neurons for t/η steps is taken in proportion to n/η from the run of 10⁴ neurons, that of batch 1."""
    seeds = 3 if quick else 8
    with jax.enable_x64(True):
        problem = _problem(D)
        spent = seconds(lambda: wf.limit(problem, wf.init(problem), TS, TOL))
        again = seconds(lambda: wf.limit(problem, wf.init(problem), TS, TOL))
        limit = wf.limit(problem, wf.init(problem), TS, TOL / 10)["risk"]
    problem = _problem(D)

    def by_width(n: float, seed: int) -> Any:
        _, run, used = _sgd(problem, int(n), 1e-3, seed, batch=10)
        return run["risk"] - limit, used

    def by_step(step: float, seed: int) -> Any:
        start, run, used = _sgd(problem, NARROW, step, seed)
        flow = wf.evolve(wf.GradientFlow(wf.Risk(problem)), start, TS)
        return run["risk"] - flow["risk"], used

    width, step = _law(WIDTHS, by_width, seeds), _law(STEPS, by_step, seeds)
    _, _, one = _sgd(problem, WIDTHS[-1], STEPS[-1], 0)  # compiles
    _, _, one = _sgd(problem, WIDTHS[-1], STEPS[-1], 1)
    more = {"n": (width.errors[-1] / TOL) ** 2, "1/η": (step.errors[-1] / TOL) ** 2}
    both = 4 * more["n"] * more["1/η"]
    note = f"widths: {width}; steps: {step}; {one:.2g} s with 10⁴ neurons, η = 1e-3; limit {spent:.3g} s"
    name = "limit d=50 to 1e-4, times faster than SGD"
    return [
        Row(f"{name}, both laws", (both * one / spent,), 1000.0, note=note),
        Row(f"{name}, both laws, when compiled", (both * one / again,), note=f"limit {again:.3g} s"),
        Row(f"{name}, as if any step would do", (more["n"] * one / spent,)),
        _flat(),
        *_digits(quick),
        *([] if quick else _figure()),
    ]


def _figure() -> list[Row]:
    """At the tightest tolerance that both versions reached in time, by dimension."""
    found = limit_digits.draw()
    rows = []
    for d, points in found.get("before", {}).items():
        before, now = dict(points), dict(found["now"][d])
        if both := sorted(before.keys() & now.keys()):
            tol, name = both[0], f"limit {limit_digits.LINK} d={d}, time of {limit_digits.BEFORE} over ours"
            note = str(limit_digits.OUT)
            rows.append(Row(f"{name} at {tol:g}", (before[tol] / now[tol],), note=note))
    return rows


def _digits(quick: bool) -> list[Row]:
    """CPU seconds of compiled limits, t ≤ 5: at many digits over few, and of d = 6 over d = 50."""
    with jax.enable_x64(True):
        rows = [row for link in ("erf", "tanh")[: 1 if quick else 2] for row in _smooth(link, quick)]
        for d in (math.inf,) if quick else (math.inf, 50):
            rows.append(
                _more_digits("relu", d, warm("relu", d, 1e-3)[0], warm("relu", d, 1e-6)[0], "1e-6", "1e-3")
            )
        rows += [_honest(link) for link in ("erf", "tanh", "relu")]
    return rows


def _smooth(link: str, quick: bool) -> list[Row]:
    rows, fine = [], {}
    for d in (6, 50) if quick else (6, 10, 50, 10_000, math.inf):
        coarse, fine[d] = (warm(link, d, tol)[0] for tol in (1e-4, 1e-8))
        rows.append(_more_digits(link, d, coarse, fine[d], "1e-8", "1e-4"))
    if not quick:  # the slowest: in a process of its own, which may run out of time
        found = dict(limit_digits.points(link, "3", ("1e-4", "1e-8")))
        rows.append(
            _more_digits(link, 3, found.get(1e-4, math.nan), found.get(1e-8, math.inf), "1e-8", "1e-4")
        )
    name = f"limit {link} to 1e-8, time of d = 6 over that of d = 50"
    return [*rows, Row(name, (fine[6] / fine[50],), 3.0, at_most=True)]


def _more_digits(link: str, d: float, coarse: float, fine: float, many: str, few: str) -> Row:
    shown = f"{fine:.2g} s and {coarse:.2g} s of CPU"
    name = f"limit {link} d={d:g}, time at {many} over that at {few}"
    return Row(name, (fine / coarse,), 8.0, at_most=True, note=shown)


def _honest(link: str) -> Row:
    """The largest true error over the stated one, d = ∞, against characteristics in plain NumPy."""
    problem = wf.Problem(x=wf.Gaussian(math.inf), target=wf.single_index(link), neuron=wf.Neuron(link))
    truth = risks(link, math.inf, np.array(TS), REFERENCE, reach=6.5)
    shares, shown = [], []
    for tol in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        run = wf.limit(problem, wf.init(problem), TS, tol)
        true, stated = float(np.max(np.abs(run["risk"] - truth))), run.info["error"]
        shares.append(float(true / stated))
        shown.append(f"{true:.1e} of {stated:.1e}")
    name = f"limit {link} d=inf, true error over the stated one, worst of 1e-3 … 1e-7"
    return Row(name, (max(shares),), 1.0, at_most=True, note=", ".join(shown))


def _flat() -> Row:
    """Compiled runs at growing d: the largest time over the smallest."""
    times = []
    with jax.enable_x64(True):
        for d in DIMENSIONS:
            problem = _problem(d)
            call = lambda problem=problem: wf.limit(problem, wf.init(problem), TS, TOL)
            call()
            times.append(seconds(call))
    shown = ", ".join(f"{t:.2g} s at d = {d}" for t, d in zip(times, DIMENSIONS, strict=True))
    what = "limit, slowest over fastest of d = 10 … 10⁴"
    return Row(what, (max(times) / min(times),), 3.0, at_most=True, note=shown)
