"""Infinite kernels of activations with kinks and without closed form, in units of relu's, which has one."""

import jax.numpy as jnp
import numpy as np

import wideflow as wf
from wideflow.kernels.infinite import resolution

from .rows import Row, interleaved, ratios

M, D, DEPTH = 60, 10, 2


def _hard_tanh(h):
    return jnp.where(h > 1, 1.0, jnp.where(h > -1, h, -1.0))


def _elu(h):
    return jnp.where(h > 0, 2 * h, jnp.expm1(jnp.minimum(h, 0.0)))


def measure(quick: bool) -> list[Row]:
    """Σ and Θ of 60 rows, two hidden layers, float64, all compiled before. Broken lines take one integral for
    each pair of samples; by nodes in two dimensions, as any other φ with kinks, each takes thousands."""
    x = np.random.default_rng(0).normal(size=(M, D))
    phis = {
        "hard tanh": wf.types.Activation("hard_tanh", _hard_tanh, kinks=(-1.0, 1.0)),
        "elu": wf.types.Activation("steep_elu", _elu, kinks=(0.0,)),
        "relu": wf.activation("relu"),
    }
    families = {name: wf.MLP(D, depth=DEPTH, activation=phi) for name, phi in phis.items()}

    def by_nodes() -> None:
        lines, resolution.broken_line = resolution.broken_line, lambda phi: None
        try:
            wf.infinite_kernels(families["hard tanh"], x)
        finally:
            resolution.broken_line = lines

    calls = {name: lambda f=family: wf.infinite_kernels(f, x) for name, family in families.items()}
    turns = interleaved(calls | {"nodes": by_nodes}, 3 if quick else 9)
    over = lambda name: tuple(1 / ratio for ratio in ratios(turns, "relu", ours=name))
    return [
        Row(f"kernel of hard tanh, {M}² rows, over that of relu", over("hard tanh"), 20.0, at_most=True),
        Row("… times faster than by nodes in two dimensions", ratios(turns, "nodes", ours="hard tanh"), 10.0),
        Row(f"kernel of elu with a kink, {M}² rows, over that of relu", over("elu")),
    ]
