"""What was run, in words and equations."""

import functools
import math
from typing import Any

from .._data import Data
from ..page.numbers import short
from ..spec.kinds import Activation, Annealing
from ..spec.study import Spec
from ..study.build import Study
from ..study.cases import Case
from ..vocabulary.activations import ACTIVATIONS
from ..vocabulary.laws import LAWS
from ..vocabulary.losses import LOSSES
from ..vocabulary.marginals import MARGINALS
from ..vocabulary.methods import Method
from ..vocabulary.targets import TARGETS
from ..vocabulary.word import Option

_MOST_CLASSES = 20  # that are listed by name


def phi(spec: Activation) -> str:
    """φ(h) in LaTeX."""
    return ACTIVATIONS[spec.name].typeset(spec.options(), _value)


def _value(value: object) -> str:
    """An option as it appears in a formula or a sentence."""
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, Activation):
        return phi(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        inside = ", ".join(map(_value, value))
        return f"({inside})" if value and not isinstance(value[0], list | str) else inside
    return "∞" if value == math.inf else short(value)


def law(study: Study) -> str:
    """The law of x in LaTeX."""
    x: Any = study.spec.problem.x
    if x.law in LAWS:
        return LAWS[x.law].typeset(dict(x), _value)
    m = getattr(study.whole.x, "m", "m")
    return rf"(x_i, y_i), \quad i = 1, \dots, {m}, \quad x_i \in \mathbb{{R}}^{{{study.whole.d}}}"


def data_notes(study: Study) -> list[str]:
    """What was done to the rows of a file: names of classes, and missing values."""
    data: object = study.whole.x
    notes = [f"{note}." for note in getattr(data, "notes", ())]
    if names := getattr(data, "classes", ()):
        shown = [f"{i} = {name}" for i, name in enumerate(names[:_MOST_CLASSES])]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        notes.insert(0, f"The labels y are {len(names)} classes by name: {', '.join(shown)}{more}.")
    return notes


def target(spec: Spec) -> str | None:
    """f* in LaTeX, None where the law brings labels."""
    target: Any = spec.problem.target
    if target is None:
        return None
    noise = f" + {short(spec.problem.noise)} z" if spec.problem.noise else ""
    return TARGETS[target.kind].typeset(dict(target), _value, noise=noise)


def model(spec: Spec) -> str:
    """f in LaTeX."""
    start: Any = spec.start
    if start.kind != "particles":
        kind = "fully connected" if start.kind == "mlp" else "convolutional"
        layers = rf"W_{{{start.depth + 1}}} \varphi(\cdots \varphi(W_1 x))"
        return rf"f(x) = {layers}, \quad \text{{{kind}, {start.depth} hidden layer(s)}}"
    neuron = spec.problem.neuron
    weight = "" if neuron.output == "unit" else "a_j \\, "
    bias = " + b_j" if neuron.bias else ""
    inside = rf"{weight}\varphi(\langle w_j, x \rangle{bias})"
    network = rf"\frac{{\alpha}}{{n}} \sum_{{j=1}}^{{n}} {inside}"
    return rf"f(x) = {network}, \quad \varphi(h) = {phi(neuron.activation)}"


def loss(spec: Spec) -> str:
    """R in LaTeX."""
    extra = (
        f" + {short(spec.risk.second_moment)} \\int \\tfrac12 |\\theta|^2 d\\rho"
        if spec.risk.second_moment
        else ""
    )
    extra += f" + {short(spec.risk.path_norm)} \\int |a||w| d\\rho" if spec.risk.path_norm else ""
    loss = spec.problem.loss
    return f"R = {LOSSES[loss.name].typeset(loss.options(), _value)}{extra}"


def start(spec: Spec) -> str:
    """Where training starts, in a sentence."""
    if spec.start.kind != "particles":
        return "Weights are independent Gaussians, scaled by the parametrisation."
    own = [method.start is not None for method in spec.dynamics]
    if all(own):
        return "At time 0 neurons are independent, with a law of its own for each dynamics (see below)."
    but = ", unless stated otherwise below" if any(own) else ""
    return f"At time 0 neurons are independent{but}: {start_law(spec, spec.start)}."


def start_law(spec: Spec, start: Any) -> str:
    """The law of neurons of a start."""
    names = {"a": "output weights a", "w": "weights w", "b": "biases b"}
    parts = []
    for name, words in names.items():
        value = getattr(start, name)
        if name == "a" and spec.problem.neuron.output == "unit":
            continue
        if name == "b" and not spec.problem.neuron.bias:
            continue
        parts.append(f"{words} ~ {_marginal(name, value)}")
    mirrored = (
        "; each neuron comes twice, with a and −a, so that f = 0 at the start" if start.mirrored else ""
    )
    return ", ".join(parts) + mirrored


def _marginal(name: str, value: Any) -> str:
    if value is None or isinstance(value, float | int):
        default = 0.0 if name == "b" else 1.0
        scale = default if value is None else float(value)
        square = "" if scale == 1 else f"{short(scale)}² "
        if scale == 0:
            return "0"
        return f"N(0, {square}I/d)" if name == "w" else f"N(0, {square.strip() or '1'})"
    return MARGINALS[value.law].typeset(dict(value), _value)


_LINEARISED = r"f = f_0 + \langle \nabla f_0, \theta - \theta_0 \rangle"


def method(
    case: Case, widths: list[int | None], scalings: list[str], seeds: int, deep: bool = False
) -> tuple[str, str]:
    """(equation, sentence) of one entry of the dynamics; `deep` for networks with layers W_l at rates c_l."""
    word, options = case.method.word, case.method.options()
    equation, words = _equation(word, options, deep), word.called
    frozen = case.linearised and not word.frozen
    if frozen:
        equation = _LINEARISED
    if options.get("beta") == math.inf and word.noise:
        equation, words = functools.reduce(_without, word.noise, equation), word.cold or words
    details = []
    finite = [n for n in widths if n is not None]
    if finite:
        details.append(f"n = {', '.join(map(str, finite))}")
    if case.method.box is not None:
        details.append(f"{case.neurons} cells")
    details.append(", ".join(scalings))
    shown = [option for option in word.options if option.symbol and options[option.name] is not None]
    details += [_option(option, options[option.name]) for option in shown]
    if seeds > 1:
        details.append(f"{seeds} seeds")
    if frozen:
        words += ", of the network linearised at its start (its kernel is frozen)"
    return equation, f"{words}; {', '.join(details)}"


def _equation(word: Method, options: Data, deep: bool) -> str:
    return word.deep if deep and word.deep else word.typeset(options, _value)


def _without(equation: str, term: str) -> str:
    return equation.replace(term, "").strip()


def _option(option: Option, beta: Any) -> str:
    """The value of an option, or how it changes in time."""
    if not isinstance(beta, Annealing):
        return f"{option.symbol} = {_value(beta)}"
    ends = f"from {short(beta.start)} to {short(beta.end)} by t = {short(beta.over)}"
    return f"{option.symbol} {ends} ({beta.kind})"


def _dimension(d: float) -> str:
    return r"\infty" if d == float("inf") else str(int(d))
