"""Programs of presets, compiled ahead of time."""

import json
import os
import subprocess
import sys

import jax
import pytest
from typer.testing import CliRunner

from wideflow._compiled import kept_in
from wideflow.cli.app import app

RUN = """
import sys
import jax
missed = []
jax.monitoring.register_event_listener(
    lambda event, **_: missed.append(event) if event == "/jax/compilation_cache/cache_misses" else None
)
from wideflow.cli.app import main
sys.argv = ["wideflow", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("missed", len(missed))
"""


def test_where_nothing_is_kept_there_is_nothing_to_warm_up():
    env = os.environ | {"WIDEFLOW_CACHE": "off", "JAX_COMPILATION_CACHE_DIR": ""}
    command = [sys.executable, "-m", "wideflow", "presets", "noisy", "--warm-up", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, env=env)
    assert result.returncode == 2
    assert "WIDEFLOW_CACHE" in json.loads(result.stdout)["message"]


@pytest.mark.parametrize("name, place", [("mine", "mine"), ("process-1-2", "")])
def test_the_place_is_the_one_that_jax_writes_to(name, place, tmp_path):
    before = jax.config.values["jax_compilation_cache_dir"]
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / name))
        assert kept_in() == tmp_path / place
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


@pytest.mark.parametrize(
    "args, told", [(["nosy", "--warm-up"], "noisy"), (["noisy", "--warm-up", "--copy", "folder"], "--copy")]
)
def test_what_is_refused(args, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["presets", *args])
    assert result.exit_code == 2
    assert not list(tmp_path.iterdir())
    assert told in result.stderr


@pytest.mark.slow
def test_a_run_after_it_compiles_nothing(tmp_path):
    """In a process of its own, which counts what it does not find among the kept programs."""
    env = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    env |= {"WIDEFLOW_CACHE": str(tmp_path / "cache")}
    child = lambda *args: (
        subprocess.run(
            [sys.executable, "-c", RUN, *args],
            capture_output=True,
            text=True,
            check=True,
            env=env,
            cwd=tmp_path,
        ).stdout
    )
    warmed = child("presets", "own-data", "--warm-up")
    assert "own-data" in warmed and int(warmed.split()[-1]) > 0  # the first one does compile
    assert not (tmp_path / "out").exists()
    assert int(child("run", "own-data").split()[-1]) == 0
