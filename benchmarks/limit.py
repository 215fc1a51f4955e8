"""The limit solver against SGD to the same accuracy, and its cost in d."""

import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

import wideflow as wf

from .rows import Row, seconds

D, TOL, TS = 50, 1e-4, (1.0, 2.0, 5.0)
WIDTHS, STEP, BATCH = (625, 2500, 10_000), 1e-3, 10
DIMENSIONS = (10, 100, 1000, 10_000)


def _problem(d: int) -> wf.Problem:
    return wf.Problem(x=wf.Gaussian(d), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))


def measure(quick: bool) -> list[Row]:
    """Seconds to know the risk up to t = 5 to 1e-4, d = 50, erf: `wf.limit` from nothing, compiling and
    checking its own error included, against one-pass SGD (float32, batch 10 of step 1e-3) with 10⁴ neurons,
    compiled before. SGD's error at these times is measured against the limit over seeds, at three widths:
    its law n^−½ is shown, and from the 10⁴ neurons on it says by what factor (error/1e-4)² more neurons,
    so more time, are needed. That the step would have to fall too is left out, in SGD's favour."""
    with jax.enable_x64(True):
        problem = _problem(D)
        spent = seconds(lambda: wf.limit(problem, wf.init(problem), TS, TOL))
        again = seconds(lambda: wf.limit(problem, wf.init(problem), TS, TOL))
        limit = wf.limit(problem, wf.init(problem), TS, TOL / 10)["risk"]
    problem = _problem(D)
    risk = wf.Risk(problem)
    seeds = 3 if quick else 8
    errors, times = [], []
    for n in WIDTHS:
        runs = []
        for seed in range(seeds):
            start = wf.init(problem).sample(jax.random.key(seed), n, dtype=jnp.float32)
            begun = time.perf_counter()
            runs.append(wf.evolve(wf.SGD(risk, STEP, batch=BATCH), start, TS, key=jax.random.key(100 + seed)))
            times.append(time.perf_counter() - begun)
        gaps = np.array([run["risk"] for run in runs]) - limit
        errors.append(float(np.sqrt(np.mean(gaps**2))))
    spent_by_sgd = statistics.median(times[-seeds:])
    slope = wf.fit_slope(WIDTHS, errors, np.array(errors) / np.sqrt(2 * seeds * len(TS)))
    factor = max(1.0, errors[-1] / TOL) ** 2
    shown = ", ".join(f"{e:.1e} at n = {n}" for e, n in zip(errors, WIDTHS, strict=True))
    note = f"SGD's rms error {shown}; {spent_by_sgd:.3g} s a run, {factor:.3g} times that for {TOL:g}"
    return [
        Row("limit d=50 to 1e-4, times faster than SGD", (factor * spent_by_sgd / spent,), 1000.0, note=note),
        Row(
            "the same, when compiled",
            (factor * spent_by_sgd / again,),
            note=f"limit {spent:.3g} s at first, then {again:.3g} s",
        ),
        Row("slope in n of SGD's error", (slope.value,), note=f"± {slope.error:.2g}; the law is −0.5"),
        _flat(),
    ]


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
    return Row(
        "limit, slowest over fastest of d = 10 … 10⁴",
        (max(times) / min(times),),
        3.0,
        at_most=True,
        note=shown,
    )
