"""`import wideflow` is the list of public names; each is loaded when it is first asked for."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import wideflow as wf

SPACES = {f"wf.{name}": getattr(wf, name) for name in wf.NAMESPACES}
PACKAGES = {"wf": wf} | {name: space for name, space in SPACES.items() if hasattr(space, "__path__")}


def test_importing_loads_nothing():
    code = """
import sys, wideflow as wf
wf.distances, wf.kernels, wf.diagnostics
print(sorted({"jax", "equinox", "numpy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("space", [wf, *SPACES.values()], ids=["wf", *SPACES])
def test_every_name_is_there(space):
    for name in set(space.__all__) - set(wf.NAMESPACES):
        thing = getattr(space, name)
        assert thing is getattr(importlib.import_module(thing.__module__), name)
    assert set(space.__all__) <= set(dir(space))


def test_the_top_is_short():
    """About 60 names. A namespace holds all of its kind; the top repeats those that most people type."""
    assert 55 <= len(set(wf.__all__) - set(wf.NAMESPACES)) <= 70
    for space in SPACES.values():
        for name in set(space.__all__) & set(wf.__all__):
            assert getattr(wf, name) is getattr(space, name)


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_no_module_hides_a_name(package):
    """The import system sets `wideflow.limit` to the module of that name, if there is one."""
    hidden = {module.name for module in pkgutil.iter_modules(package.__path__)} & set(package.__all__)
    assert hidden <= set(wf.NAMESPACES)


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_stubs_list_what_they_import(package):
    """Type checkers read `__all__` of the stub, the loader its imports."""
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    (listed,) = [node.value for node in stub.body if isinstance(node, ast.Assign)]
    assert sorted(ast.literal_eval(listed)) == sorted(package.__all__)


def test_names_that_moved_say_where_they_are():
    moved = {(name, space) for space, names in SPACES.items() for name in names.__all__} - {
        (name, space) for space in SPACES for name in wf.__all__
    }
    assert len(moved) > 50
    for name, space in moved:
        with pytest.raises(AttributeError, match=rf"wf\.{name} is now {space}\.{name}\."):
            getattr(wf, name)


def test_unknown_name():
    with pytest.raises(AttributeError, match=r"no 'Probelm'. Did you mean 'Problem'"):
        _ = wf.Probelm
    with pytest.raises(AttributeError, match=r"distances has no 'slicedw2'. Did you mean 'sliced_w2'"):
        _ = wf.distances.slicedw2
    assert not hasattr(wf, "zzz")
