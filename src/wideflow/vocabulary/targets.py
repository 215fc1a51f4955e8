"""Targets y = f*(x): one row each. In `latex`, `$noise` is what is added to y."""

from .word import Kind, Option, Vocabulary, Word

_DIRECTION = Option("direction", Kind.VECTOR, "w*; the first axis by default", None)
_INNER = r"\langle w_*, x \rangle"


def _powers(coefficients: list[float]) -> str:
    terms = [f"{c:.4g} {_INNER}^{{{k}}}" for k, c in enumerate(coefficients) if c]
    return " + ".join(terms) or "0"


TARGETS = Vocabulary(
    "target",
    Word(
        "single_index",
        "problems.targets.single_index",
        "y = φ(⟨w*, x⟩), |w*| = 1",
        rf"y = \varphi_*({_INNER})$noise, \quad \varphi_*(h) = $link, \quad |w_*| = 1",
        (Option("link", Kind.ACTIVATION, "φ"), _DIRECTION),
    ),
    Word(
        "teacher",
        "problems.targets.teacher",
        "y = Σ_j a_j φ(⟨w_j, x⟩ + b_j)",
        r"y = \sum_{j=1}^{$w} a_j^* \varphi_*(\langle w_j^*, x \rangle$b)$noise, "
        r"\quad \varphi_*(h) = $link",
        (
            Option("w", Kind.MATRIX, "directions w_j, one per row", latex=lambda w: str(len(w))),
            Option("a", Kind.VECTOR, "output weights a_j, 1/k by default", None),
            Option(
                "b",
                Kind.VECTOR,
                "biases b_j, none by default",
                None,
                latex=lambda b: "" if b is None else " + b_j^*",
            ),
            Option("link", Kind.ACTIVATION, "φ", "relu"),
        ),
    ),
    Word(
        "hermite",
        "problems.targets.hermite",
        "y = He_k(⟨w*, x⟩)/√k!",
        rf"y = \mathrm{{He}}_{{$degree}}({_INNER})/\sqrt{{$degree!}}$noise, \quad |w_*| = 1",
        (Option("degree", Kind.INDEX, "k"), _DIRECTION),
    ),
    Word(
        "polynomial",
        "problems.targets.polynomial",
        "y = Σ_k c_k ⟨w*, x⟩^k",
        r"y = $coefficients$noise, \quad |w_*| = 1",
        (Option("coefficients", Kind.VECTOR, "c_0, c_1, …", latex=_powers), _DIRECTION),
    ),
)
