"""Many seeds as replicas of one program, against a call for each and against one wide network."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

import wideflow as wf

from .rows import Row, interleaved, processor_seconds, ratios

SEEDS, N, D, STEPS, ETA = 64, 256, 50, 10_000, 1e-3
FEW = 8  # of the calls are timed


def measure(quick: bool) -> list[Row]:
    """64 seeds of batch-1 SGD, n = 256, d = 50, 10⁴ steps (a tenth of them with --quick), float32, all
    compiled before. A network of width 64 · 256 does the same products in one; it reads one row a step where
    the seeds read 64.

    Ten is what was hoped for. What bounds the ratio is that a call of one network is a compiled loop already:
    a step reads 51 kB of weights for its product, reads and writes them for its update, and draws 51 normal
    numbers, which replicas do too, if without its overhead and on all cores."""
    steps = STEPS // 10 if quick else STEPS
    problem = wf.Problem(x=wf.Gaussian(D), target=wf.single_index("erf"), neuron=wf.Neuron("erf"))
    law, dynamics, key = wf.init(problem), wf.SGD(wf.Risk(problem), ETA), jax.random.key(0)
    draw = lambda key, n, **many: law.sample(key, n, dtype=jnp.float32, **many)
    singles = [draw(jax.random.fold_in(key, r), N) for r in range(FEW)]
    together, wide = draw(key, N, replicas=SEEDS), draw(key, SEEDS * N)

    def run(state: wf.Particles, key: jax.Array) -> None:
        wf.evolve(dynamics, state, [0.0, steps * ETA], key=key, snapshots=False)

    calls: dict[str, Callable[[], None]] = {
        "ours": lambda: run(together, key),
        "wide": lambda: run(wide, key),
        "calls": lambda: [run(one, jax.random.fold_in(key, r)) for r, one in enumerate(singles)] and None,
    }
    turns = interleaved(calls, 2 if quick else 5)
    spent = [{name: processor_seconds(call) for name, call in calls.items()} for _ in turns]
    share = tuple(1 / ratio for ratio in ratios(turns, "wide"))
    note = f"{FEW} of the {SEEDS} calls were timed"
    return [
        Row(
            f"{SEEDS} seeds as replicas, times faster than {SEEDS} calls",
            ratios(turns, "calls", scale=SEEDS / FEW),
            10.0,
            note=note,
        ),
        Row("… by the time of processors", ratios(spent, "calls", scale=SEEDS / FEW)),
        Row(f"the same, times the time of one network of width {SEEDS * N}", share, 1.5, at_most=True),
    ]
