"""Laws of x, or of (x, y): one row each. Data sets are read from files and are not words (`spec.problem`)."""

import math

from .word import Kind, Option, Vocabulary, Word

_D = Option(
    "d",
    Kind.DIMENSION,
    "dimension of x, a whole number or inf",
    latex=lambda d: r"\infty" if math.isinf(d) else str(int(d)),
)


def _subspace(k: int | None) -> str:
    return "" if k is None else rf" \text{{ (in {k} coordinates, the others }} N(0, 1))"


LAWS = Vocabulary(
    "law of x",
    Word(
        "gaussian",
        "problems.laws.Gaussian",
        "x ~ N(0, Σ)",
        r"x \sim N(0, $covariance) \text{ in } \mathbb{R}^{$d}",
        (
            _D,
            Option(
                "covariance",
                Kind.COVARIANCE,
                "Σ: one number, a diagonal, or a matrix; the identity by default",
                None,
                latex=lambda sigma: "I" if sigma is None else r"\Sigma",
            ),
        ),
    ),
    Word(
        "sphere",
        "problems.laws.Sphere",
        "x ~ Unif(√d · S^{d−1})",
        r"x \sim \mathrm{Unif}(\sqrt{d} \, S^{d-1}), \quad d = $d",
        (_D,),
        about="the uniform law on the sphere of radius √d",
    ),
    Word(
        "two_gaussians",
        "problems.laws.two_gaussians",
        "y = ±1 with equal probability, x ~ N(0, (1 ± Δ)² I_d)",
        r"y = \pm 1, \quad x \sim N(0, (1 \pm $delta)^2 I) \text{ in } \mathbb{R}^{$d}$subspace",
        (
            _D,
            Option("delta", Kind.FRACTION, "Δ: how far the two classes differ"),
            Option(
                "subspace",
                Kind.COUNT,
                "the classes differ only in this many coordinates",
                None,
                latex=_subspace,
            ),
        ),
        sources=("mei2018",),
    ),
)
