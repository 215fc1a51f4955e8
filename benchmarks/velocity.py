"""The velocity kernel as a share of the machine's matrix-product rate."""

import statistics

import jax
import jax.numpy as jnp

import wideflow as wf
from wideflow.functionals.base import _drift

from .rows import MATMUL_FLOPS, Row, interleaved, large_matmul, processor_seconds, ratios

N, M = 16384, 4096
BOUNDS = {64: (0.4, 0.8), 784: (0.75, 0.9)}  # asked and aim, by d


def case(activation: str, d: int) -> tuple[wf.Risk, wf.Particles]:
    """Full-batch risk of N neurons on M rows in R^d, float32."""
    x = jax.random.normal(jax.random.key(0), (M, d), jnp.float32)
    data = wf.Dataset(x, jnp.sin(x[:, 0]))
    problem = wf.Problem(x=data, neuron=wf.Neuron(activation))
    return wf.Risk(problem), wf.init(problem).sample(jax.random.key(1), N, dtype=jnp.float32)


def measure(quick: bool) -> list[Row]:
    """Floating-point rate of one full-batch velocity over that of a large matrix product.

    Compared: (4·m·n·d operations)/seconds against the rate of a 4096³ float32 product by the same
    JAX on the same threads, timed right beside each trial. Fair, if anything to the kernel's loss:
    4·m·n·d counts the two products that no method avoids and not the activation, its derivative and
    the sums over neurons, which at d = 64 are a good part of the work. Beside it the same share by the time
    of processors, in which parts that run on one core alone do not count double."""
    rows = []
    for d, (asked, aim) in BOUNDS.items():
        for activation in ("relu", "tanh", "erf"):
            risk, particles = case(activation, d)
            ours = lambda r=risk, p=particles: jax.block_until_ready(_drift(r, p))
            calls = {"matmul": large_matmul(), "ours": ours}
            turns = interleaved(calls, 2 if quick else 9)
            spent = [{name: processor_seconds(call) for name, call in calls.items()} for _ in range(3)]
            shares, by_processors = (
                ratios(each, "matmul", scale=4 * M * N * d / MATMUL_FLOPS) for each in (turns, spent)
            )
            note = f"{statistics.median(by_processors):.2f} by the time of processors"
            rows.append(
                Row(f"velocity {activation} d={d}, share of matmul rate", shares, asked, aim, note=note)
            )
    return rows
