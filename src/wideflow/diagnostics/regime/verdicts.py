"""Which regime a trained network is in, from what has moved, with the numbers that decide."""

from typing import NamedTuple

from .movement import Movement

# Where the kernel moves by ε, the gradient moves by about ε/2 and the function, which sums it up on the way,
# leaves its linearisation by about ε/4 to ε/2. So 0.1 for both is "small", and a kernel that moved by 0.3
# goes with a gap of 0.1 or so: one threshold for the gap, two for the kernel, between which it is neither.
SMALL = 0.1
KERNEL_MOVED = 0.3
# Below a hundredth of the target's size (or of f's own) training has hardly begun: all networks are linear.
HARDLY = 0.01
# Beyond ten times the size of start and target a function does not fit, it runs away; features may grow.
RUNAWAY = 10.0
FEATURES_RUNAWAY = 100.0

ADVICE = {
    "lazy": "To learn features: raise the rate of the hidden layers, lower α, or use "
    "wf.Parametrisation.mup(depth); a smaller width and longer training help too. To stay lazy: leave it.",
    "feature-learning": "To be lazy instead: raise α (with the rate divided by α²) or the width, or use "
    "wf.Parametrisation.ntk(depth).",
    "unstable": "Lower the rate, most of all of the layer that moved most; wf.largest_stable_step gives a "
    "bound, and wf.Parametrisation.mup(depth) rates that stay stable at every width.",
    "not decided": "Train longer, or compare several widths by wf.width_check: exponents decide where "
    "one width cannot.",
}
# For models of others, which have no Parametrisation and whose steps wf.largest_stable_step does not know.
GENERAL_ADVICE = {
    "lazy": "To learn features: raise the learning rates of the hidden layers (and let them grow with the "
    "width), or make the output smaller, with the learning rate raised by the square of that; longer "
    "training helps too. To stay lazy: leave it.",
    "feature-learning": "To be lazy instead: make the output larger, with the learning rate lowered by the "
    "square of that, or the network wider at hidden rates that do not grow with the width.",
    "unstable": "Lower the learning rate, most of all of the layer that moved most, or make the output "
    "smaller.",
    "not decided": "Train longer, or train several widths: where what moves in the hidden layers falls with "
    "the width it is lazy, where it stays they learn (wf.width_check(make, widths) for JAX functions).",
}


class Verdict(NamedTuple):
    """One of the four words, the numbers that decide, and what to change."""

    word: str
    reasons: tuple[str, ...]
    advice: str


def judge(moved: Movement, general: bool = False) -> Verdict:
    """The verdict on one model before and after training; `general` for the advice on models of others."""
    word, reasons = _judged(moved)
    return Verdict(word, tuple(reasons), (GENERAL_ADVICE if general else ADVICE)[word])


def _judged(moved: Movement) -> tuple[str, list[str]]:
    runaway = _runaway(moved)
    if runaway:
        return "unstable", runaway
    assert moved.kernel is not None and moved.gap is not None
    idle = _idle(moved)
    if idle:
        return "not decided", idle
    kernel, gap = moved.kernel.movement, moved.gap
    if kernel < SMALL and gap < SMALL:
        return "lazy", [
            f"the kernel moved by {kernel:.2g} < {SMALL:g} of its size",
            f"f and its linearisation differ by {gap:.2g} < {SMALL:g} of what f moved",
        ]
    if kernel > KERNEL_MOVED and gap > SMALL:
        return "feature-learning", [
            f"the kernel moved by {kernel:.2g} > {KERNEL_MOVED:g} of its size",
            f"f and its linearisation differ by {gap:.2g} > {SMALL:g} of what f moved",
        ]
    return "not decided", [
        f"the kernel moved by {kernel:.2g} of its size (lazy below {SMALL:g}, features above "
        f"{KERNEL_MOVED:g})",
        f"f and its linearisation differ by {gap:.2g} of what f moved (threshold {SMALL:g})",
    ]


def _runaway(moved: Movement) -> list[str]:
    if moved.broken:
        return [f"not finite after training: {', '.join(moved.broken)}"]
    reasons = []
    if moved.y is not None and moved.ft > RUNAWAY * max(moved.f0, moved.y):
        reasons.append(
            f"|f| grew to {moved.ft:.2g}, beyond {RUNAWAY:g} times its start {moved.f0:.2g} "
            f"and y {moved.y:.2g}"
        )
    for name, h in (moved.features or {}).items():
        if h.h0 > 0 and h.ht > FEATURES_RUNAWAY * h.h0:
            reasons.append(f"|{name}| grew from {h.h0:.2g} to {h.ht:.2g}, beyond {FEATURES_RUNAWAY:g} times")
    return reasons


def _idle(moved: Movement) -> list[str]:
    """Reasons to say that the function hardly moved."""
    rounding = 1e3 * moved.digits * max(moved.f0, moved.ft)
    if moved.df <= rounding:
        return [f"f moved by {moved.df:.2g}, which is its rounding error: there is nothing to compare"]
    scale = max(moved.f0, moved.y or 0.0)
    if moved.df < HARDLY * scale:
        return [
            f"f moved by {moved.df:.2g}, below {HARDLY:g} of its size {scale:.2g}: at so early a time every "
            "network is still linear"
        ]
    return []
