"""Laws of each coordinate of θ at time 0: one row each. `latex` is plain text, for it stands in sentences."""

from dataclasses import replace

from .word import Kind, Option, Vocabulary, Word

_RADEMACHER = Word(
    "rademacher",
    "states.marginals.Rademacher",
    "±scale, each with probability ½",
    "±$scale",
    (Option("scale", Kind.NUMBER, "the value that is taken with either sign", 1.0),),
)

MARGINALS = Vocabulary(
    "law of a coordinate",
    Word(
        "normal",
        "states.marginals.Normal",
        "N(mean, sd²)",
        "N($mean, $sd²)",
        (
            Option("mean", Kind.NUMBER, "mean", 0.0),
            Option("sd", Kind.NOT_NEGATIVE, "standard deviation", 1.0),
        ),
    ),
    Word(
        "uniform",
        "states.marginals.Uniform",
        "Uniform on [low, high]",
        "Unif[$low, $high]",
        (
            Option("low", Kind.NUMBER, "lower end", -1.0),
            Option("high", Kind.NUMBER, "upper end", 1.0),
        ),
    ),
    _RADEMACHER,
    replace(_RADEMACHER, name="signs", about="the older word for rademacher"),
    Word(
        "constant",
        "states.marginals.Constant",
        "Always `value`",
        "$value",
        (Option("value", Kind.NUMBER, "the value", 0.0),),
    ),
)
