"""`wf.regime` of models of others, in units of the gradient of the rows that it looks at."""

import copy
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

import wideflow as wf

from .rows import Row, interleaved
from .torch_models import cnn, mlp, transformer

ROWS, ASKED = 256, 20.0
DEPTH, D, HEADS, POSITIONS, WORDS, CLASSES = 6, 384, 6, 32, 500, 10


class Case(NamedTuple):
    """Both sides of a ratio: the whole report, and one gradient of the summed output on its rows."""

    what: str
    regime: Callable[[], Any]
    gradient: Callable[[], Any]


def measure(quick: bool) -> list[Row]:
    """Each report taking turns with the gradient, warm, in float32; 256 rows are asked for in all of them."""
    depth, trials = (1, 1) if quick else (DEPTH, 3)
    draw = np.random.default_rng(0)
    pixels = draw.uniform(size=(1000, 784)).astype("float32")
    words = draw.integers(0, WORDS, (ROWS, POSITIONS))
    images = pixels[: ROWS if quick else 500].reshape(-1, 1, 28, 28)
    torch_transformer = transformer(depth, D, HEADS, POSITIONS, WORDS, CLASSES)
    cases = [
        _torch("PyTorch MLP 784-800-500-10, 1000 rows", mlp(), torch.as_tensor(pixels)),
        _torch(f"PyTorch CNN, 5 layers, {len(images)} images", cnn(), torch.as_tensor(images)),
        _torch(f"PyTorch transformer, {depth} layers", torch_transformer, torch.as_tensor(words)),
        _jax(f"JAX transformer, {depth} layers", depth, words),
    ]
    return [_row(case, trials) for case in cases]


def _row(case: Case, trials: int) -> Row:
    reports: list[Any] = []
    turns = interleaved({"regime": lambda: reports.append(case.regime()), "gradient": case.gradient}, trials)
    took = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
    kernel = reports[-1].moved.kernel
    note = (
        f"{took['regime']:.2g} s over {took['gradient']:.2g} s; {kernel.projections} of {CLASSES} directions"
    )
    note += f", movement {kernel.movement:.2g} ± {kernel.error:.1g}"
    what = f"regime of {case.what}, in gradients of {ROWS} rows"
    return Row(what, tuple(t["regime"] / t["gradient"] for t in turns), ASKED, at_most=True, note=note)


def _torch(what: str, module: torch.nn.Module, x: torch.Tensor) -> Case:
    """Trained by three steps of Adam, so that weights and running statistics have moved."""
    before = copy.deepcopy(module).eval()
    optimiser = torch.optim.Adam(module.parameters(), 1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        module(x[:64]).square().mean().backward()
        optimiser.step()
    module.eval()

    def gradient() -> None:
        module.zero_grad()
        module(x[:ROWS]).sum().backward()

    return Case(what, lambda: wf.regime(before, module, x, rows=ROWS, progress=False), gradient)


def _jax(what: str, depth: int, words: np.ndarray) -> Case:
    before = jax_parameters(depth)
    slope = jax.jit(jax.grad(lambda p, x: jax_transformer(p, x).sum()))
    x = jnp.asarray(words)
    after = jax.tree.map(lambda p, g: p - 1e-3 * jnp.sign(g), before, slope(before, x[:64]))
    regime = lambda: wf.regime(jax_transformer, before, after, words, rows=ROWS, progress=False)
    return Case(what, regime, lambda: jax.block_until_ready(slope(before, x)))


def jax_parameters(depth: int) -> dict[str, Any]:
    """About 1.8 million a layer."""
    keys = iter(jax.random.split(jax.random.key(0), 4 * depth + 3))
    draw = lambda *shape: jax.random.normal(next(keys), shape) / shape[0] ** 0.5
    block = lambda: {
        "qkv": draw(D, 3 * D),
        "out": draw(D, D),
        "up": draw(D, 4 * D),
        "down": draw(4 * D, D),
        "scales": jnp.ones((2, D)),
    }
    table, positions = draw(WORDS, D), draw(POSITIONS, D)
    blocks = [block() for _ in range(depth)]
    return {"table": table, "positions": positions, "blocks": blocks, "head": draw(D, CLASSES)}


def jax_transformer(p: dict[str, Any], words: jax.Array) -> jax.Array:
    """Of words (m, T): norms first, the mean over positions last."""
    h = p["table"][words] + p["positions"]
    for block in p["blocks"]:
        qkv = _normal(h, block["scales"][0]) @ block["qkv"]
        q, k, v = jnp.moveaxis(qkv.reshape(*h.shape[:2], 3, HEADS, -1), 2, 0)
        weights = jax.nn.softmax(jnp.einsum("mthe,mshe->mhts", q, k) / q.shape[-1] ** 0.5)
        h = h + jnp.einsum("mhts,mshe->mthe", weights, v).reshape(h.shape) @ block["out"]
        h = h + jax.nn.gelu(_normal(h, block["scales"][1]) @ block["up"]) @ block["down"]
    return h.mean(1) @ p["head"]


def _normal(h: jax.Array, scale: jax.Array) -> jax.Array:
    centred = h - h.mean(-1, keepdims=True)
    return scale * centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
