"""Every mistake at once, on its line, at the field as the user knows it, with what is allowed there."""

import subprocess
import sys

import pytest

from spec.examples import CLASSES, EXAMPLES, NEURON
from spec.mistakes import CASES
from spec.test_suggestions import typos
from wideflow.spec.errors import SpecError
from wideflow.spec.places import places
from wideflow.spec.reading import load, read
from wideflow.spec.study import Spec


def mistakes(text):
    with pytest.raises(SpecError) as caught:
        read(text)
    return caught.value.mistakes


def line(text, beginning):
    """The first line of `text` that begins so."""
    return next(i for i, row in enumerate(text.split("\n"), 1) if row.startswith(beginning))


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_valid(name):
    assert isinstance(read(EXAMPLES[name]), Spec)


def test_examples_use_every_kind_of_table():
    """Otherwise what is shown of them says nothing of the kind that is missing."""

    def kinds(part):
        inner = (
            part if isinstance(part, list) else [v for _, v in part] if hasattr(part, "model_fields") else []
        )
        own = {type(part)} if hasattr(part, "model_fields") else set()
        return own.union(*map(kinds, inner))

    assert set().union(*(kinds(read(text)) for text in EXAMPLES.values())) == {p.table for p in places()}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_said_once_at_its_field_and_line(case):
    text, old, new, where, said = CASES[case]
    assert text.count(old) == 1, "the case must say which place is meant"
    found = mistakes(text.replace(old, new))
    assert [mistake.where for mistake in found] == [where]
    assert said in found[0].message
    at = text[: text.index(old)].count("\n") + 1
    table = {"dynamics": "[[dynamics]]", "times": "[times]"}.get(
        where
    )  # what goes between keys is of the table
    assert found[0].line == (line(text, table) if table else at)


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_lines():
    text = (
        NEURON.replace("d = 50", "d = 0").replace('"erf"\n', '"eref"\n').replace("step = 0.01", "stpe = 0.01")
    )
    text = (
        text.replace("end = 10.0", "end = -1")
        .replace("feature =", "featur =")
        .replace("seeds = 5", "seeds = 0")
    )
    text = text.replace('name = "limit"', 'name = "lazy"').replace('"sgd"', '"sgdd"')
    found = mistakes(text)
    assert [m.where for m in found] == [
        "problem.x.d",
        "problem.neuron",
        "times.end",
        "dynamics.wide.method",  # its other keys are not judged before its kind is known
        "dynamics.2.stpe",
        "observe.featur",
    ]
    assert [m.line for m in found] == sorted(m.line for m in found)


def test_an_error_reads_like_a_compilers():
    with pytest.raises(SpecError) as caught:
        read(NEURON.replace("step = 1e-3", "stpe = 1e-3").replace("d = 50", "d = 0"), source="my.toml")
    first, second = str(caught.value).split("\n")
    assert first == (
        "my.toml:9: problem.x.d: must be a whole number >= 1 and < 2^53, or inf, got 0 "
        "(dimension of x, a whole number or inf)"
    )
    assert second == (
        "my.toml:28: dynamics.wide.stpe: unknown key; did you mean 'step'? Allowed: "
        "name, start, width, alpha, parametrisation, seeds, linearised, method, step, batch, one_pass"
    )


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_one_letter_typos_are_understood_in_the_file(text):
    """End to end, in the text itself: every key of the examples, the first letters left out or exchanged."""
    right = wrong = 0
    document = load(text).document
    for path, at in document.lines.items():
        key, rows = path[-1], text.split("\n")
        if not isinstance(key, str) or rows[at - 1].count(key) != 1 or rows[at - 1].startswith("["):
            continue
        for typo in sorted(t for t in typos(key) if len(t) <= len(key))[:: max(1, len(key) * 4)]:
            rows[at - 1] = text.split("\n")[at - 1].replace(key, typo)
            try:
                read("\n".join(rows))
            except SpecError as error:
                understood = f"did you mean {key!r}?" in str(error) and f":{at}: " in str(error)
                right, wrong = right + understood, wrong + (not understood)
    assert right + wrong > 20
    assert right / (right + wrong) >= 0.95, (right, wrong)


@pytest.mark.parametrize(
    "text, at, said",
    [
        ("a = 1\nneuron = relu\n", 2, 'Invalid value in column 10; write neuron = "relu"'),
        ("bias = True\n", 1, "write bias = true"),
        ("d = Inf\n", 1, "write d = inf"),
        ("seed 3\n", 1, "Expected '=' after a key in a key/value pair in column 6; a line is key = value"),
        ("[problem\nd = 1", 1, "no valid TOML"),
        ("seed = 1\nseed = 2\n", 2, "it is given twice"),
        ("[times]\n[times]\n", 2, "it is given twice (a list of tables has double brackets"),
        ('title = "a\nb = 1\n', 1, "a quotation mark is missing"),
        ("x = {a = 1\n", 1, "no valid TOML"),
        ("a = 1\nx = " + "9" * 5000, 2, "a number of thousands of digits"),
        ("\x00", 1, "no valid TOML"),
        (b"a = 1\nb = \xff", 2, "no text in UTF-8"),
    ],
)
def test_text_that_is_no_toml(text, at, said):
    (mistake,) = mistakes(text)
    assert (mistake.where, mistake.line) == ("", at) and said in mistake.message


def test_text_that_is_nested_without_end():
    assert "nested" in str(mistakes("a = " + "[" * 5000)[0])
    assert "nested more than 32 deep" in str(mistakes("a = " + "[" * 200 + "]" * 200)[0])
    assert "nested" in str(mistakes("a" + ".a" * 5000 + " = 1")[0])


def test_a_table_where_a_list_of_tables_belongs():
    text = CLASSES[: CLASSES.index("[[dynamics]]")] + "[dynamics]\nmethod = 'limit'\n"
    (mistake,) = mistakes(text)
    assert mistake.where == "dynamics" and "double brackets, as in [[dynamics]]" in mistake.message
    assert mistake.line == line(text, "[dynamics]")


def test_text_that_is_no_unicode_is_refused_in_words_that_can_be_printed():
    (mistake,) = mistakes('title = "' + b"\xff".decode("utf-8", "surrogateescape") + '"')
    assert mistake.line == 1 and "UTF-8" in mistake.message
    assert "UTF-8" in str(mistakes("# \ud800")[0])
    with pytest.raises(SpecError) as caught:
        read(NEURON, changes=["title=\udcff", "x\udcff=1", "a\nb=\r"])
    assert len(str(caught.value).encode().split(b"\n")) == 3


def test_an_empty_file_misses_what_a_study_needs():
    found = mistakes("")
    assert [m.where for m in found] == ["problem", "times", "dynamics"]
    assert {m.line for m in found} == {None}


def test_files_of_other_systems():
    assert read("\ufeff" + NEURON.replace("\n", "\r\n")) == read(NEURON) == read(NEURON.encode())


def test_a_later_error_is_told_its_line():
    loaded = load(NEURON, "my.toml", ["problem.x.covariance=2", "risk.path_norm=1"])
    assert str(loaded.error("dynamics.wide.step", "too large")) == "my.toml:28: dynamics.wide.step: too large"
    assert (
        str(loaded.error(("dynamics", 1, "batch"), "too large"))
        == "my.toml:25: dynamics.wide.batch: too large"
    )
    assert str(loaded.error("problem.x.covariance", "no")) == "--set problem.x.covariance=2: no"
    assert str(loaded.error("risk", "no")) == "--set risk.path_norm=1: risk: no"
    assert (
        str(loaded.error("observe.kernel", "no"))
        == f"my.toml:{line(NEURON, '[observe]')}: observe.kernel: no"
    )


def test_reading_needs_no_jax():
    code = (
        "import sys, wideflow.spec.reading, wideflow.spec.writing; print({'jax', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
