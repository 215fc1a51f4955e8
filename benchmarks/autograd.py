"""The velocity against PyTorch's autograd."""

from collections.abc import Callable

import jax
import numpy as np
import torch

from wideflow.functionals.base import _drift

from .rows import Row, interleaved, ratios, seconds
from .velocity import M, N, case

D = 64
PHI = {"relu": torch.relu, "tanh": torch.tanh, "erf": torch.erf}


def _plain(phi: Callable, a, w, x, y) -> tuple:
    """As it is written down: all rows at once, −n · gradient of ½ mean (y − f)²."""
    f = (a * phi(x @ w.T)).mean(1)
    loss = 0.5 * ((y - f) ** 2).mean()
    return tuple(-N * g for g in torch.autograd.grad(loss, (a, w)))


def _chunked(phi: Callable, a, w, x, y, rows: int) -> tuple:
    """The same sum over chunks of rows, so that a hidden layer stays in cache."""
    total = torch.zeros_like(a), torch.zeros_like(w)
    for x_part, y_part in zip(x.split(rows), y.split(rows), strict=True):
        f = (a * phi(x_part @ w.T)).mean(1)
        loss = 0.5 * ((y_part - f) ** 2).sum() / M
        for t, g in zip(total, torch.autograd.grad(loss, (a, w)), strict=True):
            t.add_(g, alpha=-N)
    return total


def measure(quick: bool) -> list[Row]:
    """One full-batch velocity of the same network on the same data, float32, two threads each.

    Two peers: the plain way, one batch of all rows, which is what one writes first, and a loop over
    chunks of rows, the fairer one, with the fastest of four chunk sizes. Both are checked to give
    wideflow's numbers."""
    torch.set_num_threads(2)
    rows = []
    for activation, phi in PHI.items():
        risk, particles = case(activation, D)
        a, w = (torch.tensor(np.array(p)) for p in (particles.parts.a, particles.parts.w.T))
        data = [torch.tensor(np.array(v)) for v in (risk.problem.x.x, risk.problem.x.y)]
        args = (phi, a.requires_grad_(), w.contiguous().requires_grad_(), *data)

        def size_for(rows, args=args):
            return min(seconds(lambda: _chunked(*args, rows)) for _ in range(3))

        size = min((64, 128, 256, 512), key=size_for)
        calls = {
            "plain": lambda args=args: _plain(*args),
            "chunked": lambda args=args, size=size: _chunked(*args, size),
            "ours": lambda r=risk, p=particles: jax.block_until_ready(_drift(r, p)),
        }
        _check_same(calls["plain"](), calls["chunked"](), _drift(risk, particles))
        turns = interleaved(calls, 2 if quick else 9)
        what = f"velocity {activation} d={D}, times faster than torch autograd"
        rows.append(Row(what, ratios(turns, "plain"), 2.0))
        rows.append(Row(f"{what} in chunks of {size}", ratios(turns, "chunked")))
    return rows


def _check_same(plain: tuple, chunked: tuple, ours) -> None:
    """Float32 sums of 4096 terms in another order agree to some 1e-5 of their size."""
    for p, c, o in zip(plain, chunked, (ours.a, ours.w.T), strict=True):
        o = np.asarray(o)
        for peer in (p, c):
            error = np.linalg.norm(peer.numpy() - o) / np.linalg.norm(o)
            assert error < 1e-3, f"torch and wideflow differ by {error:.1e}"
