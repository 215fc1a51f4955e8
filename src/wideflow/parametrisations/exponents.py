"""Exponents in the width n: what a network starts with and what its first step moves.

Layer l = 1..L+1 enters through two numbers alone, which the symmetry of the layer leaves unchanged:
p_l = a_l + b_l, and q_l = 2a_l + c_l (SGD) or a_l + c_l (Adam). Let h_l(0) ~ n^{H_l} and ∂f/∂h_l ~ n^{G_l}
for each of the n entries. A random start adds n terms of random sign in every layer but the first, so

    H_0 = 0,     H_l = H_{l−1} + ½[l≥2] − p_l,     f(0): ½ − p_{L+1} + H_L,
    G_L = −p_{L+1},     G_{l−1} = G_l + ½ − p_l     (forwards and backwards alike).

A step adds to an entry of n^{−a_l}W_l, with the residual n^e, e = max(0, f(0)),

    SGD:  n^{−a_l} n^{−c_l} n^e n^{−a_l} ∂f/∂h_l x_{l−1}:  U_l = e + G_l + H_{l−1} − q_l  (G_{L+1} = 0),
    Adam: n^{−a_l} n^{−c_l}, whatever the gradient's size:  U_l = −q_l.

It has the signs of ∂f/∂h_l and x_{l−1}, so that the sum over the inputs is coherent:
own_l = U_l + [l≥2] + H_{l−1} moves h_l, is carried on to later layers like h itself, and moves f by the
coherent sum 1 + G_l + own_l; the last layer's own_{L+1} moves f directly.

With all H_l = 0 (a_1+b_1 = 0, a_l+b_l = ½) this holds for every φ. Otherwise it is that of a homogeneous φ
(relu, identity), as another φ saturates or becomes linear. Terms of second order in the step are left
out: first step, small rate.
"""

from dataclasses import dataclass
from typing import Any

from .._checks import nearest
from .._shown import shown

_POWERS = {"sgd": 2, "adam": 1}


def power(optimiser: Any) -> int:
    """k in q_l = k a_l + c_l: how often the multiplier enters what a step adds to h_l. The gradient
    brings it a second time, unless its size is divided out."""
    if not isinstance(optimiser, str) or optimiser not in _POWERS:
        hint = nearest(optimiser, _POWERS) if isinstance(optimiser, str) else ""
        raise ValueError(f"optimiser must be 'sgd' or 'adam', got {shown(optimiser)}.{hint}")
    return _POWERS[optimiser]


@dataclass(frozen=True)
class Exponents:
    """Powers of the width n.

    `f0` of f(0); `residual` the e of y − f(0); `features` of Δh_l, l = 1..L, and `df` of Δf in the first
    step; `trained` of Δh_l once the last layer has moved too, −r_l of the theorem (see `Regime`), which is
    larger than `features` where the last layer's start is smaller than its steps; `r` = −max `trained`
    decides between kernel and features."""

    optimiser: str
    f0: float
    residual: float
    features: tuple[float, ...]
    df: float
    trained: tuple[float, ...]
    r: float

    def __str__(self) -> str:
        moved = ", ".join(f"Δh{i} {v:+g}" for i, v in enumerate(self.features, 1))
        return f"f(0) {self.f0:+g}; first step ({self.optimiser}): {moved}, Δf {self.df:+g}; r = {self.r:g}"


def first_step(p: tuple[float, ...], q: tuple[float, ...], optimiser: str) -> Exponents:
    """The exponents of layers with p_l = a_l + b_l and q_l = 2a_l + c_l (Adam: a_l + c_l)."""
    forward, backward = scales(p)
    f0 = 0.5 - p[-1] + forward[-1]
    e = max(0.0, f0)
    own = [
        (e + g + h - q_l if power(optimiser) == 2 else -q_l) + (i > 0) + h
        for i, (q_l, h, g) in enumerate(zip(q, forward, backward, strict=True))
    ]
    features = [own[0]]
    for p_l, own_l in zip(p[1:-1], own[1:-1], strict=True):
        features.append(max(own_l, features[-1] + 0.5 - p_l))
    df = max(own[-1], *(1 + g + own_l for g, own_l in zip(backward[:-1], own[:-1], strict=True)))
    r = margins(p, q, optimiser)
    return Exponents(optimiser, f0, e, tuple(features), df, tuple(0.0 - r_l for r_l in r), r[-1])


def kernel_exponents(p: tuple[float, ...], q: tuple[float, ...]) -> tuple[float, ...]:
    """K_l ~ n^{−2a_l−c_l} |∂f/∂h_l|² |x_{l−1}|²: one exponent per layer; f moves by n^e Σ_l K_l."""
    forward, backward = scales(p)
    hidden = [
        1 + (i > 0) - q_l + 2 * (h + g)
        for i, (q_l, h, g) in enumerate(zip(q[:-1], forward[:-1], backward[:-1], strict=True))
    ]
    return (*hidden, 1 - q[-1] + 2 * forward[-1])


def scales(p: tuple[float, ...]) -> tuple[list[float], list[float]]:
    """H_{l−1} and G_l of l = 1..L+1: sizes of what enters a layer, and of ∂f by what leaves it."""
    forward, backward = [0.0, 0.0 - p[0]], [0.0, 0.0 - p[-1]]
    for p_l in p[1:-1]:
        forward.append(forward[-1] + 0.5 - p_l)
    for p_l in p[-2:0:-1]:
        backward.append(backward[-1] + 0.5 - p_l)
    return forward, backward[::-1]


def margins(p: tuple[float, ...], q: tuple[float, ...], optimiser: str) -> tuple[float, ...]:
    """r_l of l = 1..L: trained hidden layers of size 1 move by n^{−r_l}. For SGD
    r_l = min(p_{L+1}, q_{L+1}) − 1 + min_{k≤l}(q_k + [k=1]): the signal that comes back is the last layer,
    its start or its steps, whichever is larger. For Adam its size does not matter."""
    back = min(p[-1], q[-1]) if power(optimiser) == 2 else 0.0
    r = [back + q[0]]
    for q_l in q[1:-1]:
        r.append(min(r[-1], back - 1 + q_l))
    return tuple(r)
