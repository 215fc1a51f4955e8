"""Huge or twisted input is refused in seconds, with the field, the line and a short message."""

import sys
import time

import jax
import pytest

import wideflow as wf
from wideflow._shown import shown
from wideflow.spec.errors import MOST, SpecError
from wideflow.spec.reading import LARGEST, read

HEAD = """[problem]
x = { law = "gaussian", d = 3 }
target = { kind = "single_index", link = "erf" }
neuron = "erf"
[times]
end = 1.0
"""
DYNAMICS = """[[dynamics]]
method = "sgd"
step = 1e-2
"""
MAS, X = '"mas"', '"x"'
SECONDS = 30.0  # of CPU time: a refusal takes one or two, and took minutes before there were bounds


def repeated(value, times):
    return "[" + ",".join([value] * times) + "]"


# name: (text of a size, the largest size that is not refused by the length of the file, what is said)
HUGE = {
    "alphas": (lambda n: HEAD + DYNAMICS + f"alpha = {repeated('1.5', n)}", 10**5, "sgd.alpha: must be"),
    "widths": (lambda n: HEAD + DYNAMICS + f"width = {repeated('9', n)}", 10**5, "at most 10000 such"),
    "wrong words": (
        lambda n: HEAD + DYNAMICS + f"[observe]\nnorms = {repeated(MAS, n)}",
        3 * 10**4,
        'did you mean "mass"?',
    ),
    "entries": (lambda n: HEAD + DYNAMICS * n, 20_000, "dynamics: must be a list of at most 1000 tables"),
    "unknown keys": (
        lambda n: "".join(f"stpe{i} = 1\n" for i in range(n)) + HEAD + DYNAMICS,
        60_000,
        "stpe0: unknown key",
    ),
    "unknown keys of an entry": (
        lambda n: HEAD + DYNAMICS + "".join(f"stpe{i} = 1\n" for i in range(n)),
        60_000,
        "dynamics.sgd.stpe0: unknown key",
    ),
    "times": (
        lambda n: HEAD.replace("end = 1.0", f"at = {repeated('1', n)}") + DYNAMICS,
        11 * 10**4,
        "times.at: must be a list of at most 100000",
    ),
    "covariance": (
        lambda n: HEAD.replace("d = 3", f"d = 3, covariance = {repeated(repeated(X, 100), n)}") + DYNAMICS,
        500,
        "problem.x.covariance: must be",
    ),
    "a long text": (lambda n: 'title = "' + "a" * n + '"\n' + HEAD + DYNAMICS, 10**6, "title: must be"),
    "a long name": (
        lambda n: HEAD + DYNAMICS + f'name = "{"a" * n}"',
        10**6,
        "must be text in quotes of at most 200 letters",
    ),
    "a long key": (lambda n: f"{'a' * n} = 1\n" + HEAD + DYNAMICS, 10**6, "unknown key"),
    "brackets": (lambda n: f"title = {'[' * n}{']' * n}\n" + HEAD + DYNAMICS, 10**5, "nested too deeply"),
    "dots": (lambda n: ".".join("a" * n) + " = 1\n" + HEAD + DYNAMICS, 10**5, "more than 100 parts"),
    "a header of dots": (lambda n: HEAD + DYNAMICS + f"[{'.'.join('a' * n)}]", 10**5, "more than 100 parts"),
    "a long file": (lambda n: HEAD + DYNAMICS + "#" * n, 10**8, "more than 1,048,576 letters"),
}


def refused(text, **more):
    begun = time.process_time()
    with pytest.raises(SpecError) as caught:
        read(text, "mine.toml", **more)
    return caught.value, time.process_time() - begun


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_spec_is_refused_at_once(name):
    make, size, words = HUGE[name]
    error, seconds = refused(make(size))
    assert words in str(error)
    assert seconds < SECONDS
    assert len(str(error)) < 400 * len(error.mistakes) and len(error.mistakes) <= MOST
    for mistake in error.mistakes:
        assert mistake.source == "mine.toml" and (mistake.line or not mistake.where)


def calls_to_refuse(text):
    """Calls of functions, Python's and C's, until `text` is refused: work in a unit that machines share.
    (What a single C call does is not in it; the bound on seconds above is for that.)"""
    count = 0

    def count_calls(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        refused(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", ["wrong words", "unknown keys", "unknown keys of an entry", "covariance"])
def test_the_work_to_refuse_is_linear(name):
    """Twice the input makes twice the calls, and a few of set-up; a square would make four times as many."""
    make, size, _ = HUGE[name]
    refused(make(2))  # caches of the first use
    half, whole = (calls_to_refuse(make(n)) for n in (size // 20, size // 10))
    assert whole < 2.2 * half


def test_the_mistakes_that_are_not_told_are_counted():
    wrong = 100
    error, _ = refused("".join(f"key{i} = 1\n" for i in range(wrong)) + HEAD + DYNAMICS)
    assert len(error.mistakes) == MOST and error.more == wrong - MOST
    assert str(error).endswith(f"\nand {wrong - MOST} more")
    assert [mistake.line for mistake in error.mistakes] == list(range(1, MOST + 1))


@pytest.mark.parametrize(
    "change, words",
    [
        ("dynamics.sgd.width=" + "1" * 10**7, "a change of more than"),
        ("title=" + "a" * 10**5, "must be text in quotes of at most 200 letters"),
        ("a" * 10**5 + "=1", "unknown key"),
        ("problem.x.d=" + "[" * 10**5, "must be a whole number"),
        (".".join("a" * 10**4) + "=1", "nested"),
        ("dynamics." + "a" * 10**4 + ".step=1", "no element of dynamics is called"),
    ],
)
def test_a_huge_change_is_refused_at_once(change, words):
    error, seconds = refused(HEAD + DYNAMICS, changes=[change])
    assert words in str(error) and "--set" in str(error)
    assert seconds < SECONDS and len(str(error)) < 800


def test_a_spec_as_long_as_it_may_be_is_read():
    text = HEAD + DYNAMICS
    assert read(text + "#" * (LARGEST - len(text))) == read(text)


@pytest.mark.parametrize(
    "call",
    [wf.load, wf.read_dataset, wf.Checkpoint],
)
def test_a_name_that_no_file_can_have(call):
    with pytest.raises(ValueError, match="must be the name of a file or folder, got 'a\\\\x00b'"):
        call("a\0b")
    with pytest.raises(ValueError, match="must be the name of a file or folder, got 3"):
        call(3)


LONG = {
    "letters": "a" * 10**7,
    "folders": "/".join("a" * 10**6),
    "elements": ["a"] * 10**6,
    "digits": -(10**6000),
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize(
    "call",
    [
        wf.Neuron,
        wf.single_index,
        wf.Gaussian,
        wf.load,
        wf.read_dataset,
        wf.Checkpoint,
        wf.Risk,
        wf.losses.Huber,
        lambda long: wf.Particles([[1.0, 1.0]], neuron=long),
        lambda long: wf.Problem(x=wf.Gaussian(2), target=long, neuron=wf.Neuron("erf")),
        lambda long: wf.evolve(long, None, [0.0]),
        lambda long: wf.activation("piecewise_linear", knots=long),
        lambda long: wf.MLP(3, depth=1).sample(jax.random.key(0), 4, long),
        lambda long: wf.w2(wf.Particles([[1.0, 1.0]], neuron=wf.Neuron("erf")), None, method=long),
    ],
)
def test_what_is_long_is_not_repeated_whole(call, kind):
    with pytest.raises(ValueError) as caught:
        call(LONG[kind])
    assert 10 < len(str(caught.value)) < 800


def test_a_count_that_no_machine_can_have():
    for call in (wf.Gaussian, wf.Sample, lambda n: wf.MLP(3, depth=n)):
        with pytest.raises(ValueError, match="whole number") as caught:
            call(10**6000)
        assert len(str(caught.value)) < 200


def test_what_is_short_is_shown_as_python_writes_it():
    for value in ("rellu", 1.5, None, (1, 2), [1.0, "a"], {"b": 1}, -(10**20), b"abc", wf.Neuron("erf")):
        assert shown(value) == repr(value)
    assert shown("a" * 1000).startswith("'aaa") and "…" in shown("a" * 1000)
    assert "'name'" in shown({"name": ["a" * 10**6] * 10**4})
    assert shown(type("list", (), {})()) == "a list"  # looks like one, and has no length


def test_a_data_file_that_no_file_can_be():
    change = 'problem.x={law="dataset", file="a\\u0000b"}'
    error, _ = refused(HEAD + DYNAMICS, changes=[change])
    assert "problem.x.file: must be the name of a file" in str(error)
