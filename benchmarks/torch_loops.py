"""One-pass SGD with batch 1 as PyTorch loops; the data of all steps is drawn before the loop."""

import math
from collections.abc import Callable

import torch

PHI = {"relu": torch.relu, "tanh": torch.tanh, "erf": torch.erf}
SLOPE = {  # φ'(h) from h and t = φ(h)
    "relu": lambda h, t: (h > 0).float(),
    "tanh": lambda h, t: 1 - t * t,
    "erf": lambda h, t: 2 / math.sqrt(math.pi) * torch.exp(-h * h),
}


def by_hand(activation: str) -> Callable:
    """The gradient written out, in place, without autograd."""
    phi, slope = PHI[activation], SLOPE[activation]

    @torch.no_grad()
    def run(a, w, xs, ys, eta):
        n = len(a)
        for x, y in zip(xs, ys, strict=True):
            h = torch.mv(w, x)
            t = phi(h)
            e = eta * (y - torch.dot(a, t) / n)
            g = e * a * slope(h, t)
            a.add_(e * t)
            w.addr_(g, x)

    return run


def by_autograd(activation: str) -> Callable:
    """The gradient by autograd, the update in place."""
    phi = PHI[activation]

    def run(a, w, xs, ys, eta):
        n = len(a)
        a.requires_grad_()
        w.requires_grad_()
        for x, y in zip(xs, ys, strict=True):
            loss = 0.5 * (y - (a * phi(torch.mv(w, x))).mean()) ** 2
            grad_a, grad_w = torch.autograd.grad(loss, (a, w))
            with torch.no_grad():
                a.add_(grad_a, alpha=-eta * n)
                w.add_(grad_w, alpha=-eta * n)

    return run


def loop(run: Callable, a, w, steps: int, eta: float) -> None:
    """`steps` steps on fresh Gaussian x and y = tanh(x₁)."""
    xs = torch.randn(steps, w.shape[1])
    run(a, w, xs, torch.tanh(xs[:, 0]), eta)
