"""Losses ℓ(f, y): one row each. `latex` is that of the risk E ℓ."""

from .word import Kind, Option, Vocabulary, Word

LOSSES = Vocabulary(
    "loss",
    Word("squared", "problems.losses.Squared", "½|y − f|²", r"\tfrac12 \, \mathrm{E} (y - f(x))^2"),
    Word(
        "huber",
        "problems.losses.Huber",
        "½e² for |e| ≤ δ, δ(|e| − ½δ) beyond, with e = y − f",
        r"\mathrm{E} \, \mathrm{huber}_{$delta}(y - f(x))",
        (Option("delta", Kind.POSITIVE, "δ, where the parabola ends", 1.0),),
    ),
    Word(
        "logistic",
        "problems.losses.Logistic",
        "log(1 + e^{−yf})",
        r"\mathrm{E} \log(1 + e^{-y f(x)})",
        about="labels y = ±1",
    ),
    Word(
        "cross_entropy",
        "problems.losses.SoftmaxCrossEntropy",
        "log Σ_c e^{f_c} − f_y",
        r"\mathrm{E} \left[ \log \textstyle\sum_c e^{f_c(x)} - f_y(x) \right]",
        about="labels y = 0, …, outputs − 1",
    ),
)
