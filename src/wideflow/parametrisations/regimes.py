"""Which limit a parametrisation has: the theorem of Yang and Hu (2021), for SGD and for Adam.

In p_l = a_l + b_l and q_l = 2a_l + c_l (layers with rates of their own are first shifted to a common rate,
which changes neither), with r = min(p_{L+1}, q_{L+1}) − 1 + min_{l≤L}(q_l + [l=1]):

    stable      iff  p_1 = 0, p_l = ½ (2≤l≤L), p_{L+1} ≥ ½, r ≥ 0, q_{L+1} ≥ 1, p_{L+1} + r ≥ 1;
    nontrivial  iff  one of the last two is an equality;
    then        feature-learning iff r = 0, lazy (kernel regime) iff r > 0.

For Adam an entry of an update is of size n^{−c_l} whatever the gradient, so q_l = a_l + c_l, no signal comes
back, and h_l moves by n^{−r}, r = min_{l≤L}(q_l + [l=1]) − 1. Nothing else changes: the last layer's step
moves f by n^{1−q_{L+1}}, and the moved features move it by n^{1−p_{L+1}−r}, as Δh_L has the signs of
W_{L+1}(0). (This is Adam with its ε = 0, or an ε that scales with the gradient; its kernel regime has fixed
features too, but the signs in its steps make f's equation nonlinear in the residual.)
"""

from dataclasses import dataclass

from ..verdicts import FEATURES, LAZY, REGIMES, TIE, TRIVIAL, UNSTABLE
from ..verdicts import Regime as Word
from .exponents import margins, power


@dataclass(frozen=True)
class Regime:
    """The limit n → ∞ of training: "unstable", "trivial", "lazy" (the kernel regime) or "feature-learning".

    `reasons` are the inequalities that decide, with their numbers. `trivial` is False where unstable."""

    verdict: Word
    stable: bool
    trivial: bool
    r: float
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join([f"{self.verdict}: {REGIMES[self.verdict].definition}", *self.reasons])


def classify(p: tuple[float, ...], q: tuple[float, ...], optimiser: str) -> Regime:
    """The regime of layers with p_l = a_l + b_l and q_l = 2a_l + c_l (Adam: a_l + c_l)."""
    r = margins(p, q, optimiser)[-1]
    last, moved = _names(len(p), optimiser)
    broken = _at_start(p) + _in_training(p, q, r, optimiser)
    if broken:
        return Regime(UNSTABLE, False, False, r, tuple(broken))
    by_step, by_features = q[-1] - 1, p[-1] + r - 1
    if min(by_step, by_features) > TIE:
        reason = f"{last} = {q[-1]:g} > 1 and {moved} = {p[-1] + r:g} > 1: f does not move"
        return Regime(TRIVIAL, True, True, r, (reason,))
    reasons = [f"{last} = 1: the last layer's steps move f"] * (by_step <= TIE)
    reasons += [f"{moved} = 1: the moved features move f"] * (by_features <= TIE)
    words = _words_of_r(p, q, r, optimiser)
    if r > TIE:
        return Regime(LAZY, True, False, r, (*reasons, f"{words} > 0: features do not move"))
    return Regime(FEATURES, True, False, r, (*reasons, f"{words}: features move"))


def _at_start(p: tuple[float, ...]) -> list[str]:
    """The conditions at the start that fail."""
    broken = []
    for i, p_l in enumerate(p[:-1], 1):
        right = 0.0 if i == 1 else 0.5
        if abs(p_l - right) > TIE:
            way = "vanishes" if p_l > right else "diverges"
            broken.append(f"a{i} + b{i} = {p_l:g} is not {right:g}: h{i} {way} at the start")
    if p[-1] < 0.5 - TIE:
        out = len(p)
        broken.append(f"a{out} + b{out} = {p[-1]:g} < 0.5: f(0) diverges like n^{0.5 - p[-1]:g}")
    return broken


def _in_training(p: tuple[float, ...], q: tuple[float, ...], r: float, optimiser: str) -> list[str]:
    """The conditions of training that fail."""
    broken, (last, moved) = [], _names(len(p), optimiser)
    if r < -TIE:
        broken.append(f"{_words_of_r(p, q, r, optimiser)} < 0: features diverge like n^{-r:g}")
    if q[-1] < 1 - TIE:
        broken.append(f"{last} = {q[-1]:g} < 1: the last layer's steps move f by n^{1 - q[-1]:g}")
    if p[-1] + r < 1 - TIE:
        broken.append(f"{moved} = {p[-1] + r:g} < 1: the moved features move f by n^{1 - p[-1] - r:g}")
    return broken


def _names(out: int, optimiser: str) -> tuple[str, str]:
    """Of q_{L+1} and p_{L+1} + r."""
    step = f"2a{out} + c{out}" if power(optimiser) == 2 else f"a{out} + c{out}"
    return step, f"a{out} + b{out} + r"


def _words_of_r(p: tuple[float, ...], q: tuple[float, ...], r: float, optimiser: str) -> str:
    """r = its formula = its numbers = its value."""
    out, steps = len(p), ", ".join(f"{q_l + (i == 0):g}" for i, q_l in enumerate(q[:-1]))
    value = f"{0.0 if abs(r) <= TIE else r:g}"
    if power(optimiser) == 1:
        return f"r = min_l(a_l + c_l + [l=1]) - 1 = min({steps}) - 1 = {value}"
    formula = f"min(a{out}+b{out}, 2a{out}+c{out}) - 1 + min_l(2a_l + c_l + [l=1])"
    return f"r = {formula} = min({p[-1]:g}, {q[-1]:g}) - 1 + min({steps}) = {value}"
