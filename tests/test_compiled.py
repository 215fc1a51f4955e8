"""Programs are compiled once on a machine, and nothing but time depends on whether they are kept."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from wideflow import _compiled

# counts programs that were taken from disk and those that were compiled
CODE = """
import jax
from jax import monitoring
counts = {"hits": 0, "misses": 0}
def count(event, **_):
    for name in counts:
        counts[name] += event == f"/jax/compilation_cache/cache_{name}"
monitoring.register_event_listener(count)
import wideflow as wf
import jax.numpy as jnp
jnp.ones(3) + 1  # before anything of ours is loaded
wf.Problem
print(repr(float(jax.jit(lambda v: (v * v).sum())(jnp.arange(7.0)))), counts["hits"], counts["misses"])
"""


def child(code=CODE, **env):
    given = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=given | env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def programs(root):
    return sorted(p for p in root.glob("compiled/*/*") if p.is_file())


def test_the_second_process_compiles_nothing(tmp_path):
    first, _ = child(WIDEFLOW_CACHE=str(tmp_path))
    kept = programs(tmp_path)
    again, told = child(WIDEFLOW_CACHE=str(tmp_path))
    assert first[1] == "0" and int(first[2]) == len(kept) > 0
    assert again == [first[0], str(len(kept)), "0"] and not told
    assert programs(tmp_path) == kept
    assert not list(tmp_path.glob("compiled/*/process-*"))  # what a process had for itself is gone with it


@pytest.mark.parametrize(
    "env, kept_elsewhere",
    [
        ({"WIDEFLOW_CACHE": "off"}, False),
        ({"JAX_COMPILATION_CACHE_DIR": "{own}", "WIDEFLOW_CACHE": ""}, True),
    ],
    ids=["off", "the user's own"],
)
def test_it_can_be_turned_off_and_leaves_the_users_own_alone(tmp_path, env, kept_elsewhere):
    home, own = tmp_path / "home", str(tmp_path / "own")
    env = {"HOME": str(home), "XDG_CACHE_HOME": str(home)} | {k: v.format(own=own) for k, v in env.items()}
    answer, _ = child(CODE + "\nprint(jax.config.jax_compilation_cache_dir)", **env)
    assert answer[-1] == (own if kept_elsewhere else "None")
    assert not home.exists()


def test_a_home_that_cannot_be_used_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    answer, told = child(WIDEFLOW_CACHE=str(tmp_path / "file"))
    assert answer[1] == "0" and not told


def test_half_an_entry_of_a_killed_process_is_never_read(tmp_path):
    own = _compiled.opened(tmp_path / "here")
    (own / "jit_f-cache").write_bytes(b"half")  # and the process is killed
    other = _compiled.opened(tmp_path / "here")
    assert not list(other.iterdir())


def test_programs_of_processes_side_by_side_are_joined(tmp_path):
    place = tmp_path / "here"
    one, other = _compiled.opened(place), _compiled.opened(place)
    (one / "f-cache").write_bytes(b"one")
    (other / "f-cache").write_bytes(b"other")  # the same program: the first that ends has it kept
    (other / "g-cache").write_bytes(b"g")
    _compiled.closed(place, one)
    _compiled.closed(place, other)
    assert {p.name: p.read_bytes() for p in _compiled._programs(place)} == {
        "f-cache": b"one",
        "g-cache": b"g",
    }


def test_the_oldest_go_when_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiled, "LARGEST", 25)
    place, now = tmp_path / "here", time.time()
    own = _compiled.opened(place)
    for age, name in enumerate(["new", "middle", "old"]):
        (own / name).write_bytes(b"0123456789")
        os.utime(own / name, (now - 100 * age, now - 100 * age))
    _compiled.closed(place, own)
    assert {p.name for p in _compiled._programs(place)} == {"new", "middle"}


def test_a_full_disk_keeps_no_halves(tmp_path, monkeypatch):
    place, usage = tmp_path / "here", shutil.disk_usage
    own = _compiled.opened(place)
    (own / "f-cache").write_bytes(b"half")  # as far as there was room
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(path)._replace(free=10**6))
    _compiled.closed(place, own)
    assert not _compiled._programs(place) and not own.exists()
    with pytest.raises(OSError, match="No space left"):
        _compiled.opened(place)


def test_what_was_abandoned_is_cleared_away(tmp_path):
    place = tmp_path / "here"
    left, own = _compiled.opened(place), _compiled.opened(place)
    long_ago = time.time() - 2 * _compiled._ABANDONED
    os.utime(left, (long_ago, long_ago))
    _compiled.closed(place, own)
    assert not left.exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="rights of files are other on Windows")
def test_a_folder_that_others_can_write_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError, match="other users"):
        _compiled.opened(tmp_path)
