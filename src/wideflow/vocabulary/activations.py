"""Activations φ: one row each, made in `problems.named_activations` or a file of its own."""

from .word import Kind, Option, Vocabulary, Word

_HOME = "problems.named_activations"

ACTIVATIONS = Vocabulary(
    "activation",
    Word("relu", f"{_HOME}.relu", "max(h, 0)", r"\max(h, 0)"),
    Word(
        "leaky_relu",
        f"{_HOME}.leaky_relu",
        "max(h, 0) + slope·min(h, 0)",
        r"\max(h, 0) + $slope \min(h, 0)",
        (Option("slope", Kind.NUMBER, "the slope for h < 0", 0.01),),
    ),
    Word("erf", f"{_HOME}.erf", "erf(h)", r"\mathrm{erf}(h)"),
    Word("tanh", f"{_HOME}.tanh", "tanh(h)", r"\tanh(h)"),
    Word("sigmoid", f"{_HOME}.sigmoid", "1/(1 + e^−h)", "1/(1 + e^{-h})"),
    Word("softplus", f"{_HOME}.softplus", "log(1 + e^h)", r"\log(1 + e^{h})"),
    Word(
        "gelu",
        f"{_HOME}.gelu",
        "h P(z ≤ h)",
        r"h \, P(z \le h)",
        about="z ~ N(0, 1); exact, not the tanh approximation",
    ),
    Word("sin", f"{_HOME}.sin", "sin(h)", r"\sin(h)"),
    Word("cos", f"{_HOME}.cos", "cos(h)", r"\cos(h)"),
    Word("identity", f"{_HOME}.identity", "h", "h"),
    Word("square", f"{_HOME}.square", "h²", "h^2"),
    Word(
        "hermite",
        f"{_HOME}.hermite",
        "He_k(h)/√k!, k = degree",
        r"\mathrm{He}_{$degree}(h)/\sqrt{$degree!}",
        (Option("degree", Kind.INDEX, "the degree"),),
        about="probabilists' polynomials, so that E φ(z)² = 1 for z ~ N(0, 1)",
    ),
    Word(
        "piecewise_linear",
        f"{_HOME}.piecewise_linear",
        "linear through the points (x_i, y_i), constant outside them",
        r"\text{linear through } $knots",
        (Option("knots", Kind.MATRIX, "points [x, y]"),),
    ),
)
