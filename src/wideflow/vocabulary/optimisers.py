"""Optimisers of optax that a spec may name: one row each, with the settings that go by that name."""

from .word import Vocabulary, Word

_HOME = "dynamics.optimisers"

OPTIMISERS = Vocabulary(
    "optimiser",
    Word("sgd", f"{_HOME}.sgd", "θ ← θ − ηg", r"\theta \leftarrow \theta - \eta g"),
    Word(
        "momentum",
        f"{_HOME}.momentum",
        "m ← 0.9 m + g, θ ← θ − ηm",
        r"m \leftarrow 0.9 \, m + g, \quad \theta \leftarrow \theta - \eta m",
        sources=("polyak1964",),
    ),
    Word(
        "nesterov",
        f"{_HOME}.nesterov",
        "m ← 0.9 m + g, θ ← θ − η(0.9 m + g)",
        r"m \leftarrow 0.9 \, m + g, \quad \theta \leftarrow \theta - \eta (0.9 \, m + g)",
        sources=("nesterov1983",),
    ),
    Word(
        "rmsprop",
        f"{_HOME}.rmsprop",
        "v ← 0.9 v + 0.1 g², θ ← θ − ηg/√(v + ε)",
        r"v \leftarrow 0.9 \, v + 0.1 \, g^2, \quad "
        r"\theta \leftarrow \theta - \eta g / \sqrt{v + \epsilon}",
        about="ε = 1e-8",
    ),
    Word(
        "adam",
        f"{_HOME}.adam",
        "θ ← θ − ηm̂/(√v̂ + ε)",
        r"\theta \leftarrow \theta - \eta \, \hat m / (\sqrt{\hat v} + \epsilon)",
        about="b1 = 0.9, b2 = 0.999, ε = 1e-8",
        sources=("kingma2015",),
    ),
    Word(
        "lion",
        f"{_HOME}.lion",
        "θ ← θ − η sign(0.9 m + 0.1 g), m ← 0.99 m + 0.01 g",
        r"\theta \leftarrow \theta - \eta \, \mathrm{sign}(0.9 \, m + 0.1 \, g), \quad "
        r"m \leftarrow 0.99 \, m + 0.01 \, g",
        about="without weight decay",
        sources=("chen2023",),
    ),
)
