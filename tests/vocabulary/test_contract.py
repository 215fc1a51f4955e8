"""A row and its constructor say the same: options, defaults, formula, papers; and every row can be made."""

import inspect
import subprocess
import sys

import pytest

import wideflow as wf
from wideflow.page.parts import equation
from wideflow.problems.activations import Activation
from wideflow.references import REFERENCES
from wideflow.store.records import fingerprint
from wideflow.vocabulary.activations import ACTIVATIONS
from wideflow.vocabulary.laws import LAWS
from wideflow.vocabulary.losses import LOSSES
from wideflow.vocabulary.marginals import MARGINALS
from wideflow.vocabulary.methods import METHODS, Moves
from wideflow.vocabulary.optimisers import OPTIMISERS
from wideflow.vocabulary.targets import TARGETS
from wideflow.vocabulary.word import Kind, Option, Vocabulary, Word

ALL = (ACTIVATIONS, LAWS, LOSSES, MARGINALS, METHODS, OPTIMISERS, TARGETS)
WORDS = [(words, word) for words in ALL for word in words.values()]
IDS = [f"{words.kind}-{word.name}" for words, word in WORDS]
# What constructors take beside the options of a row: what the study hands them, objects that no file holds.
BESIDE = {
    "method": {
        *("functional", "problem", "start", "ts", "penalty", "observe", "checkpoint", "progress", "solver")
    },
    "optimiser": {"step"},
    "target": {"options"},
}
# Left out, these are what the functional says: of a plain risk, what the row says (see below).
OF_THE_FUNCTIONAL = {"beta", "decay"}
OTHERWISE = {("limit", "probes"): "a study draws clouds of points"}


@pytest.mark.parametrize("words, word", WORDS, ids=IDS)
def test_the_options_are_those_of_the_constructor(words, word):
    parameters = dict(inspect.signature(word.constructor()).parameters)
    for name in BESIDE.get(words.kind, ()):
        parameters.pop(name, None)
    assert set(parameters) == {option.name for option in word.options}
    for option in word.options:
        default = parameters[option.name].default
        if words is METHODS and option.name in OF_THE_FUNCTIONAL and default is None:
            continue
        assert option.required == (default is inspect.Parameter.empty), option.name
        if not option.required and (word.name, option.name) not in OTHERWISE:
            assert option.default == default, option.name


@pytest.mark.parametrize("words, word", WORDS, ids=IDS)
def test_the_formula_stands_in_the_docstring(words, word):
    """That of `wf.activation`, for all activations."""
    made_by = wf.activation if words is ACTIVATIONS else word.constructor()
    assert word.formula.strip(".") in " ".join((made_by.__doc__ or "").split())


@pytest.mark.parametrize("words, word", WORDS, ids=IDS)
def test_papers_are_known(words, word):
    assert set(word.sources) <= set(REFERENCES)


GIVEN = {
    Kind.DIMENSION: 3,
    Kind.FRACTION: 0.5,
    Kind.VECTOR: [1.0, 0.5],
    Kind.MATRIX: [[0.0, 0.0], [1.0, 1.0]],
    Kind.ACTIVATION: "erf",
    Kind.INDEX: 2,
    Kind.COUNT: 2,
    Kind.POSITIVE: 0.1,
    Kind.SCHEDULE: 5.0,
    Kind.OPTIMISER: "rmsprop",
}


def least(word):
    """Values of the options that must be given."""
    return {option.name: GIVEN[option.kind] for option in word.options if option.required}


@pytest.mark.parametrize("words, word", WORDS, ids=IDS)
def test_a_word_is_made_and_typeset(words, word):
    if words is not MARGINALS:  # those stand in sentences
        equation(word.typeset(least(word), str, **({"noise": ""} if words is TARGETS else {})))
    if words not in (METHODS, OPTIMISERS):
        made = word.constructor()(**least(word))
        assert not isinstance(made, Activation) or made.name == word.name


RISK = wf.Risk(
    wf.Problem(x=wf.Gaussian(2), target=wf.single_index("erf"), neuron=wf.Neuron("erf")), wf.Sample(8)
)


@pytest.mark.parametrize("name", [name for name, word in METHODS.items() if word.moves is not Moves.LAW])
def test_a_method_cites_the_papers_of_its_row(name):
    """What a run cites is in its row (a row may cite more: both ways of a flow on a grid)."""
    word = METHODS[name]
    made = word.constructor()(RISK, **least(word))
    assert set(made.sources) <= set(word.sources)


@pytest.mark.parametrize("name", [name for name, word in METHODS.items() if word.moves is not Moves.LAW])
def test_temperature_and_decay_left_out_are_those_of_the_row(name):
    word = METHODS[name]
    given = {k: v for k, v in word.defaults().items() if k in OF_THE_FUNCTIONAL}
    make = word.constructor()
    assert fingerprint(make(RISK, **least(word), **given)) == fingerprint(make(RISK, **least(word)))


def test_all_dynamics_are_words():
    """Every public dynamics, but for `Linearised`, which is `linearised = true` of the others."""
    public = [getattr(wf, name) for name in wf.__all__]
    classes = [v for v in public if isinstance(v, type) and issubclass(v, wf.Descent.__mro__[1])]
    functions = [wf.GradientDescent, wf.SGD, wf.Langevin, wf.Adam, wf.FisherRao, wf.BirthDeath, wf.limit]
    known = {word.constructor() for word in METHODS.values()}
    assert {*classes, *functions, wf.WassersteinFisherRao} - known == {wf.Descent, wf.Linearised}
    assert METHODS["optax"].constructor()(RISK, "adam", 0.1).name == wf.Optax(RISK, lambda s: None, 0.1).name


def test_the_vocabulary_needs_neither_jax_nor_pydantic():
    """In a process of its own, as this one has both."""
    kinds = ["activations", "laws", "losses", "marginals", "methods", "optimisers", "targets"]
    code = "import sys\n" + "\n".join(f"import wideflow.vocabulary.{kind}" for kind in kinds)
    code += "\nassert not {'jax', 'pydantic', 'numpy'} & set(sys.modules), 'loaded'"
    subprocess.run([sys.executable, "-c", code], check=True)


TOY = Word("toy", lambda slope=2.0: slope, "slope", "$slope", (Option("slope", Kind.NUMBER, "it", 2.0),))


def test_a_word_is_added_for_a_while_and_once():
    words = Vocabulary("toy", TOY)
    with pytest.raises(ValueError, match="already toy 'toy'"):
        words.add(TOY)
    other = Word("other", TOY.made_by, "slope", "h")
    with words.adding(other):
        assert list(words) == ["toy", "other"]
    assert list(words) == ["toy"]


def test_options_that_a_word_has_not_or_must_have_are_told():
    with pytest.raises(ValueError, match=r"Loss 'huber' has no option \['degree'\]; it takes delta"):
        LOSSES["huber"].check("Loss", {"degree": 3})
    with pytest.raises(ValueError, match=r"Activation 'hermite' needs the option \['degree'\]"):
        ACTIVATIONS["hermite"].check("Activation", {})
    with pytest.raises(ValueError, match=r"Unknown optimiser 'adm'; known: .* Did you mean 'adam'"):
        METHODS["optax"].constructor()(RISK, "adm", 0.1)
