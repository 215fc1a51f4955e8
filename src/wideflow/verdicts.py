"""The words that verdicts are made of, what they mean, and the thresholds that decide between them.

One vocabulary for parametrisations (n → ∞ by theory), `wf.width_check` (exponents in n, measured),
`wf.regime` (one network before and after training), studies and their reports. Plain data, no JAX.
"""

from typing import Literal, NamedTuple

Regime = Literal["lazy", "feature-learning", "trivial", "unstable", "not decided"]
Agreement = Literal["agree", "differ", "not decided"]
Question = Literal["regime", "convergence", "distance", "noise"]

LAZY: Regime = "lazy"
FEATURES: Regime = "feature-learning"
TRIVIAL: Regime = "trivial"
UNSTABLE: Regime = "unstable"
AGREE: Agreement = "agree"
DIFFER: Agreement = "differ"
UNDECIDED: Literal["not decided"] = "not decided"


class Meaning(NamedTuple):
    """How a sentence applies a word to one network and to several, and its definition."""

    phrase: str
    plural: str
    definition: str


REGIMES: dict[Regime, Meaning] = {
    LAZY: Meaning(
        "is lazy",
        "are lazy",
        "f moves and the features do not: the tangent kernel stays at its start, and f is that of the "
        "network linearised there (kernel regime)",
    ),
    FEATURES: Meaning(
        "learns features",
        "learn features",
        "the hidden layers, and with them the kernel, move by order 1, at every width (feature learning)",
    ),
    TRIVIAL: Meaning("does not move", "do not move", "f itself does not move as the width grows"),
    UNSTABLE: Meaning(
        "is unstable", "are unstable", "something grows without bound, in time or with the width"
    ),
    UNDECIDED: Meaning(
        "is neither lazy nor clearly learning features",
        "are neither lazy nor clearly learning features",
        "the numbers lie between the thresholds",
    ),
}

QUESTIONS: dict[Question, str] = {
    "regime": "Is the network lazy, or does it learn features?",
    "convergence": "Do all starts come to the same free energy?",
    "distance": "How far is the network from its limit of infinite width?",
    "noise": "What does the noise cost?",
}

# --- one network before and after training ---------------------------------------------------------
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

# --- exponents in the width, measured --------------------------------------------------------------
# Exponents of named parametrisations are multiples of ½, those of a lattice of ¼: 0.1 tells them apart.
GROWS = 0.1
FLAT = 0.1
FALLS = -0.25
# In a first step the kernel of a network that learns features may fall like n^−½ (where a is symmetric its
# mean does not move at first order), and that of a lazy one falls like n^−½ to n^−1.
KERNEL_FALLS = -0.75
SIGMAS = 2.0
KNOWN = 0.25  # an exponent with a wider bar, from few seeds or widths close together, decides nothing

# --- exponents in the width, by theory -------------------------------------------------------------
# Exponents are sums of a few numbers of size 1, so rounding is below 1e-14; and n^1e-9 is 1 at any width.
TIE = 1e-9

# --- do several starts end at the same value? ------------------------------------------------------
# Differences below three error bars are chance; below a fiftieth of the way that the runs have come they are
# as good as none; and error bars above a tenth of that way could hide anything.
AGREE_SIGMAS = 3.0
AGREE_SHARE = 0.02
RESOLVED_SHARE = 0.1

ADVICE: dict[Regime, str] = {
    LAZY: "To learn features: raise the rate of the hidden layers, lower α, or use "
    "wf.Parametrisation.mup(depth); a smaller width and longer training help too. To stay lazy: leave it.",
    FEATURES: "To be lazy instead: raise α (with the rate divided by α²) or the width, or use "
    "wf.Parametrisation.ntk(depth).",
    TRIVIAL: "Let the rates grow with the width, most of all that of the last layer: "
    "wf.Parametrisation.ntk(depth) and wf.Parametrisation.mup(depth) move f by order 1 at every width.",
    UNSTABLE: "Lower the rate, most of all of the layer that moved most; wf.largest_stable_step gives a "
    "bound, and wf.Parametrisation.mup(depth) rates that stay stable at every width.",
    UNDECIDED: "Train longer, or compare several widths by wf.width_check: exponents decide where "
    "one width cannot.",
}
# For other models, which have no Parametrisation and whose steps wf.largest_stable_step does not know.
GENERAL_ADVICE: dict[Regime, str] = {
    LAZY: "To learn features: raise the learning rates of the hidden layers (and let them grow with the "
    "width), or make the output smaller, with the learning rate raised by the square of that; longer "
    "training helps too. To stay lazy: leave it.",
    FEATURES: "To be lazy instead: make the output larger, with the learning rate lowered by the "
    "square of that, or the network wider at hidden rates that do not grow with the width.",
    TRIVIAL: "Let the learning rates grow with the width until f moves by order 1 at every width.",
    UNSTABLE: "Lower the learning rate, most of all of the layer that moved most, or make the output "
    "smaller.",
    UNDECIDED: "Train longer, or train several widths: where what moves in the hidden layers falls with "
    "the width it is lazy, where it stays they learn (wf.width_check(make, widths) for JAX functions).",
}


class Verdict(NamedTuple):
    """A word, the numbers that decide, and what to change."""

    word: Regime
    reasons: tuple[str, ...]
    advice: str
