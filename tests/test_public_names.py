"""`import wideflow` is the list of public names; each is loaded when it is first asked for."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import wideflow as wf


def test_importing_loads_nothing():
    code = "import sys, wideflow; print(sorted({'jax', 'equinox', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_is_there():
    for name in wf.__all__:
        assert getattr(wf, name) is getattr(importlib.import_module(getattr(wf, name).__module__), name)
    assert set(wf.__all__) <= set(dir(wf))


def test_no_module_hides_a_name():
    """The import system sets `wideflow.limit` to the module of that name, if there is one."""
    assert not {module.name for module in pkgutil.iter_modules(wf.__path__)} & set(wf.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match=r"no 'Probelm'. Did you mean 'Problem'"):
        _ = wf.Probelm
    assert not hasattr(wf, "zzz")
