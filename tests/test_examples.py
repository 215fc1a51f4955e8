"""Examples in docstrings of public names run and print what they say; each name at the top has one."""

import doctest
import inspect

import pytest

import wideflow as wf

SPACES = {"wf": wf} | {f"wf.{name}": getattr(wf, name) for name in wf.NAMESPACES}
NAMES = {
    f"{space}.{name}": getattr(module, name)
    for space, module in SPACES.items()
    for name in module.__all__
    if name not in wf.NAMESPACES and not (module is not wf and name in wf.__all__)
}


def examples(name, thing):
    return doctest.DocTestParser().get_doctest(thing.__doc__ or "", {}, name, None, 0)


WITH = {name: test for name, thing in NAMES.items() if (test := examples(name, thing)).examples}


def run(test, variables):
    """Run the examples of a docstring; `variables` are those of the reader, before and after."""
    test.globs = variables
    told: list[str] = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(test, out=told.append, clear_globs=False)
    assert not failed, "".join(told)


@pytest.fixture(scope="module")
def begun():
    """The variables that the docstring of the package begins with."""
    variables: dict = {}
    run(examples("wideflow", wf), variables)
    return variables


@pytest.mark.parametrize("name", WITH)
def test_example(name, begun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(WITH[name], dict(begun))


def test_every_name_at_the_top_has_an_example():
    assert not {f"wf.{name}" for name in wf.__all__ if name not in wf.NAMESPACES} - set(WITH)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_documented(name):
    """In words of its own: a dataclass without a docstring has its signature for one."""
    thing = NAMES[name]
    assert thing.__doc__ and not thing.__doc__.startswith(f"{thing.__name__}(")


DYNAMICS = ("SGD", "GradientDescent", "Adam", "Optax", "GradientFlow", "Langevin", "GridFlow", "JKO")
DYNAMICS += ("FisherRao", "WassersteinFisherRao", "BirthDeath", "KernelFlow", "Linearised")


@pytest.mark.parametrize("name", DYNAMICS)
def test_dynamics_tell_equation_and_arguments(name):
    """Every argument is told by its name, or by that of its symbol."""
    thing = getattr(wf, name)
    symbols = {"beta": "β", "decay": "λ"}
    told, _, _ = thing.__doc__.partition(">>>")
    for argument in inspect.signature(thing).parameters:
        assert argument in told or symbols.get(argument, argument) in told, argument
