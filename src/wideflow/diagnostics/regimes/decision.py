"""Which regime a trained network is in, from what has moved, with the numbers that decide."""

from ...verdicts import (
    ADVICE,
    FEATURES,
    FEATURES_RUNAWAY,
    GENERAL_ADVICE,
    HARDLY,
    KERNEL_MOVED,
    LAZY,
    RUNAWAY,
    SMALL,
    UNDECIDED,
    UNSTABLE,
    Regime,
    Verdict,
)
from .movement import Movement


def judge(moved: Movement, general: bool = False) -> Verdict:
    """The verdict on one model before and after training; `general` for advice on models that are not the
    library's own."""
    word, reasons = _decide(moved)
    return Verdict(word, tuple(reasons), (GENERAL_ADVICE if general else ADVICE)[word])


def _decide(moved: Movement) -> tuple[Regime, list[str]]:
    runaway = _runaway(moved)
    if runaway:
        return UNSTABLE, runaway
    assert moved.kernel is not None and moved.gap is not None
    idle = _idle(moved)
    if idle:
        return UNDECIDED, idle
    kernel, gap, slack = moved.kernel.movement, moved.gap, 2 * moved.kernel.error
    if kernel + slack < SMALL and gap < SMALL:
        return LAZY, [
            f"the kernel moved by {kernel:.2g} < {SMALL:g} of its size",
            f"f and its linearisation differ by {gap:.2g} < {SMALL:g} of what f moved",
        ]
    if kernel - slack > KERNEL_MOVED and gap > SMALL:
        return FEATURES, [
            f"the kernel moved by {kernel:.2g} > {KERNEL_MOVED:g} of its size",
            f"f and its linearisation differ by {gap:.2g} > {SMALL:g} of what f moved",
        ]
    return UNDECIDED, [
        f"the kernel moved by {kernel:.2g}{_sketched(moved)} of its size (lazy below {SMALL:g}, features "
        f"above {KERNEL_MOVED:g})",
        f"f and its linearisation differ by {gap:.2g} of what f moved (threshold {SMALL:g})",
    ]


def _sketched(moved: Movement) -> str:
    """A sketch decides where it is two standard errors away from the threshold."""
    error = 0.0 if moved.kernel is None else moved.kernel.error
    return f" ± {error:.1g} (standard error of its projections)" if error else ""


def _runaway(moved: Movement) -> list[str]:
    if moved.broken:
        return [f"not finite after training: {', '.join(moved.broken)}"]
    reasons = []
    ft = moved.ft if moved.buffers is None else moved.buffers.ft
    if moved.y is not None and ft > RUNAWAY * max(moved.f0, moved.y):
        reasons.append(
            f"|f| grew to {ft:.2g}, beyond {RUNAWAY:g} times its start {moved.f0:.2g} and y {moved.y:.2g}"
        )
    for name, h in (moved.features or {}).items():
        if h.h0 > 0 and h.ht > FEATURES_RUNAWAY * h.h0:
            reasons.append(f"|{name}| grew from {h.h0:.2g} to {h.ht:.2g}, beyond {FEATURES_RUNAWAY:g} times")
    return reasons


def _idle(moved: Movement) -> list[str]:
    """Reasons to say that the function hardly moved."""
    if moved.still and moved.buffers is not None:
        return ["no parameter moved: only buffers did, which are no weights"]
    rounding = 1e3 * moved.digits * max(moved.f0, moved.ft)
    if moved.df <= rounding:
        return [f"f moved by {moved.df:.2g}, which is its rounding error: there is nothing to compare"]
    scale = max(moved.f0, moved.y or 0.0)
    if moved.df < HARDLY * scale:
        return [
            f"f moved by {moved.df:.2g}, below {HARDLY:g} of its size {scale:.2g}: this early every "
            "network is still linear"
        ]
    return []
