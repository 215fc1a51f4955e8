"""Whose code it is: installed packages count by version, all else by content, wherever it lies."""

import importlib
import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from wideflow.store import origins
from wideflow.store.fingerprints import fingerprint


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Imports a module from files, anew each time, as another process would."""

    def fresh(name, files, place="."):
        folder = tmp_path / place
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        for loaded in [m for m in sys.modules if m.partition(".")[0] == name.partition(".")[0]]:
            monkeypatch.delitem(sys.modules, loaded)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        return importlib.import_module(name)

    yield fresh
    for loaded in [m for m in sys.modules if m.startswith("mine_")]:
        del sys.modules[loaded]
    origins.version.cache_clear()
    origins._distributions.cache_clear()


def _used(module):
    """A function of ours that calls one of that module."""
    call = module.look
    return lambda t, s: call()


LOOK = "SCALE = {}\ndef look(): return SCALE\n"
METADATA = {"mine_a-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mine_a\nVersion: 1.0\n"}
RECORD = {
    "mine_a-1.0.dist-info/RECORD": "mine_a/__init__.py,,\n",
    "mine_a-1.0.dist-info/top_level.txt": "mine_a",
}


@pytest.mark.parametrize("place", [".", "site-packages", "editable"])
def test_a_local_package_counts_by_content(place, imported):
    """On the path; put among the packages without a version; installed in editable mode, with metadata among
    the packages and files elsewhere."""
    marks = []
    for value in (3, 5, 3):
        if place == "editable":
            imported("mine_b", METADATA | RECORD | {"mine_b.py": ""}, "site-packages")
        origins._distributions.cache_clear()
        origins.version.cache_clear()
        marks.append(
            fingerprint(_used(imported("mine_a", {"mine_a/__init__.py": LOOK.format(value)}, place)))
        )
    assert marks[0] != marks[1]
    assert marks[0] == marks[2]
    assert (origins.version("mine_a") is not None) == (place == "editable")


def test_an_installed_package_counts_by_version(imported):
    files = METADATA | RECORD
    first = imported("mine_a", files | {"mine_a/__init__.py": LOOK.format(3)}, "site-packages")
    origins._distributions.cache_clear()
    origins.version.cache_clear()
    assert origins.installed("mine_a")
    before = fingerprint(first.look)
    metadata = {k: v.replace("Version: 1.0", "Version: 1.1") for k, v in files.items()}
    second = imported("mine_a", metadata | {"mine_a/__init__.py": LOOK.format(3)}, "site-packages")
    origins._distributions.cache_clear()
    origins.version.cache_clear()
    assert fingerprint(second.look) != before


def test_a_namespace_package_counts_by_content(imported):
    marks = []
    for value in (3, 5, 3):
        module = imported("mine_c.inner", {"mine_c/inner.py": LOOK.format(value)})
        whole = sys.modules["mine_c"]
        marks.append((fingerprint(module.look), fingerprint(lambda t, s, whole=whole: whole.inner.look())))
    assert marks[0] == marks[2]
    assert marks[0][0] != marks[1][0]
    assert marks[0][1] != marks[1][1]


def test_a_folder_with_a_name_like_ours_is_not_ours():
    here = str(Path(origins.__file__).parents[1])
    assert origins.of_file(f"{here}/loop.py")
    assert not origins.of_file(f"{here}_of_mine/loop.py")
    assert not origins.of_file("/home/me/site-packages-of-mine/loop.py")


def test_a_module_that_hides_an_installed_one_counts_by_content(imported, monkeypatch):
    monkeypatch.delitem(sys.modules, "tabnanny", raising=False)
    marks = [fingerprint(_used(imported("tabnanny", {"tabnanny.py": LOOK.format(v)}))) for v in (3, 5)]
    assert marks[0] != marks[1]


def _extension():
    """A compiled module of Python's own, to be taken for a user's."""
    files = sorted(Path(sysconfig.get_config_var("DESTSHARED") or ".").glob("_bisect.*.so"))
    return files[0] if files else None


@pytest.mark.skipif(_extension() is None, reason="this Python has its compiled modules built in")
def test_a_compiled_module_without_a_version_counts_by_its_file(tmp_path, monkeypatch):
    marks = []
    for place, more in (("a", b""), ("b", b"other"), ("c", b"")):
        file = tmp_path / place / _extension().name
        file.parent.mkdir()
        shutil.copy(_extension(), file)
        file.write_bytes(file.read_bytes() + more)
        spec = importlib.util.spec_from_file_location("_bisect", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setitem(sys.modules, "_bisect", module)
        call = module.bisect_left
        marks.append(fingerprint(lambda t, s, call=call: call([1], 2)))
    assert marks[0] != marks[1]
    assert marks[0] == marks[2]
